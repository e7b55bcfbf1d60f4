"""Networks for simulations."""

import numpy as np

from penstock.model.abstract import AbstractInput, AbstractNetwork, AbstractNode, AbstractOperator


def chains(nodes: int, count: int, length: int, cost_s: float = 0.001) -> AbstractNetwork:
    """Independent chains of equal operators."""
    return AbstractNetwork(
        tuple(AbstractInput(f"I{c}") for c in range(count)),
        tuple(
            AbstractOperator(f"o{c}_{k}", (f"o{c}_{k - 1}" if k else f"I{c}",), cost_s)
            for c in range(count)
            for k in range(length)
        ),
        tuple(AbstractNode(f"n{i}") for i in range(nodes)),
    )


def random_network(rng: np.random.Generator) -> AbstractNetwork:
    """Trees and unions with selectivities below and above one."""
    inputs = tuple(AbstractInput(f"I{i}") for i in range(int(rng.integers(1, 4))))
    names = [stream.name for stream in inputs]
    operators = []
    for number in range(int(rng.integers(len(inputs), 10))):
        unread = [stream.name for stream in inputs[number : number + 1]]
        others = rng.choice(names, size=min(len(names), int(rng.integers(0, 3))), replace=False)
        reads = tuple(dict.fromkeys([*unread, *others.tolist()])) or (names[0],)
        cost, passed = float(rng.uniform(0.0005, 0.01)), float(rng.uniform(0.2, 1.4))
        operators.append(AbstractOperator(f"o{number}", reads, cost, passed))
        names.append(f"o{number}")
    nodes = tuple(
        AbstractNode(f"n{i}", cpu=float(rng.uniform(0.5, 2)))
        for i in range(int(rng.integers(1, 4)))
    )
    return AbstractNetwork(inputs, tuple(operators), nodes)
