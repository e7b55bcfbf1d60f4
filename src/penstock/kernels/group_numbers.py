"""The partition group of every row of an Arrow table: the numbers that Spark gets, too."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.load.arrays import Ints
from penstock.load.compiled import compiled
from penstock.model.partition_groups import BETWEEN, NOTHING, PartitionGroups

_POLYNOMIAL = 0xEDB88320


def group_numbers(rows: pa.Table | pa.RecordBatch, groups: PartitionGroups) -> Ints:
    """The number of each row's group: CRC-32 of its keys as text, modulo the number of groups.

    >>> rows = pa.table({"home": ["h1", "h2", "h1", None]})
    >>> group_numbers(rows, PartitionGroups(("home",), 8)).tolist()
    [2, 0, 2, 5]
    """
    texts = [_text(rows.column(key)) for key in groups.keys]
    between = pa.scalar(BETWEEN, pa.large_string())
    whole = pc.binary_join_element_wise(*texts, between) if len(texts) > 1 else texts[0]
    offsets, data = whole.buffers()[1:]
    places = np.frombuffer(offsets, np.int64)[whole.offset : whole.offset + len(whole) + 1]
    letters = np.frombuffer(data if data is not None else b"", np.uint8)
    return _remainders(letters, places, _TABLE, groups.count)


def in_groups(rows: pa.Table, groups: PartitionGroups) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each group that has any, in the order in which they came."""
    numbers = group_numbers(rows, groups)
    order = np.argsort(numbers, kind="stable")
    ordered, at = rows.take(order), 0
    for number, count in zip(*np.unique(numbers, return_counts=True), strict=True):
        yield int(number), ordered.slice(at, count)
        at += count


def _text(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Keys as text; with wide offsets, so that no batch is too large for them."""
    texts = column.cast(pa.string()).cast(pa.large_string())
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
    return texts.fill_null(NOTHING)


def _checksum_table() -> npt.NDArray[np.uint32]:
    """What a byte does to the checksum (IEEE 802.3), as zlib and Spark have it."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = (table >> np.uint32(1)) ^ (np.uint32(_POLYNOMIAL) * (table & np.uint32(1)))
    table.setflags(write=False)
    return table


_TABLE = _checksum_table()


@compiled
def _remainders(
    letters: npt.NDArray[np.uint8], places: Ints, table: npt.NDArray[np.uint32], count: int
) -> Ints:
    found = np.empty(len(places) - 1, np.int64)
    for at in range(len(found)):
        check = np.uint32(0xFFFFFFFF)
        for letter in range(places[at], places[at + 1]):
            check = table[(check ^ letters[letter]) & np.uint32(255)] ^ (check >> np.uint32(8))
        found[at] = np.int64(check ^ np.uint32(0xFFFFFFFF)) % count
    return found
