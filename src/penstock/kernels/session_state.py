"""The open sessions of many members: one partial aggregate each, until watermarks close them.

A session is known as a stretch of time: from its first row to the gap after its last one, both of
which belong to it. Two stretches of a key that touch are one session, so merging needs to know
nothing else, and a watermark closes a session once it has passed the end: a row at the end itself
could still come, and would go on with it.

All sessions that are kept lie apart from each other. A batch takes those out that its rows touch,
merges them, and puts what they have become into a new *run*, a table ordered by a hash of the keys;
runs of about the same size become one. So a batch costs its rows and the sessions that they touch
or that end, times the logarithm of how many are kept. Those that nothing happens to are not looked
at.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels.segments import Ints, group_rows, join_touching
from penstock.kernels.state_shape import END, MEMBER, START, StateShape, merge_segments
from penstock.kernels.window_join.hashing import Bits, hash_keys
from penstock.kernels.window_state import Mask, MemberWindows
from penstock.load.compiled import compiled

_NEVER_US = np.iinfo(np.int64).max


class SessionState:
    """The open sessions of all members whose states have one shape."""

    def __init__(self, shape: StateShape) -> None:
        self.shape = shape
        self._runs: list[_SessionRun] = []

    @property
    def rows(self) -> int:
        """How many sessions are kept."""
        return sum(run.count for run in self._runs)

    @property
    def size_bytes(self) -> int:
        """The memory that they take."""
        return sum(run.rows.nbytes for run in self._runs)

    def count_members(self, counts: Ints) -> None:
        """Adds the sessions of every member to its count."""
        for run in self._runs:
            counts += np.bincount(run.members[run.alive], minlength=len(counts))

    def add(self, partials: pa.Table) -> None:
        """Takes in what rows have made of sessions."""
        rows = partials.combine_chunks()
        hashes, starts, ends = self._hash(rows), _numbers(rows, START), _numbers(rows, END)
        touched = [run.take_touching(hashes, starts, ends) for run in self._runs]
        whole = pa.concat_tables([rows, *(taken for taken in touched if taken.num_rows)])
        self._runs.append(self._run(self._merge(whole)))
        self._runs = self._join_alike()

    def absorb(self, other: SessionState) -> None:
        """Takes over all that another state keeps, of members that have nothing here."""
        self._runs += other._runs

    def close(self, windows: MemberWindows) -> pa.Table | None:
        """The states of all sessions that end before the time that members have come to.

        One row for each session; None if none ends. Those that had ended before are let go of
        without a word: what is read from a log holds them until somebody looks at the time.
        """
        ended = [run.take_ended(windows) for run in self._runs]
        self._runs = self._join_alike()
        found = pa.concat_tables(ended) if ended else None
        if found is None or not found.num_rows:
            return None
        return found.take(np.lexsort((_numbers(found, START), _numbers(found, END))))

    def dump(self) -> pa.Table | None:
        """All that is kept, one row a session; None if nothing is."""
        kept = [run.kept for run in self._runs if run.count]
        return pa.concat_tables(kept) if kept else None

    def _hash(self, rows: pa.Table) -> Bits:
        return _hash_rows(rows, [MEMBER, *self.shape.keys])

    def _merge(self, rows: pa.Table) -> pa.Table:
        rows = rows.combine_chunks()
        names = [MEMBER, *self.shape.keys]
        by_key = group_rows([_whole(rows, name) for name in names], rows.num_rows)
        starts, ends = _numbers(rows, START), _numbers(rows, END)
        pieces = join_touching(by_key, starts, ends)
        merged = merge_segments(self.shape, rows, names, pieces)
        for name, times in ((START, pieces.min(starts)), (END, pieces.max(ends))):
            merged = merged.append_column(name, pa.array(times))
        return merged.select(rows.column_names)

    def _run(self, rows: pa.Table) -> _SessionRun:
        return _SessionRun(rows, self._hash(rows))

    def _join_alike(self) -> list[_SessionRun]:
        """The runs, each more than twice as long as the one before it."""
        joined: list[_SessionRun] = []
        for run in sorted(self._runs, key=lambda run: run.count):
            while joined and run.count <= 2 * joined[-1].count:
                run = self._run(pa.concat_tables([joined.pop().kept, run.kept]))
            if run.count:
                joined.append(self._run(run.kept) if 2 * run.count < len(run.alive) else run)
        return joined


class _SessionRun:
    """Sessions that lie apart from each other, by the hash of their keys, then by start.

    What is taken out stays in its place, but is not ``alive`` any more.
    """

    def __init__(self, rows: pa.Table, hashes: Bits) -> None:
        order = np.lexsort((_numbers(rows, START), hashes))
        self.rows, self.hashes = rows.take(order).combine_chunks(), hashes[order]
        self.members = _numbers(self.rows, MEMBER)
        self.alive: Mask = np.ones(len(order), bool)
        self.count = len(order)
        self._starts, self._ends = _numbers(self.rows, START), _numbers(self.rows, END)
        self._reach = _reach(self.hashes, self._ends)
        self._by_end = np.lexsort((self._ends, self.members))
        self._owners, first = np.unique(self.members[self._by_end], return_index=True)
        self._edges = np.append(first, len(order))
        self._next = first

    @property
    def kept(self) -> pa.Table:
        """The sessions that were not taken out."""
        return self.rows if self.count == len(self.alive) else self.rows.filter(self.alive)

    def take_touching(self, hashes: Bits, starts: Ints, ends: Ints) -> pa.Table:
        """Takes all sessions out that touch one of these stretches of their key.

        And those of keys with the same hash: they are put back together with the others.
        """
        first = np.searchsorted(self.hashes, hashes, "left")
        last = np.searchsorted(self.hashes, hashes, "right")
        stretches = (self._starts, self._ends, self._reach, self.alive)
        taken = _touching(first, last, starts, ends, *stretches)
        self.count -= len(taken)
        return self.rows.take(taken)

    def take_ended(self, windows: MemberWindows) -> pa.Table:
        """Takes out what has ended and what is nobody's any more; gives what has ended now."""
        gone = windows.gone[self._owners]
        before = np.where(gone, _NEVER_US, windows.before_us[self._owners])
        after = np.where(gone, _NEVER_US, windows.after_us[self._owners])
        ended = _ended(after, self._edges, self._next, self._by_end, self._ends, self.alive)
        self.count -= len(ended)
        places = np.searchsorted(self._owners, self.members[ended])
        return self.rows.take(ended[self._ends[ended] >= before[places]])


