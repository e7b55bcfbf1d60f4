"""Results as files: one subdirectory a batch, there whole or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame

from penstock.model.sources import FileSink
from penstock.spark.counting import counted
from penstock.spark.sinks.batch import Batch
from penstock.spark.sinks.parquet import ParquetWriter

CheckOwner = Callable[[], None]


class DirectorySink:
    """Appends each batch to the directory as ``batch=<writer>-<id>``.

    A batch is written aside and renamed into place, so readers never see half of one, and a batch
    offered again finds itself already there. Names with a dot or underscore in front are scratch.
    ``check_owner`` raises when somebody else has taken over.
    """

    def __init__(self, sink: FileSink, writer: str, epoch: int, check_owner: CheckOwner) -> None:
        self._sink = sink
        self._writer = writer
        self._epoch = epoch
        self._check_owner = check_owner
        self._parquet = ParquetWriter()

    def write(self, rows: DataFrame, batch: Batch) -> int:
        staging = self._sink.path / f"_staging-{self._writer}-{self._epoch}-{batch.id}"
        final = self._sink.path / f"batch={self._writer}-{batch.id:08d}"
        try:
            count = self._staged(rows, staging)
            self._check_owner()
            if count and not final.exists():
                staging.rename(final)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        return count

    def _staged(self, rows: DataFrame, staging: Path) -> int:
        shutil.rmtree(staging, ignore_errors=True)
        if self._sink.format == "parquet":
            return sum(file.rows for file in self._parquet.write(rows, staging))
        counting, count = counted(rows)
        options = {"header": "true"} if self._sink.format == "csv" else {}
        counting.write.options(**options).format(self._sink.format).save(str(staging))
        return count()
