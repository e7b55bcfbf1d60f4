"""Parquet files that need no change enter a channel as they are: linked, not copied."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.feeds.arrow import arrow_schema
from penstock.model.schema import Schema

_ROWS_AT_MOST = 1_000_000


def fits(path: Path, schema: Schema) -> bool:
    """Whether the file holds these columns with exactly these types, and is of moderate size.

    Larger files are taken piece by piece, so that readers can be given less than a whole one.
    """
    try:
        with pq.ParquetFile(path) as file:
            there = {field.name: field.type for field in file.schema_arrow}
            rows = file.metadata.num_rows
    except (OSError, pa.ArrowException):
        return False
    wanted = arrow_schema(schema)
    return 0 < rows <= _ROWS_AT_MOST and all(there.get(one.name) == one.type for one in wanted)


def times(path: Path, event_time: str) -> pa.Table:
    """The event times of the file alone."""
    return pq.read_table(path, columns=[event_time])


def link(path: Path, target: Path) -> None:
    """Puts the file at ``target`` too, so that it stays even if the original is deleted."""
    try:
        os.link(path, target)
    except FileExistsError:
        target.unlink()
        os.link(path, target)
    except OSError:
        shutil.copyfile(path, target)
