"""The global correlation algorithm as a placement strategy, from rates drawn at random."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from penstock.load.arrays import Ints
from penstock.load.problem import UNPINNED, Problem
from penstock.place.correlation import global_assignment
from penstock.place.strategy import Strategy

_SAMPLES = 20


class ByCorrelation(Strategy):
    """Separates units whose loads rise and fall together.

    Before anything has run there are no load series. As in the source's comparison, they are made
    from rates that vary at random and independently, here evenly between zero and twice the
    typical ones: units that hang on the same inputs correlate, and are spread over the nodes.
    """

    name: ClassVar[str] = "correlation"

    def place(self, problem: Problem, rng: np.random.Generator) -> Ints:
        drawn = rng.uniform(0.0, 2.0, (problem.rates.size, _SAMPLES))
        series = problem.rows @ (problem.rates[:, np.newaxis] * drawn)
        return global_assignment(
            series,
            problem.capacities,
            assignment=problem.pinned,
            movable=problem.pinned == UNPINNED,
        )
