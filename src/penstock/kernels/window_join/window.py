"""The window of one side: the runs of its batches, found or made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import pyarrow as pa

from penstock.kernels.window_join.ranges import BatchRange, cover
from penstock.kernels.window_join.run_cache import RunCache
from penstock.kernels.window_join.runs import SortedRun
from penstock.kernels.window_join.terms import RunLayout


class SideBatches(Protocol):
    """The numbered batches of one side, readable again as long as a window needs them."""

    @property
    def name(self) -> str:
        """What is read, in letters, digits and underscores: other rows have another name."""

    def read(self, number: int) -> pa.Table:
        """The rows of a batch, in the order in which they came."""

    def latest_us(self, number: int) -> int | None:
        """The latest event time of a batch, known without reading it; None if it has none."""


class SideWindow:
    """Finds the runs of one side in a cache, and makes those that are missing."""

    def __init__(self, batches: SideBatches, layout: RunLayout, cache: RunCache) -> None:
        self._batches = batches
        self._layout = layout
        self._cache = cache
        self._name = f"{batches.name}_{layout.digest}"

    def runs(self, first: int, stop: int) -> list[SortedRun]:
        """Runs with all rows of batches ``first`` to ``stop - 1``, and perhaps earlier ones."""
        return self._runs(first, stop, is_exact=False)

    def exact_runs(self, first: int, stop: int) -> list[SortedRun]:
        """Runs with the rows of batches ``first`` to ``stop - 1`` and no others.

        Groups that are behind the rest of a part find runs that were made for the rest.
        """
        return self._runs(first, stop, is_exact=True)

    def _runs(self, first: int, stop: int, is_exact: bool) -> list[SortedRun]:
        ranges = cover(first, stop)
        found = [run for batches in ranges for run in self._collect(batches, first, is_exact)]
        return [run for run in found if run.rows.num_rows]

    def retire(self, first: int) -> None:
        """Lets go of what lies before the window."""
        self._cache.retire(self._name, first)

    def _collect(self, batches: BatchRange, first: int, is_exact: bool) -> Iterator[SortedRun]:
        """A range's run. One that begins before the window is never made.

        If there is one, it is used, unless only rows of the window are wanted.
        """
        if batches.stop <= first:
            return
        run = self._find(batches, first, is_exact)
        if run is not None:
            yield run
        elif batches.start >= first:
            yield self._make(batches)
        else:
            for half in batches.halves:
                yield from self._collect(half, first, is_exact)

    def _find(self, batches: BatchRange, first: int, is_exact: bool) -> SortedRun | None:
        if is_exact and batches.start < first:
            return None
        return self._cache.get(self._name, batches)

    def add(self, number: int, rows: pa.Table) -> SortedRun:
        """Makes the run of a batch whose rows are at hand."""
        run = SortedRun.of(rows, self._layout)
        return self._cache.put(self._name, BatchRange(number, number + 1), run)

    def missing(self, first: int, stop: int, is_exact: bool = False) -> list[int]:
        """The batches whose rows would have to be read for the runs of this window."""
        ranges = cover(first, stop)
        return [number for batches in ranges for number in self._lack(batches, first, is_exact)]

    def _lack(self, batches: BatchRange, first: int, is_exact: bool) -> Iterator[int]:
        if batches.stop <= first or self._find(batches, first, is_exact) is not None:
            return
        if batches.is_single:
            yield batches.start
        else:
            for half in batches.halves:
                yield from self._lack(half, first, is_exact)

    def _make(self, batches: BatchRange) -> SortedRun:
        if batches.is_single:
            return self.add(batches.start, self._batches.read(batches.start))
        halves = [self._cache.get(self._name, half) or self._make(half) for half in batches.halves]
        run = self._cache.put(self._name, batches, SortedRun.merge(*halves))
        for half in batches.halves:
            self._cache.drop(self._name, half)
        return run
