"""Rows on their way in: what could be read of them, and what could not."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.feeds.arrow import arrow_schema
from penstock.feeds.convert import Converted
from penstock.feeds.event_times import event_times, fault
from penstock.feeds.utf8 import MARK, shown
from penstock.model.expressions import columns_of
from penstock.model.schema import Field, Schema
from penstock.model.sources import PLAIN, Parsing


@dataclass(frozen=True)
class Reject:
    """A row that could not be read: where it stood, why, and what it said.

    ``line`` counts from 1; in a Parquet file it is the row. It is 0 for a file as a whole.
    """

    file: str
    line: int
    reason: str
    row: str

    @property
    def is_whole_file(self) -> bool:
        """Whether none of the file could be read, or nothing after what was."""
        return not self.line and not self.row

    def to_json(self) -> str:
        """The reject as one line of a dead-letter file."""
        return json.dumps(
            {"file": self.file, "line": self.line, "reason": self.reason, "row": self.row}
        )


@dataclass(frozen=True)
class Piece:
    """Some consecutive rows of a file and the rejects among them."""

    rows: pa.Table
    rejects: tuple[Reject, ...] = ()


@dataclass(frozen=True)
class RowForm:
    """The columns to read of every row, and how they are written."""

    schema: Schema
    parsing: Parsing = PLAIN

    @property
    def written_names(self) -> list[str]:
        """The source's names of the columns."""
        return [self.parsing.written(name) for name in self.schema.names]

    def no_rows(self) -> pa.Table:
        """A table without rows of this form."""
        return self.timed(arrow_schema(self.schema).empty_table())

    def timed(self, rows: pa.Table) -> pa.Table:
        """The rows with their event time, if it is computed."""
        if self.parsing.event_time is None:
            return rows
        name, expression = self.parsing.event_time
        return rows.append_column(name, event_times(expression, rows))


def typed(
    columns: list[Converted], written: list[pa.Array], form: RowForm
) -> tuple[pa.Table, dict[int, str]]:
    """The readable rows, and for each of the others what is wrong with it, by its index."""
    schema = form.schema
    bad = np.logical_or.reduce([column.bad for column in columns])
    rows = form.timed(pa.table([column.values for column in columns], schema=arrow_schema(schema)))
    without_time = np.zeros(len(bad), dtype=bool)
    if form.parsing.event_time is not None:
        without_time = ~bad & rows.column(rows.num_columns - 1).is_null().to_numpy()
    if not (bad | without_time).any():
        return rows, {}
    faults = {at: _no_time(rows.slice(at, 1), form) for at in np.flatnonzero(without_time).tolist()}
    for at in np.flatnonzero(bad).tolist():
        wrong = next(k for k, converted in enumerate(columns) if converted.bad[at])
        faults[at] = _fault(value_of(written[wrong][at]), schema.fields[wrong])
    return rows.filter(pa.array(~(bad | without_time))), dict(sorted(faults.items()))


def _no_time(row: pa.Table, form: RowForm) -> str:
    assert form.parsing.event_time is not None
    _, expression = form.parsing.event_time
    names = sorted(columns_of(expression))
    return fault(expression, [value_of(row[name][0]) for name in names])


def value_of(scalar: pa.Scalar) -> object:
    """What a value is to Python; a time that Python cannot hold is the number it is."""
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        return scalar.value


def _fault(written: object, field: Field) -> str:
    if isinstance(written, str) and MARK in written:
        return f"{field.name}: {shown(written)!r} is not UTF-8"
    return f"{field.name}: {written!r} is no {field.type}"
