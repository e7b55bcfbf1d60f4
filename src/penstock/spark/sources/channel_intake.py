"""Reading a channel: batches by sequence number, only the columns that are needed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.errors import RunError
from penstock.feeds.arrow import arrow_schema
from penstock.spark.channels.channel import Channel
from penstock.spark.channels.manifest import Manifest
from penstock.spark.sources.beats import END_OF_TIME_US
from penstock.spark.sources.intake import Offset, Slice
from penstock.spark.sources.spec import ReaderSpec


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
        count = max(1, min(self._spec.parallelism, len(files)))
        watermark_us = end.get("watermark_us")
        assert watermark_us is None or isinstance(watermark_us, int)
        bodies = [{"files": [one.name for one in files[k::count]]} for k in range(count)]
        return [Slice(body) for body in bodies[:-1]] + [Slice(bodies[-1], watermark_us)]

    def read(self, part: Slice) -> Iterator[pa.RecordBatch]:
        names = part.body["files"]
        assert isinstance(names, list)
        for name in names:
            yield from self._read_file(self._channel.data / name)

    def _read_file(self, path: Path) -> Iterator[pa.RecordBatch]:
        try:
            with pq.ParquetFile(path, memory_map=True) as file:
                for batch in file.iter_batches(columns=list(self._spec.columns)):
                    rows = pa.Table.from_batches([batch]).select(list(self._spec.columns))
                    yield from rows.cast(self._schema).to_batches()
        except (OSError, pa.ArrowException) as error:
            raise RunError(
                f"the channel file {path} cannot be read ({error})",
                hint="Restore the file from a backup, or start afresh with --fresh.",
            ) from None

    def commit(self, end: Offset) -> None:
        self._channel.advance(self._spec.reader, _next(end))


def _next(offset: Offset) -> int:
    return int(str(offset["next"]))


def _after(manifest: Manifest, before: Offset) -> Offset:
    offset: Offset = {"next": manifest.sequence + 1}
    if manifest.ended:
        return offset | {"ended": True, "watermark_us": END_OF_TIME_US}
    told = (manifest.watermark_us, before.get("watermark_us"))
    known = [one for one in told if isinstance(one, int)]
    return offset | {"watermark_us": max(known)} if known else offset
