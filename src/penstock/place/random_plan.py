"""Random: equal numbers of units everywhere."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from penstock.load.arrays import Ints
from penstock.load.problem import UNPINNED, Problem
from penstock.place.strategy import Strategy


class Random(Strategy):
    """Units in random order, dealt out like cards."""

    name: ClassVar[str] = "random"

    def place(self, problem: Problem, rng: np.random.Generator) -> Ints:
        assignment = problem.pinned.copy()
        free = np.flatnonzero(assignment == UNPINNED)
        assignment[rng.permutation(free)] = np.arange(len(free)) % len(problem.nodes)
        return assignment
