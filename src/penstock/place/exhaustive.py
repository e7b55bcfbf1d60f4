"""Exhaustive search: the best plan there is, for small cases."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from penstock.errors import InputError
from penstock.load.arrays import Ints
from penstock.load.feasible import seen_rows
from penstock.load.problem import UNPINNED, Problem
from penstock.load.volume import directions, polytope_volume
from penstock.place.local_search import local_search
from penstock.place.rod import placing_order
from penstock.place.strategy import Strategy

MOST_PLANS = 20_000_000
_MOST_VARIABLES = 4


class Exhaustive(Strategy):
    """The plan of largest volume of all there are; refuses where those are too many."""

    name: ClassVar[str] = "exhaustive"

    def place(self, problem: Problem, rng: np.random.Generator) -> Ints:
        return exhaustive(problem)


def plans_of(problem: Problem) -> int:
    """How many plans there are, not counting the exchange of nodes that are alike."""
    free = int((problem.pinned == UNPINNED).sum())
    nodes = len(problem.nodes)
    same = _alike(problem)
    return int(nodes ** max(0, free - (nodes - 1 if same else 0)))


def is_small(problem: Problem) -> bool:
    """Whether all plans can be gone through."""
    return plans_of(problem) <= MOST_PLANS and problem.size[2] <= _MOST_VARIABLES


def exhaustive(problem: Problem) -> Ints:
    """The plan of largest volume: along sample directions, and no smaller than the local search's.

    Takes at most as many steps as there are plans; usually far fewer, because parts of plans that
    are too small already are not gone into.
    """
    from penstock.place.exhaustive_kernel import best_plan
    from penstock.place.search_state import State, search_of

    if not is_small(problem):
        raise InputError(
            f"{plans_of(problem):.1g} plans with {problem.size[2]} variables are too many to try",
            hint=f"Exhaustive search is for up to {MOST_PLANS:,} plans and {_MOST_VARIABLES} "
            "variables; local-search comes close to it.",
        )
    start = local_search(problem, 1e6, lambda: False)
    points = directions(problem.size[2], 9)[0]
    search = search_of(problem, points)
    _, found = best_plan(
        placing_order(problem.full_rows),
        np.array(problem.pinned),
        np.zeros((2 * len(problem.nodes) + 1, search.weights.rows.shape[1])),
        State(search, start).total,
        _alike(problem),
        search.weights,
        search.rays,
    )
    if (found < 0).any():
        return start
    return max((start, found), key=lambda plan: _exact(problem, plan))


def _alike(problem: Problem) -> bool:
    """Whether nodes are all the same, and nothing is pinned to one."""
    return (
        len(set(problem.capacities.tolist())) == 1
        and len(set(problem.bandwidths.tolist())) == 1
        and not (problem.pinned != UNPINNED).any()
    )


def _exact(problem: Problem, plan: Ints) -> float:
    rows = seen_rows(problem, plan)
    return 0.0 if rows is None else polytope_volume(rows)
