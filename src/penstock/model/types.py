"""The types a column can have."""

from __future__ import annotations

from enum import Enum

from penstock.errors import InputError, listed, suggestion


class DataType(Enum):
    """A column's type; the value is its name in schemas and SQL."""

    BOOLEAN = "boolean"
    INT = "int"
    BIGINT = "bigint"
    DOUBLE = "double"
    STRING = "string"
    TIMESTAMP = "timestamp"
    DATE = "date"
    BINARY = "binary"
    INTERVAL = "interval"
    NULL = "null"

    def __str__(self) -> str:
        return self.value

    @property
    def is_integer(self) -> bool:
        return self in (DataType.INT, DataType.BIGINT)

    @property
    def is_numeric(self) -> bool:
        return self.is_integer or self is DataType.DOUBLE

    @property
    def is_storable(self) -> bool:
        """Whether a column of a stream may have this type; the others occur in expressions only."""
        return self not in (DataType.INTERVAL, DataType.NULL)


_ALIASES = {
    "bool": DataType.BOOLEAN,
    "integer": DataType.INT,
    "smallint": DataType.INT,
    "tinyint": DataType.INT,
    "long": DataType.BIGINT,
    "float": DataType.DOUBLE,
    "real": DataType.DOUBLE,
    "decimal": DataType.DOUBLE,
    "text": DataType.STRING,
    "varchar": DataType.STRING,
    "char": DataType.STRING,
    "datetime": DataType.TIMESTAMP,
    "bytes": DataType.BINARY,
}
STORABLE = tuple(one for one in DataType if one.is_storable)


def data_type(name: str) -> DataType:
    """The type called ``name``; common other names are understood.

    >>> data_type("varchar")
    <DataType.STRING: 'string'>
    """
    folded = name.lower().split("(")[0].strip()
    known = {str(one): one for one in STORABLE} | _ALIASES
    if folded not in known:
        names = [str(one) for one in STORABLE]
        hint = f"The types are {listed(names)}. {suggestion(folded, known)}".strip()
        raise InputError(f"no type {name}", hint=hint)
    return known[folded]


def common_type(first: DataType, second: DataType) -> DataType | None:
    """The type both can be read as without loss of meaning, or None.

    >>> common_type(DataType.INT, DataType.DOUBLE)
    <DataType.DOUBLE: 'double'>
    >>> common_type(DataType.INT, DataType.STRING) is None
    True
    """
    if first is second or second is DataType.NULL:
        return first
    if first is DataType.NULL:
        return second
    if first.is_numeric and second.is_numeric:
        ladder = (DataType.INT, DataType.BIGINT, DataType.DOUBLE)
        return ladder[max(ladder.index(first), ladder.index(second))]
    if {first, second} == {DataType.DATE, DataType.TIMESTAMP}:
        return DataType.TIMESTAMP
    return None
