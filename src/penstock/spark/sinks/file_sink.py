"""Results as files: one subdirectory a batch, there whole or not at all."""

from __future__ import annotations

import shutil

from pyspark.sql import DataFrame

from penstock.model.sources import FileSink
from penstock.spark.counting import counted
from penstock.spark.sinks.batch import Batch


class DirectorySink:
    """Appends each batch to the directory as ``batch=<id>``.

    A batch is written aside and renamed into place, so readers never see half of one, and a batch
    offered again finds itself already there. Names with a dot or underscore in front are scratch.
    """

    def __init__(self, sink: FileSink) -> None:
        self._sink = sink

    def write(self, rows: DataFrame, batch: Batch) -> int:
        staging = self._sink.path / f"_staging-{batch.id}"
        final = self._sink.path / f"batch={batch.id:08d}"
        counting, count = counted(rows)
        writer = counting.write.mode("overwrite")
        if self._sink.format == "csv":
            writer = writer.option("header", "true")
        writer.format(self._sink.format).save(str(staging))
        if final.exists() or not count():
            shutil.rmtree(staging)
        else:
            staging.rename(final)
        return count()
