"""The random query graphs of the placement studies.

One tree of operators per input, all of the same size; every operator has one to three operators
downstream until the tree has all of its own. Costs are U(0.1, 1) ms; half of the operators pass
everything on, the others have a selectivity of U(0.5, 1). The sources name the trees and their
equal size; the numbers are those that give their picture.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from penstock.load.linear import Arcs
from penstock.load.problem import Problem, placement_problem
from penstock.model.abstract import (
    AbstractInput,
    AbstractNetwork,
    AbstractNode,
    AbstractOperator,
)

_LEAST_COST_S, _MOST_COST_S = 1e-4, 1e-3
_MOST_READERS = 3


@dataclass(frozen=True)
class Trees:
    """What random trees look like; all operators alike if ``alike``.

    ``transfer_ratio`` is the cost of moving a tuple, in costs of processing one; ``link_ratio``
    the share of a node's link over the share of its CPU that an operator with one input and one
    output takes by itself.
    """

    operators: int
    inputs: int = 5
    nodes: int = 10
    alike: bool = False
    transfer_ratio: float = 0.0
    link_ratio: float = 0.0


ALIKE_COST_S = 5e-4
_TUPLE_BYTES = 100.0
_NETWORK_OVER_LINK = 10.0
"""The source's links carry 100 Mb/s and its network 1 Gb/s."""


def tree_problem(trees: Trees, rng: np.random.Generator) -> Problem:
    """The placement problem of random trees on equal nodes.

    ROD places equal units in the order of their numbers. Where all are alike, those must not
    follow the trees from the roots to the leaves: nodes would get either the busy inner parts of
    trees or the quiet leaves. So they are shuffled.
    """
    problem = placement_problem(tree_network(trees, rng))
    return _shuffled(problem, rng) if trees.alike else problem


def _shuffled(problem: Problem, rng: np.random.Generator) -> Problem:
    order = rng.permutation(len(problem.units))
    number = np.argsort(order)
    arcs = problem.arcs
    return replace(
        problem,
        units=tuple(problem.units[at] for at in order),
        members=tuple(problem.members[at] for at in order),
        rows=problem.rows[order],
        arcs=Arcs(number[arcs.sources], number[arcs.targets], arcs.cpu, arcs.bytes),
        sticky=problem.sticky[order],
        pinned=problem.pinned[order],
    )


def tree_network(trees: Trees, rng: np.random.Generator) -> AbstractNetwork:
    """Random trees; the operators are dealt out evenly, the first trees get what is left over."""
    operators = []
    for tree in range(trees.inputs):
        size = trees.operators // trees.inputs + (tree < trees.operators % trees.inputs)
        operators += _tree(tree, size, trees.alike, rng)
    link = None
    if trees.link_ratio:
        link = 2 * _TUPLE_BYTES / ALIKE_COST_S / trees.link_ratio
    return AbstractNetwork(
        tuple(AbstractInput(f"I{at}", tuple_bytes=_TUPLE_BYTES) for at in range(trees.inputs)),
        tuple(operators),
        tuple(AbstractNode(f"n{at}", 1.0, link) for at in range(trees.nodes)),
        None if link is None else _NETWORK_OVER_LINK * link,
        trees.transfer_ratio * ALIKE_COST_S,
    )


def _tree(tree: int, size: int, alike: bool, rng: np.random.Generator) -> list[AbstractOperator]:
    parents = _parents(size, rng)
    return [
        AbstractOperator(
            f"t{tree}o{at}",
            (f"I{tree}" if parent < 0 else f"t{tree}o{parent}",),
            ALIKE_COST_S if alike else float(rng.uniform(_LEAST_COST_S, _MOST_COST_S)),
            1.0 if alike or rng.random() < 0.5 else float(rng.uniform(0.5, 1.0)),
        )
        for at, parent in enumerate(parents)
    ]


def _parents(size: int, rng: np.random.Generator) -> list[int]:
    """Whom each operator reads, in the order of a breadth-first walk; -1 for the input."""
    parents, at = [-1], 0
    while len(parents) < size:
        readers = int(rng.integers(1, _MOST_READERS + 1))
        parents += [at] * min(readers, size - len(parents))
        at += 1
    return parents[:size]
