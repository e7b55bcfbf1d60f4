"""Which runs cover a window: aligned ranges of batch numbers, so that all tasks ask for the same.

A run of level k covers the batches from ``i 2**k`` to ``(i + 1) 2**k``. A window of n batches is
covered by two to four of the largest level used and one of each level below: a batch's rows are
merged once per level, and probing looks into O(log n) runs.
"""

from __future__ import annotations

from dataclasses import dataclass

_LARGEST_SHARE = 2
"""The largest run spans at most half a window, so that not too many of its rows are expired."""


@dataclass(frozen=True, order=True)
class BatchRange:
    """Batches ``start`` to ``stop - 1``.

    >>> BatchRange(8, 12).halves
    (BatchRange(start=8, stop=10), BatchRange(start=10, stop=12))
    """

    start: int
    stop: int

    @property
    def is_single(self) -> bool:
        return self.stop - self.start == 1

    @property
    def halves(self) -> tuple[BatchRange, BatchRange]:
        middle = (self.start + self.stop) // 2
        return BatchRange(self.start, middle), BatchRange(middle, self.stop)


def cover(first: int, stop: int) -> list[BatchRange]:
    """Aligned ranges that cover batches ``first`` to ``stop - 1``; the first may begin earlier.

    >>> [(range.start, range.stop) for range in cover(5, 22)]
    [(0, 8), (8, 16), (16, 20), (20, 22)]
    """
    size = 1
    while size * 2 * _LARGEST_SHARE <= stop - first:
        size *= 2
    ranges = []
    at = first - first % size
    while at < stop:
        while at + size > stop:
            size //= 2
        ranges.append(BatchRange(at, at + size))
        at += size
    return ranges
