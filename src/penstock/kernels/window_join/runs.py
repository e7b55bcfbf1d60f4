"""Runs: the rows of some batches of one side, immutable, with an index sorted by key and time.

The rows stay as they came; the index has a *place*, a time and a row number for each row with
complete keys. A place is 64 bits: the number of the row's partition group, then the most
significant bits of its key's hash. A group is therefore a slice of the index, and a mini-partition
of it (all hashes that begin with certain bits) a slice of that slice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels.group_numbers import group_numbers
from penstock.kernels.window_join.hashing import Bits, hash_keys
from penstock.kernels.window_join.sorting import Rows, merge, order_by
from penstock.kernels.window_join.terms import RunLayout
from penstock.load.arrays import Ints, frozen
from penstock.model.partition_groups import PartitionGroups

NO_TIME = np.iinfo(np.int64).min
"""Stands for the time of a row that has none."""


@dataclass(frozen=True, eq=False)
class SortedRun:
    """Rows as they came, and the index of those that can have partners.

    >>> layout = RunLayout(("ts", "k"), ("k",), (pa.int64(),), "ts", groups=1)
    >>> ts = pa.array([30, 10, 20], pa.timestamp("us", "UTC"))
    >>> run = SortedRun.of(pa.table({"ts": ts, "k": [7, 7, None]}), layout)
    >>> run.times.tolist(), run.row_numbers.tolist(), run.rows.num_rows
    ([10, 30], [1, 0], 3)
    """

    rows: pa.RecordBatch
    places: Bits
    times: Ints
    row_numbers: Rows

    def __post_init__(self) -> None:
        for index in (self.places, self.times, self.row_numbers):
            frozen(index)

    @classmethod
    def of(cls, rows: pa.Table, layout: RunLayout) -> SortedRun:
        """The run of a batch's rows: hashed and sorted, in time linear in the rows."""
        batch = one_batch(rows.select(layout.columns))
        times = times_us(batch, layout.time)
        places, complete = _places(batch, layout)
        present = times != NO_TIME
        usable = present if complete is None else present & complete
        if usable.all():
            order = order_by(places, times)
            return cls(batch, places[order], times[order], order)
        kept = np.flatnonzero(usable).astype(np.uint32)
        order = kept[order_by(places[kept], times[kept])]
        return cls(batch, places[order], times[order], order)

    @classmethod
    def merge(cls, earlier: SortedRun, later: SortedRun) -> SortedRun:
        """The run of both runs' rows; nothing is hashed or sorted again."""
        rows = one_batch(pa.Table.from_batches([earlier.rows, later.rows]))
        index = merge(
            earlier.places, earlier.times, earlier.row_numbers,
            later.places, later.times, later.row_numbers, earlier.rows.num_rows,
        )  # fmt: skip
        return cls(rows, *index)

    @property
    def size_bytes(self) -> int:
        """What it takes in memory, or in the pages of a file."""
        index = self.places.nbytes + self.times.nbytes + self.row_numbers.nbytes
        return int(self.rows.nbytes) + index

    def place_range(self, first: int, stop: int) -> slice:
        """Where the index has the places from ``first`` to ``stop - 1``."""
        ends = np.array([first, min(stop, (1 << 64) - 1)], np.uint64)
        low, high = np.searchsorted(self.places, ends)
        return slice(int(low), len(self.places) if stop >> 64 else int(high))

    def of_groups(self, owned: frozenset[int], groups: int) -> SortedRun:
        """The same rows with the index of these groups only, among so many; still sorted."""
        shift = np.uint64(64 - group_bits(groups)) if groups > 1 else np.uint64(0)
        numbers = self.places >> shift if groups > 1 else np.zeros(len(self.places), np.uint64)
        within = np.flatnonzero(np.isin(numbers, np.array(sorted(owned), np.uint64)))
        return SortedRun(
            self.rows, self.places[within], self.times[within], self.row_numbers[within]
        )

    def part(self, within: slice) -> SortedRun:
        """The same rows with a part of the index; copies nothing."""
        return SortedRun(
            self.rows, self.places[within], self.times[within], self.row_numbers[within]
        )


def one_batch(rows: pa.Table) -> pa.RecordBatch:
    """All rows of a table in one piece."""
    pieces = rows.combine_chunks().to_batches()
    if len(pieces) == 1:
        return pieces[0]
    return pa.RecordBatch.from_arrays(
        [pa.concat_arrays([piece[name] for piece in pieces] or [pa.array([], rows[name].type)])
         for name in rows.column_names],
        schema=rows.schema,
    )  # fmt: skip


def times_us(rows: pa.RecordBatch, column: str) -> Ints:
    """The event times in microseconds since 1970; ``NO_TIME`` where there is none."""
    stamps = rows.column(column)
    if stamps.type.unit != "us":
        stamps = stamps.cast(pa.timestamp("us", stamps.type.tz))
    numbers = stamps.view(pa.int64())
    if numbers.null_count:
        numbers = pc.fill_null(numbers, NO_TIME)
    return np.asarray(numbers.to_numpy(), np.int64)


def key_columns(rows: pa.RecordBatch, layout: RunLayout) -> list[pa.Array]:
    """The keys as the types in which both sides compare them."""
    pairs = zip(layout.keys, layout.types, strict=True)
    columns = ((rows.column(key), type) for key, type in pairs)
    return [
        column if column.type == type else column.cast(type, safe=False) for column, type in columns
    ]


def group_bits(groups: int) -> int:
    """How many bits of a place say the group.

    >>> group_bits(1), group_bits(2), group_bits(60), group_bits(1024)
    (0, 1, 6, 10)
    """
    return (groups - 1).bit_length()


def groups_of(rows: pa.RecordBatch, layout: RunLayout) -> Ints:
    """The partition group of every row, also of those that can have no partner."""
    if layout.groups == 1:
        return np.zeros(rows.num_rows, np.int64)
    return group_numbers(rows, PartitionGroups(layout.keys, layout.groups))


def _places(rows: pa.RecordBatch, layout: RunLayout) -> tuple[Bits, np.ndarray | None]:
    hashes, complete = hash_keys(key_columns(rows, layout), rows.num_rows)
    bits = group_bits(layout.groups)
    if bits:
        sharing = PartitionGroups(layout.keys, layout.groups)
        numbers = group_numbers(rows, sharing).astype(np.uint64)
        hashes = (hashes >> np.uint64(bits)) | (numbers << np.uint64(64 - bits))
    return hashes, complete
