"""The open windows of many members: partial aggregates by slice, until watermarks close windows.

Every batch adds one *run*, a table of partial aggregates; runs of about the same age are merged
when there are eight of them, so a row is merged once for every power of eight batches. Windows that
close pick their slices from all runs, and a run goes when no window needs its slices any more. A
batch costs what it brings, a few nanoseconds for every row that is kept, and what the closing
windows consist of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.kernels.segments import Ints
from penstock.kernels.state_shape import END, MEMBER, SLICE, START, StateShape, merge_states
from penstock.model.windows import AnyWindow, Window

Mask = npt.NDArray[np.bool_]

LONG_AGO_US = -(2**61)
_RUNS_ALIKE = 8


class MemberTime(NamedTuple):
    """A member's windows, and how far its time had come and has."""

    window: AnyWindow
    before_us: int
    after_us: int


@dataclass(frozen=True)
class MemberWindows:
    """The windows of all members, by member: their sizes, and how far time had come and has.

    A window closes in this step if its end lies in ``(before_us, after_us]``. Members that are
    not here any more have ``gone``: nothing of theirs closes, and nothing is kept. Sessions have
    no size.
    """

    size_us: Ints
    slide_us: Ints
    before_us: Ints
    after_us: Ints
    gone: Mask

    @classmethod
    def of(cls, members: Mapping[int, MemberTime], count: int) -> MemberWindows:
        """The windows of some members among ``count`` numbers; the others have gone."""
        size, slide = np.ones(count, np.int64), np.ones(count, np.int64)
        before, after = np.zeros(count, np.int64), np.zeros(count, np.int64)
        gone = np.ones(count, bool)
        for number, member in members.items():
            if isinstance(member.window, Window):
                size[number], slide[number] = member.window.size_us, member.window.slide_us
            before[number], after[number] = member.before_us, member.after_us
            gone[number] = False
        return cls(size, slide, before, after, gone)

    def closing(self, members: Ints, slices: Ints) -> tuple[Ints, Ints]:
        """How many windows with its slice close for each row, and the start of the first."""
        size, slide = self.size_us[members], self.slide_us[members]
        # Windows start at multiples of the slide; both ends of the range are such multiples.
        first = np.maximum(self.before_us[members], slices) - size
        first = (first // slide + 1) * slide
        last = np.minimum(self.after_us[members] - size, slices) // slide * slide
        count = np.maximum((last - first) // slide + 1, 0)
        return np.where(self.gone[members], 0, count), first

    def are_needed(self, members: Ints, slices: Ints) -> Mask:
        """Whether some window that is still open has a row's slice."""
        slide = self.slide_us[members]
        last_end = slices // slide * slide + self.size_us[members]
        needed: Mask = ~self.gone[members] & (last_end > self.after_us[members])
        return needed


@dataclass(frozen=True)
class _SliceRun:
    """Partial aggregates of one or several batches; ``tier`` counts how often they were merged."""

    rows: pa.Table
    members: Ints
    slices: Ints
    tier: int = 0

    @classmethod
    def of(cls, rows: pa.Table, tier: int = 0) -> _SliceRun:
        return cls(rows, rows.column(MEMBER).to_numpy(), rows.column(SLICE).to_numpy(), tier)

    def chosen(self, which: Mask) -> _SliceRun:
        """The run with these rows only."""
        return _SliceRun.of(self.rows.filter(pa.array(which)), self.tier)


class WindowState:
    """The open windows of all members whose states have one shape."""

    def __init__(self, shape: StateShape) -> None:
        self.shape = shape
        self._runs: list[_SliceRun] = []

    @property
    def rows(self) -> int:
        """How many partial aggregates are kept."""
        return sum(run.rows.num_rows for run in self._runs)

    @property
    def size_bytes(self) -> int:
        """The memory that they take."""
        return sum(run.rows.nbytes for run in self._runs)

    def count_members(self, counts: Ints) -> None:
        """Adds the partial aggregates of every member to its count."""
        for run in self._runs:
            counts += np.bincount(run.members, minlength=len(counts))

    def add(self, partials: pa.Table) -> None:
        """Takes in partial aggregates."""
        self._runs.append(_SliceRun.of(partials.combine_chunks()))
        tier = 0
        while len(alike := [run for run in self._runs if run.tier == tier]) >= _RUNS_ALIKE:
            others = [run for run in self._runs if run.tier != tier]
            self._runs = [*others, _SliceRun.of(self._merge(alike), tier + 1)]
            tier += 1

    def absorb(self, other: WindowState) -> None:
        """Takes over all that another state keeps, of members that have nothing here."""
        self._runs += other._runs

    def _merge(self, runs: list[_SliceRun]) -> pa.Table:
        rows = pa.concat_tables([run.rows for run in runs])
        return merge_states(self.shape, rows, [MEMBER, SLICE, *self.shape.keys])

    def close(self, windows: MemberWindows) -> pa.Table | None:
        """The states of all groups of all windows that close, and lets go of what they alone need.

        One row for each member, window and key; None if no window closes.
        """
        closed = self.closing(windows)
        left = (_still_needed(run, windows) for run in self._runs)
        self._runs = [run for run in left if run is not None]
        return closed

    def closing(self, windows: MemberWindows) -> pa.Table | None:
        """The states of all groups of all windows that close; everything is kept."""
        found = [taken for run in self._runs if (taken := _take_closing(run, windows)) is not None]
        if not found:
            return None
        names = [MEMBER, START, *self.shape.keys]
        closed = merge_states(self.shape, pa.concat_tables(found), names)
        sizes = windows.size_us[closed.column(MEMBER).to_numpy()]
        return closed.append_column(END, pa.array(closed.column(START).to_numpy() + sizes))

    def dump(self) -> pa.Table | None:
        """All that is kept, one row a member, slice and key; None if nothing is."""
        return self._merge(self._runs) if self._runs else None


def _take_closing(run: _SliceRun, windows: MemberWindows) -> pa.Table | None:
    """A copy of each row for every closing window that has its slice."""
    count, first = windows.closing(run.members, run.slices)
    rows = np.flatnonzero(count)
    if not len(rows):
        return None
    count, first = count[rows], first[rows]
    copies = np.repeat(rows, count)
    nth = np.arange(len(copies)) - np.repeat(np.cumsum(count) - count, count)
    starts = np.repeat(first, count) + nth * windows.slide_us[run.members[copies]]
    return run.rows.take(pa.array(copies)).append_column(START, pa.array(starts))


def _still_needed(run: _SliceRun, windows: MemberWindows) -> _SliceRun | None:
    needed = windows.are_needed(run.members, run.slices)
    kept = int(needed.sum())
    if not kept:
        return None
    # Copying what is left pays once it is the smaller part.
    return run.chosen(needed) if 2 * kept < len(needed) else run
