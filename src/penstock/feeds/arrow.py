"""The Arrow form of a stream's rows."""

from __future__ import annotations

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


def arrow_schema(schema: Schema) -> pa.Schema:
    """The Arrow schema of rows with these columns.

    >>> arrow_schema(Schema.parse("home string, kwh double")).names
    ['home', 'kwh']
    """
    return pa.schema([(field.name, ARROW_TYPES[field.type]) for field in schema])
