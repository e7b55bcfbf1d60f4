"""Finds, for every probing row, the rows of a run with its place and a time within its bound.

Both sides are sorted by (place, time), so the partners of a row lie side by side. The run is
galloped through: m probing rows in a run of n cost O(m log(n / m)), and a key with many rows costs
two binary searches a row, not a scan.
"""

from __future__ import annotations

import numpy as np

from penstock.kernels.window_join.hashing import Bits
from penstock.kernels.window_join.sorting import Rows
from penstock.load.arrays import Ints
from penstock.load.compiled import compiled

_FEW, _NEAR = 8, 16


@compiled
def find_partners(
    places: Bits, times: Ints, run_places: Bits, run_times: Ints,
    lower_us: int, upper_us: int, earliest_us: int,
) -> tuple[Ints, Ints]:  # fmt: skip
    """Where each row's partners begin in the run, and how many there are.

    Partners have times from ``time + lower_us`` to ``time + upper_us``, and none before
    ``earliest_us``.
    """
    starts = np.zeros(len(places), np.int64)
    counts = np.zeros(len(places), np.int64)
    here = end = 0
    for at in range(len(places)):
        place = places[at]
        if at == 0 or place != places[at - 1]:
            here = _first_place(run_places, end, place)
            end = here
            if here < len(run_places) and run_places[here] == place:
                end = _place_end(run_places, here)
        if here == len(run_places):
            break
        if here < end:
            first = _first_time(run_times, here, end, max(times[at] + lower_us, earliest_us))
            starts[at] = first
            counts[at] = _first_time(run_times, first, end, times[at] + upper_us + 1) - first
    return starts, counts


@compiled
def _first_place(places: Bits, start: int, place: np.uint64) -> int:
    """The first index from ``start`` on whose place is not below ``place``, by galloping."""
    count = len(places)
    near = min(start + _NEAR, count)
    while start < near:  # most are near, and a plain scan guesses better than a search
        if places[start] >= place:
            return start
        start += 1
    step, low, high = _NEAR, start, start
    while high < count and places[high] < place:
        low = high + 1
        high = high + step
        step *= 2
    high = min(high, count)
    while low < high:
        middle = (low + high) >> 1
        if places[middle] < place:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _place_end(places: Bits, start: int) -> int:
    """Where the rows with the place at ``start`` end."""
    place = places[start]
    end = start + 1
    while end < len(places) and end - start < _FEW and places[end] == place:
        end += 1
    if end < len(places) and places[end] == place:
        return end + int(np.searchsorted(places[end:], place, side="right"))
    return end


@compiled
def _first_time(times: Ints, start: int, end: int, time: int) -> int:
    """The first index from ``start`` to ``end`` whose time is not below ``time``."""
    if end - start <= _FEW:
        while start < end and times[start] < time:
            start += 1
        return start
    return start + int(np.searchsorted(times[start:end], time))


@compiled
def pair_up(
    rows: Rows, starts: Ints, counts: Ints, run_rows: Rows, first: int, stop: int
) -> tuple[Rows, Rows]:
    """The pairs of the probing rows from ``first`` to ``stop``: rows of one side, of the other."""
    total = 0
    for at in range(first, stop):
        total += counts[at]
    mine, theirs = np.empty(total, np.uint32), np.empty(total, np.uint32)
    to = 0
    for at in range(first, stop):
        for partner in range(starts[at], starts[at] + counts[at]):
            mine[to] = rows[at]
            theirs[to] = run_rows[partner]
            to += 1
    return mine, theirs


def portions(counts: Ints, most: int) -> list[tuple[int, int]]:
    """Cuts probing rows into stretches with at most ``most`` pairs each, or a single row.

    >>> portions(np.array([2, 0, 3, 9, 1]), 5)
    [(0, 3), (3, 4), (4, 5)]
    """
    total = int(counts.sum())
    if total <= most:
        return [(0, len(counts))] if total else []
    cut: list[tuple[int, int]] = []
    ends = np.cumsum(counts)
    start, before = 0, 0
    while start < len(counts) and before < ends[-1]:
        stop = max(int(np.searchsorted(ends, before + most, side="right")), start + 1)
        cut.append((start, stop))
        start, before = stop, int(ends[stop - 1])
    return cut
