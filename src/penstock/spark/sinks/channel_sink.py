"""Results that other fragments read: batches of a channel."""

from __future__ import annotations

import shutil

from pyspark.sql import DataFrame

from penstock.model.partition_groups import PartitionGroups
from penstock.spark.channels.channel import Writer
from penstock.spark.channels.files import described, file_name
from penstock.spark.sinks.batch import Batch
from penstock.spark.sinks.parquet import ParquetWriter, Written


class ChannelSink:
    """Writes each batch as Parquet files and makes them visible by one manifest.

    A batch without rows leaves a manifest only if it moves the watermark or ends the stream.
    """

    def __init__(self, writer: Writer, groups: PartitionGroups | None = None) -> None:
        self._writer = writer
        self._parquet = ParquetWriter(groups)

    def write(self, rows: DataFrame, batch: Batch) -> int:
        staging = self._writer.channel.data / f".staging-{self._writer.epoch}-{batch.id}"
        try:
            written = self._parquet.write(rows, staging)
            if not self._is_committed(batch):
                self._commit(written, batch)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        return sum(file.rows for file in written)

    def _is_committed(self, batch: Batch) -> bool:
        last = self._writer.last
        return last is not None and batch.id <= last.batch_id

    def _commit(self, written: list[Written], batch: Batch) -> None:
        # A new owner deletes what former ones were about to write.
        self._writer.check_owner()
        files = []
        for at, file in enumerate(written):
            target = self._writer.channel.data / file_name(batch.id, self._writer.epoch, at)
            file.path.replace(target)
            files.append(described(target, file.rows, file.group))
        if files or batch.ended or self._moves_time(batch):
            self._writer.commit(
                batch.id, files, batch.watermark_us, batch.ended, arrived_s=batch.arrived_s
            )

    def _moves_time(self, batch: Batch) -> bool:
        if batch.watermark_us is None:
            return False
        last = self._writer.last
        return last is None or last.watermark_us is None or batch.watermark_us > last.watermark_us