def _whole(rows: pa.Table, name: str) -> pa.Array:
    column = rows.column(name)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _numbers(rows: pa.Table, name: str) -> Ints:
    # A copy, because loops are compiled for arrays that may be written to.
    return np.array(rows.column(name), np.int64)


def _hash_rows(rows: pa.Table, names: Sequence[str]) -> Bits:
    """The hash of these columns, in which null is as good as empty."""
    columns = [_whole(rows, name) for name in names]
    filled = [
        pc.fill_null(column, pa.scalar("").cast(column.type)) if _is_text(column) else column
        for column in columns
    ]
    return hash_keys(filled, rows.num_rows)[0]


def _is_text(column: pa.Array) -> bool:
    return bool(pa.types.is_string(column.type) or pa.types.is_binary(column.type))


@compiled
def _reach(hashes: Bits, ends: Ints) -> Ints:
    """The latest end so far among those with the same hash: it grows, even where hashes collide."""
    reach = ends.copy()
    for at in range(1, len(ends)):
        if hashes[at] == hashes[at - 1]:
            reach[at] = max(reach[at], reach[at - 1])
    return reach


@compiled
def _touching(
    first: Ints,
    last: Ints,
    new_starts: Ints,
    new_ends: Ints,
    starts: Ints,
    ends: Ints,
    reach: Ints,
    alive: Mask,
) -> Ints:
    """The places of all that touch one of the new stretches, each once; they are alive no more."""
    taken = []
    for new in range(len(first)):
        low, high = first[new], last[new]
        while low < high:
            middle = (low + high) // 2
            if reach[middle] < new_starts[new]:
                low = middle + 1
            else:
                high = middle
        while low < last[new] and starts[low] <= new_ends[new]:
            if alive[low] and ends[low] >= new_starts[new]:
                alive[low] = False
                taken.append(low)
            low += 1
    return np.array(taken, np.int64)


@compiled
def _ended(
    after: Ints, edges: Ints, following: Ints, by_end: Ints, ends: Ints, alive: Mask
) -> Ints:
    """The places of all that end before their owner's time, which are alive no more.

    ``following`` is the next to be looked at of each owner, and moves on.
    """
    taken = []
    for owner in range(len(after)):
        at = following[owner]
        while at < edges[owner + 1] and ends[by_end[at]] < after[owner]:
            if alive[by_end[at]]:
                alive[by_end[at]] = False
                taken.append(by_end[at])
            at += 1
        following[owner] = at
    return np.array(taken, np.int64)
