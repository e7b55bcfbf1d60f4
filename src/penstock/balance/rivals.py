"""What others do: largest-load-first and random selection, pairwise and global."""

from __future__ import annotations

import numpy as np

from penstock.balance.pairwise import balanced_by_priority
from penstock.balance.plan import MovePlan, move_plan
from penstock.balance.situation import HOMELESS, Situation, Thresholds
from penstock.load.arrays import Floats, Ints


def largest_load_first(situation: Situation, thresholds: Thresholds | None = None) -> MovePlan:
    """From the heavier node of a pair to the lighter, the largest operator first (LLF-BAL)."""
    limits = thresholds or Thresholds()
    priority = situation.series.quanta.sum(axis=1)
    return balanced_by_priority("largest-load-first", situation, limits, priority)


def random_selection(
    situation: Situation, rng: np.random.Generator, thresholds: Thresholds | None = None
) -> MovePlan:
    """From the heavier node of a pair to the lighter, in random order (RAND-BAL)."""
    limits = thresholds or Thresholds()
    priority = rng.permutation(situation.series.operators).astype(np.float64)
    return balanced_by_priority("random", situation, limits, priority)


def global_largest_load_first(situation: Situation) -> MovePlan:
    """All afresh: the largest operator first, each to the least loaded node (LLF-GLB)."""
    order = np.argsort(-situation.series.means, kind="stable")
    return move_plan("global-largest-load-first", situation, _dealt(situation, order))


def global_random(situation: Situation, rng: np.random.Generator) -> MovePlan:
    """All afresh: in random order, each to the least loaded node (RAND-GLB)."""
    order = rng.permutation(situation.series.operators)
    return move_plan("global-random", situation, _dealt(situation, order))


def _dealt(situation: Situation, order: Ints) -> Ints:
    loads = situation.series.quanta.sum(axis=1)
    assignment = np.where(situation.free, HOMELESS, situation.assignment)
    total: Floats = np.zeros(situation.nodes)
    fixed = assignment != HOMELESS
    np.add.at(total, assignment[fixed], loads[fixed])
    for operator in order:
        if assignment[operator] == HOMELESS:
            node = int(np.argmin(total / situation.capacities))
            assignment[operator] = node
            total[node] += loads[operator]
    return assignment
