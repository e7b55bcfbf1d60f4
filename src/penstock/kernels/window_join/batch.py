"""One batch of a join: a function of the rows of both sides and of recorded offsets, nothing else.

Batch n joins the new left rows with the right rows up to n, and the left rows before n with the new
right rows. Every pair comes exactly once, in the batch that has the later of the two to arrive; how
rows are cut into batches changes when a pair comes, not whether.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.errors import InputError
from penstock.kernels.window_join.pairs import find_unmatched, join_runs
from penstock.kernels.window_join.run_cache import RunCache
from penstock.kernels.window_join.runs import NO_TIME, SortedRun, groups_of, one_batch, times_us
from penstock.kernels.window_join.terms import JoinOffset, JoinTerms, SideOffset
from penstock.kernels.window_join.window import SideBatches, SideWindow
from penstock.load.arrays import Flags

_END = 1 << 62


@dataclass(frozen=True)
class Horizon:
    """The earliest times of left and right rows that may still have partners."""

    left_us: int
    right_us: int

    @classmethod
    def of(cls, terms: JoinTerms, offset: JoinOffset) -> Horizon:
        """What the watermarks of an offset leave in the windows.

        A left row waits for right rows up to ``upper`` after it, a right row for left rows down to
        ``lower`` before it. Left rows that are not given up yet need their whole bound once more.
        """
        left, right = _at(offset.left), _at(offset.right)
        bound = terms.bound
        right_us = left + bound.lower_us
        if terms.kind == "left":
            right_us = min(right_us, right - bound.upper_us + bound.lower_us)
        return cls(_clip(right - bound.upper_us), _clip(right_us))


def join_batch(
    terms: JoinTerms,
    left: SideBatches,
    right: SideBatches,
    before: JoinOffset,
    after: JoinOffset,
    cache: RunCache | None = None,
    owned: frozenset[int] | None = None,
) -> Iterator[pa.Table]:
    """The joined rows of one batch, which takes a join from one offset to another.

    The rows do not depend on the cache, and the same offsets give them in the same order. With
    ``owned`` only those of these partition groups are given.
    """
    _check_forward(before, after)
    kept = cache or RunCache()
    horizon = Horizon.of(terms, before)
    lefts = SideWindow(left, terms.layout(terms.left), kept)
    rights = SideWindow(right, terms.layout(terms.right), kept)
    right_old = rights.runs(before.right.first, before.right.stop)
    right_new = rights.exact_runs(before.right.stop, after.right.stop)
    left_new = lefts.exact_runs(before.left.stop, after.left.stop)
    needs_old = right_new or terms.kind == "left"
    left_old = lefts.runs(before.left.first, before.left.stop) if needs_old else []
    # Partners are of one group, so it is enough to look for those of the owned rows.
    for new in _of_groups(terms, left_new, owned):
        for run in (*right_old, *right_new):
            yield from join_runs(terms, new, run, "left", horizon.right_us)
    for new in _of_groups(terms, right_new, owned):
        for run in left_old:
            yield from join_runs(terms, new, run, "right", horizon.left_us)
    if terms.kind == "left":
        given_up = _give_up(terms, left_old, left_new, before, after, owned)
        if given_up is not None:
            right_all = (*right_old, *right_new)
            alone = find_unmatched(terms, given_up, right_all, horizon.right_us)
            if alone.num_rows:
                yield alone


def _of_groups(
    terms: JoinTerms, runs: list[SortedRun], owned: frozenset[int] | None
) -> list[SortedRun]:
    return runs if owned is None else [run.of_groups(owned, terms.groups) for run in runs]


def advance(
    terms: JoinTerms, left: SideBatches, right: SideBatches, before: JoinOffset, after: JoinOffset
) -> JoinOffset:
    """The offset with its windows moved up: batches before their first can be thrown away."""
    horizon = Horizon.of(terms, after)
    return JoinOffset(
        _move_up(left, before.left.first, after.left, horizon.left_us),
        _move_up(right, before.right.first, after.right, horizon.right_us),
    )


def retire(
    terms: JoinTerms, left: SideBatches, right: SideBatches, offset: JoinOffset, cache: RunCache
) -> None:
    """Lets go of the runs that no batch after ``offset`` needs."""
    SideWindow(left, terms.layout(terms.left), cache).retire(offset.left.first)
    SideWindow(right, terms.layout(terms.right), cache).retire(offset.right.first)


def _move_up(batches: SideBatches, first: int, offset: SideOffset, earliest_us: int) -> SideOffset:
    while first < offset.stop:
        latest_us = batches.latest_us(first)
        if latest_us is not None and latest_us >= earliest_us:
            break
        first += 1
    return SideOffset(first, offset.stop, offset.watermark_us)


def _give_up(
    terms: JoinTerms,
    old: list[SortedRun],
    new: list[SortedRun],
    before: JoinOffset,
    after: JoinOffset,
    owned: frozenset[int] | None,
) -> SortedRun | None:
    """The left rows that the right watermark has now passed: each in exactly one batch."""
    upper_us = terms.bound.upper_us
    passed, now = (_clip(_at(offset.right) - upper_us) for offset in (before, after))
    layout = terms.layout(terms.left)
    chosen = []
    for run in old:
        times = times_us(run.rows, layout.time)
        chosen.append(_select(run, (times >= passed) & (times < now) & (times != NO_TIME)))
    for run in new:
        # A row without a time, which is before all others, has no partner and is given up at once.
        chosen.append(_select(run, times_us(run.rows, layout.time) < now))
    rows = pa.concat_tables(chosen) if chosen else None
    if rows is not None and owned is not None and rows.num_rows:
        numbers = groups_of(one_batch(rows), layout)
        rows = rows.take(np.flatnonzero(np.isin(numbers, sorted(owned))))
    return SortedRun.of(rows, layout) if rows is not None and rows.num_rows else None


def _select(run: SortedRun, wanted: Flags) -> pa.Table:
    return pa.Table.from_batches([run.rows]).take(np.flatnonzero(wanted))


def _at(offset: SideOffset) -> int:
    return -_END if offset.watermark_us is None else offset.watermark_us


def _clip(time_us: int) -> int:
    """Within what 64 bits hold, with room for a bound."""
    return max(-_END, min(time_us, _END))


def _check_forward(before: JoinOffset, after: JoinOffset) -> None:
    for name in ("left", "right"):
        earlier, later = getattr(before, name), getattr(after, name)
        if later.stop < earlier.stop or _at(later) < _at(earlier):
            raise InputError(
                f"the {name} side of a join would go back, from {earlier} to {later}",
                hint="Offsets and watermarks of later batches are never lower.",
            )
