"""Rows of a batch as Parquet files, by whichever way is cheaper for their number.

A Spark write job costs a fixed 100 to 200 ms but works on all cores; collecting the rows as Arrow
and writing them here costs next to nothing to begin with. Batches of a fragment are mostly alike
in size, so the last one decides the way of the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame

_COLLECTED_AT_MOST = 50_000
_COMPRESSION = "lz4"


class ParquetWriter:
    """Writes batch after batch."""

    def __init__(self) -> None:
        self._last_rows = 0

    def write(self, rows: DataFrame, folder: Path) -> list[tuple[Path, int]]:
        """Computes the rows into new files in ``folder``; the files with their row counts."""
        if self._last_rows <= _COLLECTED_AT_MOST:
            files = list(_collected(rows, folder))
        else:
            files = list(_by_spark(rows, folder))
        self._last_rows = sum(count for _, count in files)
        return files


def _collected(rows: DataFrame, folder: Path) -> Iterator[tuple[Path, int]]:
    table = rows.toArrow()
    if table.num_rows:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "part-0.parquet"
        pq.write_table(table, path, compression=_COMPRESSION)
        yield path, table.num_rows


def _by_spark(rows: DataFrame, folder: Path) -> Iterator[tuple[Path, int]]:
    rows.write.mode("overwrite").parquet(str(folder))
    for path in sorted(folder.glob("*.parquet")):
        count = pq.read_metadata(path).num_rows
        if count:
            yield path, count
