"""First-fit decreasing: as few nodes as possible, as bin packing does it."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from penstock.load.arrays import Ints
from penstock.load.problem import Problem
from penstock.place.balancing import heaviest_first, with_pinned
from penstock.place.strategy import Strategy


class FirstFit(Strategy):
    """Units by their load at typical rates, each to the first node with room for it.

    What fits nowhere goes to the node with most room left.
    """

    name: ClassVar[str] = "first-fit"

    def place(self, problem: Problem, rng: np.random.Generator) -> Ints:
        loads = problem.loads_at(problem.rates)
        assignment, used = with_pinned(problem, loads)
        for unit in heaviest_first(loads, assignment):
            room = problem.capacities - used
            fits = np.flatnonzero(room >= loads[unit])
            node = int(fits[0]) if len(fits) else int(np.argmax(room))
            assignment[unit] = node
            used[node] += loads[unit]
        return assignment
