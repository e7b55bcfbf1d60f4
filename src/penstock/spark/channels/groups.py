"""The partition group of every row, for Arrow and for Spark: both give the same numbers."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F

from penstock.model.partition_groups import BETWEEN, NOTHING, PartitionGroups


def group_column(groups: PartitionGroups) -> Column:
    """The number of each row's group, to be computed by Spark."""
    texts = [F.coalesce(F.col(f"`{key}`").cast("string"), F.lit(NOTHING)) for key in groups.keys]
    check = F.crc32(F.encode(F.concat_ws(BETWEEN, *texts), "UTF-8"))
    return F.pmod(check, F.lit(groups.count)).cast("int")


def group_numbers(rows: pa.Table, groups: PartitionGroups) -> np.ndarray:
    """The number of each row's group. A checksum is made once for every value, not for every row.

    >>> rows = pa.table({"home": ["h1", "h2", "h1", None]})
    >>> group_numbers(rows, PartitionGroups(("home",), 8)).tolist()
    [2, 0, 2, 5]
    """
    texts = [rows[key].cast(pa.string()).combine_chunks().fill_null(NOTHING) for key in groups.keys]
    whole = pc.binary_join_element_wise(*texts, BETWEEN) if len(texts) > 1 else texts[0]
    encoded = whole.dictionary_encode()
    numbers = [zlib.crc32(text.encode()) % groups.count for text in encoded.dictionary.to_pylist()]
    return np.array(numbers, np.int64)[encoded.indices.to_numpy()]


def in_groups(rows: pa.Table, groups: PartitionGroups) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each group that has any, in the order in which they came."""
    numbers = group_numbers(rows, groups)
    order = np.argsort(numbers, kind="stable")
    ordered, at = rows.take(order), 0
    for number, count in zip(*np.unique(numbers, return_counts=True), strict=True):
        yield int(number), ordered.slice(at, count)
        at += count
