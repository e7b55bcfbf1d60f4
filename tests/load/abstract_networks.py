"""Abstract networks for tests: the source's worked example, and random ones."""

from __future__ import annotations

import numpy as np

from penstock.load.arrays import Floats, Ints
from penstock.load.linear import Arcs
from penstock.load.problem import Problem
from penstock.model.abstract import (
    AbstractInput,
    AbstractNetwork,
    AbstractNode,
    AbstractOperator,
)


def worked_example(cpu: float = 1.0) -> AbstractNetwork:
    """Query graph (a): o1 -> o2 on I1 and o3 -> o4 on I2, two nodes."""
    return AbstractNetwork(
        (AbstractInput("I1"), AbstractInput("I2")),
        (
            AbstractOperator("o1", ("I1",), 14),
            AbstractOperator("o2", ("o1",), 6),
            AbstractOperator("o3", ("I2",), 9, 0.5),
            AbstractOperator("o4", ("o3",), 14),
        ),
        (AbstractNode("n1", cpu), AbstractNode("n2", cpu)),
    )


def network_of(
    operators: list[AbstractOperator], inputs: str = "A B", nodes: int = 2, transfer: float = 0.0
) -> AbstractNetwork:
    return AbstractNetwork(
        tuple(AbstractInput(name, 10.0) for name in inputs.split()),
        tuple(operators),
        tuple(AbstractNode(f"n{at}") for at in range(1, nodes + 1)),
        transfer_cost_s=transfer,
    )


def random_problem(
    seed: int,
    units: int = 20,
    nodes: int = 4,
    width: int = 3,
    arcs: bool = True,
    transfer: float = 0.0,
    bandwidth: float = np.inf,
    lower: bool = False,
    equal: bool = False,
    fixed: float = 0.0,
) -> Problem:
    """Units of one variable each (some of two), in chains, on nodes of different size.

    ``fixed`` is the part of all CPU that fixed loads of two units in three take together.
    """
    rng = np.random.default_rng(seed)
    rows = np.zeros((units, width))
    rows[np.arange(units), np.arange(units) % width] = rng.uniform(0.1, 1.0, units)
    also = rng.random(units) < 0.3
    rows[also, rng.integers(0, width, also.sum())] += rng.uniform(0.1, 1.0, also.sum())
    sources = np.arange(units - width) if arcs else np.arange(0)
    rates = np.zeros((len(sources), width))
    rates[np.arange(len(sources)), sources % width] = rng.uniform(0.5, 1.0, len(sources))
    capacities = np.ones(nodes) if equal else rng.uniform(0.5, 2.0, nodes)
    totals = rows.sum(axis=0)
    share = rng.dirichlet(np.ones(width + 1))[:width] if lower else np.zeros(width)
    constants = np.zeros(units)
    if fixed:
        # Drawn apart, so that the rest is the same with and without.
        apart = np.random.default_rng([seed, 7])
        constants = apart.uniform(0.1, 1.0, units) * (apart.random(units) < 2 / 3)
        constants *= fixed * capacities.sum() / max(constants.sum(), 1e-9)
    return Problem(
        units=tuple(f"o{at}" for at in range(units)),
        members=tuple((f"o{at}",) for at in range(units)),
        rows=rows,
        fixed=constants,
        arcs=Arcs(sources, sources + width, transfer * rates, 100 * rates),
        variables=tuple(f"I{at}" for at in range(width)),
        nodes=tuple(f"n{at}" for at in range(nodes)),
        capacities=capacities,
        lower=(1 - fixed) * share * capacities.sum() / totals,
        rates=rng.uniform(0.5, 1.5, width) * capacities.sum() / totals / width,
        peaks=2 * capacities.sum() / totals / width,
        bandwidths=np.full(nodes, bandwidth),
        total_bandwidth=float(nodes * bandwidth),
        sticky=np.zeros(units, dtype=np.bool_),
        pinned=np.full(units, -1, dtype=np.int64),
    )


def random_assignment(problem: Problem, seed: int) -> Ints:
    units, nodes, _ = problem.size
    return np.random.default_rng(seed).integers(0, nodes, units)


def random_weights(rng: np.random.Generator, nodes: int, width: int) -> Floats:
    """Weights of nodes that share every stream out at random."""
    shares = rng.random((nodes, width)) ** 2
    return nodes * shares / shares.sum(axis=0)
