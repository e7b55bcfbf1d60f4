"""Connected load balancing: neighbours together, as long as the load stays even."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from penstock.load.arrays import Floats, Ints
from penstock.load.problem import UNPINNED, Problem
from penstock.place.balancing import heaviest_first, with_pinned
from penstock.place.rod import neighbour_lists
from penstock.place.strategy import Strategy

_ROUNDING = 1e-9


class Connected(Strategy):
    """The heaviest unit to the least loaded node, then what it is connected with.

    A node takes connected units while its load at typical rates stays within its fair share.
    """

    name: ClassVar[str] = "connected"

    def place(self, problem: Problem, rng: np.random.Generator) -> Ints:
        loads = problem.loads_at(problem.rates)
        assignment, used = with_pinned(problem, loads)
        fair = problem.shares * loads.sum()
        starts, neighbours = neighbour_lists(problem)
        for unit in heaviest_first(loads, assignment):
            if assignment[unit] != UNPINNED:
                continue
            node = int(np.argmin(used / problem.capacities))
            assignment[unit] = node
            used[node] += loads[unit]
            frontier = list(neighbours[starts[unit] : starts[unit + 1]])
            used[node] = _spread(
                frontier, node, fair[node], used[node], loads, assignment, starts, neighbours
            )
        return assignment


def _spread(
    frontier: list[int],
    node: int,
    fair: float,
    used: float,
    loads: Floats,
    assignment: Ints,
    starts: Ints,
    neighbours: Ints,
) -> float:
    """Gives ``node`` what is connected to it until its share is full; its load afterwards."""
    while frontier:
        near = frontier.pop(0)
        if assignment[near] != UNPINNED or used + loads[near] > fair * (1 + _ROUNDING):
            continue
        assignment[near] = node
        used += loads[near]
        frontier += list(neighbours[starts[near] : starts[near + 1]])
    return used
