"""Rows of a batch as Parquet files, by whichever way is cheaper for their number.

A Spark write job costs a fixed 100 to 200 ms but works on all cores; collecting the rows as Arrow
and writing them here costs next to nothing to begin with. Batches of a fragment are mostly alike
in size, so the last one decides the way of the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from penstock.model.partition_groups import PartitionGroups
from penstock.spark.group_column import group_column
from penstock.spark.sinks.batch import Rows, collect

_COLLECTED_AT_MOST = 50_000
_COMPRESSION = "lz4"
_GROUP = "__group"


@dataclass(frozen=True)
class Written:
    """A file with rows of a batch, all of one group if there are groups.

    ``latest`` are the latest times of its rows, in microseconds, for the columns asked about.
    """

    path: Path
    rows: int
    group: int | None = None
    latest: Mapping[str, int] = field(default_factory=dict)


class ParquetWriter:
    """Writes batch after batch; with ``groups``, the rows of each into files of their own.

    The latest times in the columns called ``times`` are told with every file.
    """

    def __init__(self, groups: PartitionGroups | None = None, times: tuple[str, ...] = ()) -> None:
        self._groups = groups
        self._times = times
        self._last_rows = 0

    def write(self, rows: Rows, folder: Path) -> list[Written]:
        """Computes the rows into new files in ``folder``."""
        if isinstance(rows, pa.Table) or self._last_rows <= _COLLECTED_AT_MOST:
            files = list(_collected(rows, folder, self._groups, self._times))
        else:
            files = list(_by_spark(rows, folder, self._groups, self._times))
        self._last_rows = sum(file.rows for file in files)
        return files


def _collected(
    rows: Rows, folder: Path, groups: PartitionGroups | None, times: tuple[str, ...]
) -> Iterator[Written]:
    table = collect(rows)
    if not table.num_rows:
        return
    folder.mkdir(parents=True, exist_ok=True)
    parts: Iterable[tuple[int | None, pa.Table]] = [(None, table)]
    if groups is not None:
        # Only now: whoever writes without groups need not wait for a compiler.
        from penstock.kernels.group_numbers import in_groups

        parts = in_groups(table, groups)
    for group, part in parts:
        path = folder / f"part-{group or 0}.parquet"
        pq.write_table(part, path, compression=_COMPRESSION)
        yield Written(path, part.num_rows, group, latest_times(part, times))


def _by_spark(
    rows: DataFrame, folder: Path, groups: PartitionGroups | None, times: tuple[str, ...]
) -> Iterator[Written]:
    if groups is None:
        rows.write.mode("overwrite").parquet(str(folder))
    else:
        marked = rows.withColumn(_GROUP, group_column(groups))
        marked.write.mode("overwrite").partitionBy(_GROUP).parquet(str(folder))
    for path in sorted(folder.rglob("*.parquet")):
        count = pq.read_metadata(path).num_rows
        if count:
            name, _, group = path.parent.name.rpartition("=")
            latest = latest_times(pq.read_table(path, columns=list(times)), times) if times else {}
            yield Written(path, count, int(group) if name == _GROUP else None, latest)


def latest_times(rows: pa.Table, columns: tuple[str, ...]) -> dict[str, int]:
    """The latest time in each of these columns, in microseconds, where there is any.

    >>> rows = pa.table({"ts": pa.array([10, 30, None], pa.timestamp("us", "UTC"))})
    >>> latest_times(rows, ("ts",))
    {'ts': 30}
    """
    found = {name: pc.max(rows[name].cast(pa.timestamp("us", "UTC"))) for name in columns}
    return {name: statistic.value for name, statistic in found.items() if statistic.is_valid}
