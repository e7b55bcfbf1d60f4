"""Rows on their way in: what could be read of them, and what could not."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.feeds.arrow import arrow_schema
from penstock.feeds.convert import Converted
from penstock.feeds.utf8 import MARK, shown
from penstock.model.schema import Field, Schema


@dataclass(frozen=True)
class Reject:
    """A row that could not be read: where it stood, why, and what it said.

    ``line`` counts from 1; in a Parquet file it is the row. It is 0 for a file as a whole.
    """

    file: str
    line: int
    reason: str
    row: str

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


def typed(
    columns: list[Converted], written: list[pa.Array], schema: Schema
) -> tuple[pa.Table, dict[int, str]]:
    """The readable rows, and for each of the others what is wrong with it, by its index."""
    bad = np.logical_or.reduce([one.bad for one in columns])
    rows = pa.table([one.values for one in columns], schema=arrow_schema(schema))
    if not bad.any():
        return rows, {}
    faults = {}
    for at in np.flatnonzero(bad).tolist():
        wrong = next(k for k, one in enumerate(columns) if one.bad[at])
        faults[at] = _fault(value_of(written[wrong][at]), schema.fields[wrong])
    return rows.filter(pa.array(~bad)), faults


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
