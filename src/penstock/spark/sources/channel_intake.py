"""Reading a channel: batches by sequence number, only the columns that are needed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.errors import RunError
from penstock.feeds.arrow import arrow_schema
from penstock.spark.channels.channel import Channel
from penstock.spark.channels.manifest import ChannelFile, Manifest
from penstock.spark.sources.beats import END_OF_TIME_US
from penstock.spark.sources.intake import Offset, Slice
from penstock.spark.sources.spec import ReaderSpec

_ROWS_PER_SLICE = 5_000
_ROWS_PER_BATCH = 32_768


class ChannelIntake:
    """Reads the batches of a channel in order and tells the channel how far it has come."""

    def __init__(self, spec: ReaderSpec) -> None:
        self._spec = spec
        self._channel = Channel.open(Path(str(spec.origin["folder"])))
        self._schema = arrow_schema(spec.read_schema)

    def first(self) -> Offset:
        return {"next": self._channel.oldest()}

    def latest(self, start: Offset, max_rows: int | None) -> Offset:
        end, rows = start, 0
        for manifest in self._channel.newer(_next(start)):
            rows += manifest.rows
            if end is not start and max_rows is not None and rows > max_rows:
                break
            end = _after(manifest, end)
        return end

    def slices(self, start: Offset, end: Offset) -> list[Slice]:
        manifests = self._channel.manifests(_next(start), _next(end))
        files = [file for manifest in manifests for file in manifest.files if file.rows]
        total = sum(file.rows for file in files)
        count = max(1, min(self._spec.parallelism, total // _ROWS_PER_SLICE))
        edges = [total * k // count for k in range(count + 1)]
        bodies = [{"ranges": ranges(files, *pair)} for pair in pairwise(edges)]
        watermark_us = end.get("watermark_us")
        assert watermark_us is None or isinstance(watermark_us, int)
        return [Slice(body) for body in bodies[:-1]] + [Slice(bodies[-1], watermark_us)]

    def read(self, part: Slice) -> Iterator[pa.RecordBatch]:
        found = part.body["ranges"]
        assert isinstance(found, list)
        for name, start, stop in found:
            yield from self._read_file(self._channel.data / name, start, stop)

    def _read_file(self, path: Path, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        try:
            with pq.ParquetFile(path, memory_map=True) as file:
                yield from self._rows(file, start, stop)
        except (OSError, pa.ArrowException) as error:
            raise RunError(
                f"the channel file {path} cannot be read ({error})",
                hint="Restore the file from a backup, or start afresh with --fresh.",
            ) from None

    def _rows(self, file: pq.ParquetFile, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        columns = list(self._spec.columns)
        at = 0
        for group in range(file.num_row_groups):
            size = file.metadata.row_group(group).num_rows
            low, high = max(start - at, 0), min(stop - at, size)
            at += size
            if low < high:
                rows = file.read_row_group(group, columns=columns).slice(low, high - low)
                yield from rows.select(columns).cast(self._schema).to_batches(_ROWS_PER_BATCH)

    def commit(self, end: Offset) -> None:
        self._channel.advance(self._spec.reader, _next(end))


def ranges(files: list[ChannelFile], start: int, stop: int) -> list[list[object]]:
    """The rows ``start`` to ``stop - 1`` of all files in a row, as (name, first, past the last).

    >>> ranges([ChannelFile("a", 10), ChannelFile("b", 10)], 5, 12)
    [['a', 5, 10], ['b', 0, 2]]
    """
    found: list[list[object]] = []
    at = 0
    for file in files:
        low, high = max(start - at, 0), min(stop - at, file.rows)
        if low < high:
            found.append([file.name, low, high])
        at += file.rows
    return found


def _next(offset: Offset) -> int:
    return int(str(offset["next"]))


def _after(manifest: Manifest, before: Offset) -> Offset:
    offset: Offset = {"next": manifest.sequence + 1}
    if manifest.ended:
        return offset | {"ended": True, "watermark_us": END_OF_TIME_US}
    told = (manifest.watermark_us, before.get("watermark_us"))
    known = [one for one in told if isinstance(one, int)]
    return offset | {"watermark_us": max(known)} if known else offset
