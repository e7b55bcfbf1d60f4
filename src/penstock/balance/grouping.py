"""Many light operators as few heavier ones, so that planning stays short."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from penstock.balance.plan import MovePlan, move_plan
from penstock.balance.situation import Situation
from penstock.load.arrays import Ints
from penstock.load.series import LoadSeries


@dataclass(frozen=True, eq=False)
class Grouped:
    """A situation whose operators are groups, and the group of every original operator."""

    situation: Situation
    group: Ints


def group_operators(situation: Situation, lightest: float) -> Grouped:
    """Merges operators lighter than ``lightest`` that are on the same node.

    Operators are merged in the order of their numbers until a group weighs enough; the last group
    of a node may remain lighter. Operators that may not move stay for themselves.

    >>> situation = Situation.of([[0.1], [0.1], [0.1], [0.5]], [0, 0, 0, 0], [1.0])
    >>> group_operators(situation, lightest=0.2).group
    array([0, 0, 1, 2])
    """
    group = _groups(situation, lightest)
    count = int(group.max(initial=-1)) + 1
    members = np.bincount(group, minlength=count)
    quanta = np.zeros((count, situation.series.samples))
    np.add.at(quanta, group, situation.series.quanta)
    known = np.bincount(group, situation.series.known, minlength=count) / members
    first = np.array([np.flatnonzero(group == g)[0] for g in range(count)], dtype=np.int64)
    merged = Situation(
        LoadSeries(quanta, situation.series.quantum, known),
        situation.assignment[first],
        situation.capacities,
        situation.free[first],
    )
    return Grouped(merged, group)


def in_groups(
    situation: Situation, lightest: float, decide: Callable[[Situation], MovePlan]
) -> MovePlan:
    """The plan for the groups, carried over to their operators."""
    merged = group_operators(situation, lightest)
    plan = decide(merged.situation)
    return move_plan(f"{plan.policy} in groups", situation, plan.assignment[merged.group])


def _groups(situation: Situation, lightest: float) -> Ints:
    group = np.empty(situation.series.operators, dtype=np.int64)
    open_group: dict[int, int] = {}
    weight: list[float] = []
    for operator, load in enumerate(situation.series.means.tolist()):
        node = int(situation.assignment[operator])
        is_light = load < lightest and situation.free[operator]
        if is_light and node in open_group:
            number = open_group[node]
            weight[number] += load
        else:
            number = len(weight)
            weight.append(load)
            if is_light:
                open_group[node] = number
        if is_light and weight[number] >= lightest:
            del open_group[node]
        group[operator] = number
    return group
