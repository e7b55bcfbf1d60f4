"""Latencies of many results in little memory: sums, and counts in bins of about 2 %."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from penstock.load.arrays import Ints
from penstock.sim.block import BIN_COUNT, BINS_PER_OCTAVE, SHORTEST_S


@dataclass(frozen=True, eq=False)
class Latencies:
    """End-to-end latencies of results; percentiles are right to one bin.

    >>> found = Latencies(2, 0.03, 0.0005, 0.01, 0.02, np.zeros(4, int))
    >>> found.mean_s, found.ratio
    (0.015, 3.0)
    """

    count: int
    sum_s: float
    sum_of_squares: float
    work_s: float
    longest_s: float
    bins: Ints

    @property
    def mean_s(self) -> float:
        return self.sum_s / self.count if self.count else math.nan

    @property
    def deviation_s(self) -> float:
        """The standard deviation."""
        if not self.count:
            return math.nan
        return math.sqrt(max(0.0, self.sum_of_squares / self.count - self.mean_s**2))

    @property
    def ratio(self) -> float:
        """Mean latency over mean processing time of the same results; 1 means no waiting."""
        return self.sum_s / self.work_s if self.work_s > 0 else math.nan

    def percentile_s(self, percent: float) -> float:
        """The latency that so many per cent of the results stay below."""
        if not self.count:
            return math.nan
        at = int(np.searchsorted(np.cumsum(self.bins), self.count * percent / 100))
        middle_s = SHORTEST_S * 2.0 ** ((at + 0.5) / BINS_PER_OCTAVE)
        return float(min(middle_s, self.longest_s))


class LatencySums:
    """Latencies as they come, in little memory."""

    def __init__(self) -> None:
        self.count = 0
        self.sum_s = 0.0
        self._squares = 0.0
        self._work_s = 0.0
        self._longest_s = 0.0
        self._bins = np.zeros(BIN_COUNT, dtype=np.int64)

    def add(self, latency_s: float, work_s: float) -> None:
        self.count += 1
        self.sum_s += latency_s
        self._squares += latency_s**2
        self._work_s += work_s
        self._longest_s = max(self._longest_s, latency_s)
        octaves = math.log2(max(latency_s, SHORTEST_S) / SHORTEST_S)
        self._bins[min(BIN_COUNT - 1, int(octaves * BINS_PER_OCTAVE))] += 1

    def found(self) -> Latencies:
        return Latencies(
            self.count,
            self.sum_s,
            self._squares,
            self._work_s,
            self._longest_s,
            self._bins.copy(),
        )
