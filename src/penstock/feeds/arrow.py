"""The Arrow form of a stream's rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.model.schema import Schema
from penstock.model.types import DataType

ARROW_TYPES = {
    DataType.BOOLEAN: pa.bool_(),
    DataType.INT: pa.int32(),
    DataType.BIGINT: pa.int64(),
    DataType.DOUBLE: pa.float64(),
    DataType.STRING: pa.string(),
    DataType.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    DataType.DATE: pa.date32(),
    DataType.BINARY: pa.binary(),
}
_YEAR_DIGITS = 4


def arrow_schema(schema: Schema) -> pa.Schema:
    """The Arrow schema of rows with these columns.

    >>> arrow_schema(Schema.parse("home string, kwh double")).names
    ['home', 'kwh']
    """
    return pa.schema([(field.name, ARROW_TYPES[field.type]) for field in schema])


def values_of(column: pa.Array | pa.ChunkedArray) -> list[object]:
    """The values of a column for Python; a time that Python cannot hold is a text.

    Windows at the ends of the calendar begin before the year 1 or end after the year 9999.

    >>> values_of(pa.array([253402300800000000], pa.timestamp("us", tz="UTC")))
    ['+10000-01-01T00:00:00.000000Z']
    """
    try:
        values: list[object] = column.to_pylist()
        return values
    except (OverflowError, ValueError):
        return [_value(scalar) for scalar in column]


def rows_of(table: pa.Table) -> list[dict[str, object]]:
    """The rows of a table for Python, as :func:`values_of` gives their values."""
    names = table.column_names
    columns = [values_of(column) for column in table.columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _value(scalar: pa.Scalar) -> object:
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        if pa.types.is_date(scalar.type):
            return _signed(str(np.datetime64(scalar.value, "D")))
        return moment_text(scalar.value)


def moment_text(us: int) -> str:
    """A time in UTC as ISO 8601 writes it, with a sign beyond the years 0 to 9999.

    >>> moment_text(-1)
    '1969-12-31T23:59:59.999999Z'
    """
    return _signed(f"{np.datetime64(us, 'us')}Z")


def _signed(text: str) -> str:
    year, _, rest = text.removeprefix("-").partition("-")
    sign = "-" if text.startswith("-") else "+" if len(year) > _YEAR_DIGITS else ""
    return f"{sign}{year:0>{_YEAR_DIGITS}}-{rest}"
