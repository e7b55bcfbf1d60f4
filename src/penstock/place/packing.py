"""Resource-aware packing, as today's schedulers do it: the node whose free resources fit best.

Units are taken in the order of the streams, so that neighbours come one after the other. Each goes
to the node where what is left of CPU after it, and what it has to send elsewhere, are least: the
distance between demand and supply, as in the resource-aware schedulers of stream processors.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from penstock.load.arrays import Floats, Ints
from penstock.load.problem import UNPINNED, Problem
from penstock.place.balancing import with_pinned
from penstock.place.rod import neighbour_lists
from penstock.place.strategy import Strategy


class Packing(Strategy):
    """Best fit by CPU at typical rates and by distance to placed neighbours."""

    name: ClassVar[str] = "packing"

    def place(self, problem: Problem, rng: np.random.Generator) -> Ints:
        loads = problem.loads_at(problem.rates)
        assignment, used = with_pinned(problem, loads)
        starts, neighbours = neighbour_lists(problem)
        for unit in np.flatnonzero(assignment == UNPINNED):
            near = assignment[neighbours[starts[unit] : starts[unit + 1]]]
            node = _best(problem, used, float(loads[unit]), near[near != UNPINNED])
            assignment[unit] = node
            used[node] += loads[unit]
        return assignment


def _best(problem: Problem, used: Floats, load: float, near: Ints) -> int:
    left = (problem.capacities - used - load) / problem.capacities
    if (left < 0).all():
        return int(np.argmax(left))
    here = np.bincount(near, minlength=len(problem.nodes))
    apart = 1.0 - here / len(near) if len(near) else np.zeros(len(problem.nodes))
    distance = np.sqrt(left**2 + apart**2)
    return int(np.argmin(np.where(left < 0, np.inf, distance)))
