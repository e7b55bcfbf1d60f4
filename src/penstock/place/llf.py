"""Largest load first: balances the load at typical rates."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from penstock.load.arrays import Ints
from penstock.load.problem import Problem
from penstock.place.balancing import largest_load_first
from penstock.place.strategy import Strategy


class LargestLoadFirst(Strategy):
    """Units by their load at typical rates, each to the least loaded node."""

    name: ClassVar[str] = "largest-load"

    def place(self, problem: Problem, rng: np.random.Generator) -> Ints:
        return largest_load_first(problem, problem.rates)
