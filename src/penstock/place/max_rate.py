"""Max-rate: balances the load at the greatest rates that were seen."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from penstock.load.arrays import Ints
from penstock.load.problem import Problem
from penstock.place.balancing import largest_load_first
from penstock.place.strategy import Strategy


class MaxRate(Strategy):
    """Largest load first, with every stream at its greatest rate."""

    name: ClassVar[str] = "max-rate"

    def place(self, problem: Problem, rng: np.random.Generator) -> Ints:
        return largest_load_first(problem, problem.peaks)
