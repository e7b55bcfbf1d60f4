"""Parquet files that need no change enter a channel as they are: linked, not copied."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.feeds.arrow import arrow_schema
from penstock.feeds.convert import in_calendar
from penstock.model.schema import Schema
from penstock.model.types import DataType

_ROWS_AT_MOST = 1_000_000


def fits(path: Path, schema: Schema) -> bool:
    """Whether the file holds these columns with exactly these types, and is of moderate size.

    Larger files are taken piece by piece, so that readers can be given less than a whole one.
    """
    try:
        with path.open("rb") as raw, pq.ParquetFile(raw) as file:
            there = {field.name: field.type for field in file.schema_arrow}
            rows = file.metadata.num_rows
    except (OSError, pa.ArrowException):
        return False
    wanted = arrow_schema(schema)
    return 0 < rows <= _ROWS_AT_MOST and all(
        there.get(column.name) == column.type for column in wanted
    )


def times(path: Path, schema: Schema, event_time: str | None) -> pa.Table | None:
    """The event times of the file; None if a column that is needed cannot be taken as it is.

    All such columns are read for it: a damaged file must not get into a channel, nor a time outside
    of the calendar.
    """
    kept = [] if event_time is None else [event_time]
    names = list(schema.names)
    in_time = [field.name for field in schema if field.type in (DataType.TIMESTAMP, DataType.DATE)]
    try:
        with path.open("rb") as raw, pq.ParquetFile(raw) as file:
            parts = []
            for group in range(file.num_row_groups):
                rows = file.read_row_group(group, columns=names)
                for name in in_time:
                    in_calendar(rows[name])
                parts.append(rows.select(kept))
            return pa.concat_tables(parts)
    except (OSError, pa.ArrowException):
        return None


def row_count(path: Path) -> int:
    """How many rows the file holds."""
    with path.open("rb") as raw:
        return int(pq.read_metadata(raw).num_rows)


def link(path: Path, target: Path) -> None:
    """Puts the file at ``target`` too, so that it stays even if the original is deleted.

    What a former attempt left at ``target`` is replaced.
    """
    target.unlink(missing_ok=True)
    try:
        # Of a symbolic link the file itself, or it could still be deleted.
        os.link(path.resolve(), target)
    except OSError:
        _copy(path, target)


def _copy(path: Path, target: Path) -> None:
    try:
        shutil.copyfile(path, target)
    except OSError:
        target.unlink(missing_ok=True)
        raise
