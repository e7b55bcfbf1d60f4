"""Where the fragments of a deployment go: the one call for whoever starts them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from penstock.load.bridge import abstract_network, tied_units
from penstock.load.costs import CostTable
from penstock.load.problem import Problem, placement_problem
from penstock.model.estimates import OperatorEstimate
from penstock.model.fragments import Fragment
from penstock.model.network import Network, NodeSpec
from penstock.place.rhythm import counted_rounds_s
from penstock.place.strategy import Strategy, check_assignment


def place_fragments(
    network: Network,
    fragments: Sequence[Fragment],
    nodes: Sequence[NodeSpec],
    strategy: Strategy,
    costs: CostTable,
    rates_per_s: Mapping[str, float],
    measured: Mapping[str, OperatorEstimate] | None = None,
    seed: int = 0,
    light: Collection[str] = (),
) -> Mapping[str, str]:
    """The name of the node of every fragment; ``measured`` costs count where there are some.

    ``light`` are the fragments that are members of bundles.
    """
    rounds_s = counted_rounds_s(network, fragments)
    problem = placement_problem(
        abstract_network(network, fragments, nodes, costs, rates_per_s, measured, rounds_s, light)
    )
    plan = check_assignment(
        problem, strategy.place(problem, np.random.default_rng(seed)), strategy.name
    )
    return {
        name: problem.nodes[node]
        for names, node in zip(fragments_by_unit(problem, fragments), plan, strict=True)
        for name in names
    }


def fragments_by_unit(
    problem: Problem, fragments: Sequence[Fragment]
) -> tuple[tuple[str, ...], ...]:
    """The fragments of every unit: usually one, several if they use the same database table."""
    names: dict[str, list[str]] = {unit: [] for unit in problem.units}
    for fragment, unit in tied_units(fragments).items():
        names[unit].append(fragment)
    return tuple(tuple(names[unit]) for unit in problem.units)
