"""Results as files: one subdirectory a batch, there whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.errors import InputError
from penstock.model.sources import FileSink
from penstock.spark.counting import counted
from penstock.spark.sinks.batch import Batch, Rows
from penstock.spark.sinks.parquet import ParquetWriter

CheckOwner = Callable[[], None]

_MOMENT = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"
"""Spark's own form leaves the microseconds out."""


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
        _check_writable(sink.path)

    def write(self, rows: Rows, batch: Batch) -> int:
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

    def _staged(self, rows: Rows, staging: Path) -> int:
        shutil.rmtree(staging, ignore_errors=True)
        if self._sink.format == "parquet":
            return sum(file.rows for file in self._parquet.write(rows, staging))
        if isinstance(rows, pa.Table):
            # Spark writes these, so that files look the same whoever computed the rows.
            if not rows.num_rows:
                return 0
            rows = SparkSession.active().createDataFrame(rows)
        counting, count = counted(rows)
        options = {"header": "true"} if self._sink.format == "csv" else {}
        counting.write.options(timestampFormat=_MOMENT, **options).format(self._sink.format).save(
            str(staging)
        )
        return count()


def _check_writable(folder: Path) -> None:
    """Raises if results can never get there, before anything is worked out for it."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not there.is_dir():
        raise _unwritable(folder, f"{there} is no directory")
    if not os.access(there, os.W_OK | os.X_OK):
        raise _unwritable(folder, f"{there} may not be written to")
    try:
        Path(tempfile.mkdtemp(prefix="_", dir=there)).rmdir()
    except OSError as error:
        raise _unwritable(folder, f"{error.strerror} ({there})") from None


def _unwritable(folder: Path, why: str) -> InputError:
    return InputError(
        f"results cannot be written to {folder}: {why}",
        hint="Correct the path, or let the user who runs Penstock write there.",
    )
