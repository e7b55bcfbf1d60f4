"""Signatures of load: what a stream asks of a node, segment by segment, within a sliding window.

A segment is a stretch in which tuples arrive at one mean rate. Where one ends is found by Page's
cumulative sums for Poisson counts: evidence that the rate has risen or fallen by the factor
``change`` is added up as the logarithm of the likelihood ratio, starts again whenever it falls
below zero, and makes a new segment once it reaches ``threshold``. The segment begins where the
evidence began, so bursts are not cut short by the time it takes to notice them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, log

import numpy as np
from numpy.typing import NDArray

Loads = NDArray[np.float64]


@dataclass(frozen=True)
class LoadSegment:
    """A stretch of constant mean load."""

    length_s: float
    load: float

    def __post_init__(self) -> None:
        if not (self.length_s > 0 and self.load >= 0):
            raise ValueError(f"not a segment: {self}")


@dataclass(frozen=True)
class LoadSignature:
    """Segments that follow each other, the newest last; what is older than the window is gone."""

    segments: tuple[LoadSegment, ...] = ()
    window_s: float = inf

    def __post_init__(self) -> None:
        object.__setattr__(self, "segments", _newest(self.segments, self.window_s))

    def plus(self, segment: LoadSegment) -> LoadSignature:
        """The signature once one more segment is over."""
        return LoadSignature((*self.segments, segment), self.window_s)

    @property
    def length_s(self) -> float:
        return sum(segment.length_s for segment in self.segments)

    @property
    def shortest_s(self) -> float:
        return min((segment.length_s for segment in self.segments), default=inf)

    def loads_in(self, cells: int, cell_s: float) -> Loads:
        """The load in each of the newest ``cells`` of length ``cell_s``, the newest last.

        A cell in which the load changes has the larger of both; before the signature begins it is
        zero.
        """
        found = np.zeros(cells)
        end_s = 0.0
        for segment in reversed(self.segments):
            start_s, end_s = end_s, end_s + segment.length_s
            first, last = int(start_s / cell_s + 1e-9), int(np.ceil(end_s / cell_s - 1e-9))
            newest = slice(max(0, cells - last), max(0, cells - first))
            found[newest] = np.maximum(found[newest], segment.load)
        return found


def _newest(segments: tuple[LoadSegment, ...], window_s: float) -> tuple[LoadSegment, ...]:
    kept: list[LoadSegment] = []
    left_s = window_s
    for segment in reversed(segments):
        if left_s <= 0:
            break
        kept.append(LoadSegment(min(segment.length_s, left_s), segment.load))
        left_s -= segment.length_s
    return tuple(reversed(kept))


def combine(signatures: Sequence[LoadSignature]) -> tuple[Loads, float]:
    """The load of a node in cells as long as the shortest segment, and that length.

    >>> slow = LoadSignature((LoadSegment(2, 0.1), LoadSegment(2, 0.3)))
    >>> quick = LoadSignature((LoadSegment(1, 0.0), LoadSegment(1, 0.2), LoadSegment(2, 0.0)))
    >>> loads, cell_s = combine([slow, quick])
    >>> loads.round(2).tolist(), cell_s
    ([0.1, 0.3, 0.3, 0.3], 1)
    """
    known = [signature for signature in signatures if signature.segments]
    if not known:
        return np.zeros(1), inf
    cell_s = min(signature.shortest_s for signature in known)
    cells = max(1, int(np.ceil(max(signature.length_s for signature in known) / cell_s - 1e-9)))
    total = np.zeros(cells)
    for signature in known:
        total += signature.loads_in(cells, cell_s)
    return total, cell_s


@dataclass(frozen=True)
class SegmentDetector:
    """Notices that the mean rate of arrivals has changed.

    Stated by three numbers: the ``change`` of the rate it looks for, the ``threshold`` of evidence
    (a higher one means fewer false alarms and later true ones), and the ``tick_s`` in which
    arrivals are counted. The rest is what it has seen: ticks and arrivals of the present
    segment, its rate (None before the first tick), and the evidence for a change, with the ticks
    and arrivals it rests on.
    """

    tick_s: float = 0.05
    change: float = 2.0
    threshold: float = 6.0
    rate_per_s: float | None = None
    ticks: int = 0
    count: int = 0
    risen: tuple[float, int, int] = (0.0, 0, 0)
    fallen: tuple[float, int, int] = (0.0, 0, 0)

    def step(self, arrived: int) -> tuple[SegmentDetector, tuple[float, float] | None]:
        """The detector after one more tick; (length, mean rate) of a segment that is over."""
        ticks, count = self.ticks + 1, self.count + arrived
        rate = self.rate_per_s if self.rate_per_s is not None else count / (ticks * self.tick_s)
        expected = max(rate, 0.5 / (ticks * self.tick_s)) * self.tick_s
        risen = _evidence(self.risen, arrived, expected, self.change)
        fallen = _evidence(self.fallen, arrived, expected, 1 / self.change)
        if max(risen[0], fallen[0]) < self.threshold:
            known = count / (ticks * self.tick_s)
            return self._with(known, ticks, count, risen, fallen), None
        _, since, seen = max(risen, fallen)
        over_ticks, over_count = ticks - since, count - seen
        begun = self._with(seen / (since * self.tick_s), since, seen, _NONE, _NONE)
        if over_ticks <= 0:
            return begun, None
        length_s = over_ticks * self.tick_s
        return begun, (length_s, over_count / length_s)

    def present(self) -> tuple[float, float]:
        """Length and mean rate of the segment that is still going on."""
        length_s = self.ticks * self.tick_s
        return length_s, self.count / length_s if length_s else 0.0

    def _with(
        self,
        rate: float,
        ticks: int,
        count: int,
        risen: tuple[float, int, int],
        fallen: tuple[float, int, int],
    ) -> SegmentDetector:
        return SegmentDetector(
            self.tick_s, self.change, self.threshold, rate, ticks, count, risen, fallen
        )


_NONE = (0.0, 0, 0)


def _evidence(
    before: tuple[float, int, int], arrived: int, expected: float, change: float
) -> tuple[float, int, int]:
    """Evidence that the mean is ``change`` times what is expected; ticks and counts it rests on."""
    evidence, ticks, count = before
    evidence += arrived * log(change) - expected * (change - 1)
    return (evidence, ticks + 1, count + arrived) if evidence > 0 else _NONE


def segments_of(
    arrivals_s: Sequence[float] | Loads, until_s: float, detector: SegmentDetector | None = None
) -> list[tuple[float, float]]:
    """Lengths and mean rates of the segments of recorded arrivals, in order.

    >>> steady = [at / 40 for at in range(80)]
    >>> burst = [2 + at / 200 for at in range(200)]
    >>> [(round(length_s, 2), round(rate)) for length_s, rate in segments_of(steady + burst, 3.0)]
    [(2.0, 40), (1.0, 200)]
    """
    state = detector or SegmentDetector()
    ticks = round(until_s / state.tick_s)
    counts = np.histogram(np.asarray(arrivals_s), bins=ticks, range=(0, ticks * state.tick_s))[0]
    found = []
    for arrived in counts.tolist():
        state, over = state.step(arrived)
        if over is not None:
            found.append(over)
    return [*found, state.present()]
