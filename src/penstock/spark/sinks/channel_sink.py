"""Results that other fragments read: batches of a channel."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from penstock.spark.channels.channel import Writer
from penstock.spark.channels.manifest import ChannelFile
from penstock.spark.sinks.batch import Batch


class ChannelSink:
    """Writes each batch as Parquet files and makes them visible by one manifest.

    A batch without rows leaves a manifest only if it moves the watermark or ends the stream.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def write(self, rows: DataFrame, batch: Batch) -> int:
        staging = self._writer.channel.data / f".staging-{self._writer.epoch}-{batch.id}"
        rows.write.mode("overwrite").parquet(str(staging))
        try:
            files = self._taken_over(staging, batch)
            if files or batch.ended or self._moves_time(batch):
                self._writer.commit(batch.id, files, batch.watermark_us, batch.ended)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        return sum(file.rows for file in files)

    def _moves_time(self, batch: Batch) -> bool:
        if batch.watermark_us is None:
            return False
        last = self._writer.last
        return last is None or last.watermark_us is None or batch.watermark_us > last.watermark_us

    def _taken_over(self, staging: Path, batch: Batch) -> list[ChannelFile]:
        last = self._writer.last
        if last is not None and batch.id <= last.batch_id:
            return []
        files = []
        for part in sorted(staging.glob("*.parquet")):
            count = pq.read_metadata(part).num_rows
            if count:
                name = f"{batch.id:010d}-{self._writer.epoch}-{len(files)}.parquet"
                part.replace(self._writer.channel.data / name)
                files.append(ChannelFile(name, count))
        return files
