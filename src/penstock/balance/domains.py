"""Large systems in parts: nodes are divided into domains, each balanced for itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from penstock.balance.plan import MovePlan, move_plan
from penstock.balance.situation import HOMELESS, Situation
from penstock.errors import InputError
from penstock.load.arrays import Ints
from penstock.load.series import LoadSeries

Decide = Callable[[Situation], MovePlan]


def domains(nodes: int, size: int, turn: int = 0) -> list[Ints]:
    """Nodes in parts of at most ``size`` that differ by at most one node.

    The borders shift by half a domain with every odd ``turn``, so that load can travel beyond a
    domain from one period to the next.

    >>> [part.tolist() for part in domains(5, 2)]
    [[0, 1], [2, 3], [4]]
    >>> [part.tolist() for part in domains(5, 2, turn=1)]
    [[1, 2], [3, 4], [0]]
    """
    if size < 1:
        raise InputError(f"domains of {size} nodes", hint="Give at least one.")
    order = np.roll(np.arange(nodes), -(size // 2) * (turn % 2))
    return np.array_split(order, -(-nodes // size))


def in_domains(situation: Situation, size: int, decide: Decide, turn: int = 0) -> MovePlan:
    """The plans of all domains as one; operators without a node are left to the first domain."""
    after = situation.assignment.copy()
    name = ""
    for part, operators in _parts(situation, size, turn):
        plan = decide(_within(situation, part, operators))
        after[operators] = part[plan.assignment]
        name = plan.policy
    return move_plan(f"{name} in domains of {size}", situation, after)


def _parts(situation: Situation, size: int, turn: int) -> Iterator[tuple[Ints, Ints]]:
    for number, part in enumerate(domains(situation.nodes, size, turn)):
        inside = np.isin(situation.assignment, part)
        if number == 0:
            inside |= situation.assignment == HOMELESS
        if inside.any():
            yield part, np.flatnonzero(inside)


def _within(situation: Situation, part: Ints, operators: Ints) -> Situation:
    local = np.full(situation.nodes + 1, HOMELESS)  # the last entry stands for HOMELESS itself
    local[part] = np.arange(part.size)
    series = situation.series
    return Situation(
        LoadSeries(series.quanta[operators], series.quantum, series.known[operators]),
        local[situation.assignment[operators]],
        situation.capacities[part],
        situation.movable[operators],
    )
