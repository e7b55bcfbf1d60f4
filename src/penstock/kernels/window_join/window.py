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
        found = [run for batches in cover(first, stop) for run in self._collect(batches, first)]
        return [run for run in found if run.rows.num_rows]

    def retire(self, first: int) -> None:
        """Lets go of what lies before the window."""
        self._cache.retire(self._name, first)

    def _collect(self, batches: BatchRange, first: int) -> Iterator[SortedRun]:
        """A range's run. One that begins before the window is used if there is one, never made."""
        if batches.stop <= first:
            return
        run = self._cache.get(self._name, batches)
        if run is not None:
            yield run
        elif batches.start >= first:
            yield self._make(batches)
        else:
            for half in batches.halves:
                yield from self._collect(half, first)

    def add(self, number: int, rows: pa.Table) -> SortedRun:
        """Makes the run of a batch whose rows are at hand."""
        run = SortedRun.of(rows, self._layout)
        return self._cache.put(self._name, BatchRange(number, number + 1), run)

    def missing(self, first: int, stop: int) -> list[int]:
        """The batches whose rows would have to be read for the runs of this window."""
        return [number for batches in cover(first, stop) for number in self._lack(batches, first)]

    def _lack(self, batches: BatchRange, first: int) -> Iterator[int]:
        if batches.stop <= first or self._cache.get(self._name, batches) is not None:
            return
        if batches.is_single:
            yield batches.start
        else:
            for half in batches.halves:
                yield from self._lack(half, first)

    def _make(self, batches: BatchRange) -> SortedRun:
        if batches.is_single:
            return self.add(batches.start, self._batches.read(batches.start))
        halves = [self._cache.get(self._name, half) or self._make(half) for half in batches.halves]
        run = self._cache.put(self._name, batches, SortedRun.merge(*halves))
        for half in batches.halves:
            self._cache.drop(self._name, half)
        return run
