"""Global correlation: units whose loads rise together go to different nodes.

It needs to have seen loads over time. A plan is made before anything has run, so rates are drawn at
random around the typical ones: streams vary independently, and units of one stream together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from penstock.balance.global_correlation import global_assignment
from penstock.load.arrays import Ints
from penstock.load.problem import UNPINNED, Problem
from penstock.place.strategy import Strategy


@dataclass(frozen=True)
class GlobalCorrelation(Strategy):
    """The global correlation algorithm on ``samples`` random rates, from 0 to twice typical."""

    name: ClassVar[str] = "correlation"
    samples: int = 20

    def place(self, problem: Problem, rng: np.random.Generator) -> Ints:
        factors = rng.uniform(0.0, 2.0, (problem.size[2], self.samples))
        return global_assignment(
            problem.rows @ (problem.rates[:, np.newaxis] * factors) + problem.fixed[:, np.newaxis],
            problem.capacities,
            assignment=problem.pinned,
            movable=problem.pinned == UNPINNED,
        )
