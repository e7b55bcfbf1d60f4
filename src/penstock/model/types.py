"""The types a column can have."""

from __future__ import annotations

import re
from collections.abc import Mapping
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
    "int4": DataType.INT,
    "long": DataType.BIGINT,
    "double precision": DataType.DOUBLE,
    "float8": DataType.DOUBLE,
    "text": DataType.STRING,
    "varchar": DataType.STRING,
    "datetime": DataType.TIMESTAMP,
    "timestamp_ltz": DataType.TIMESTAMP,
    "timestamptz": DataType.TIMESTAMP,
    "timestamp with time zone": DataType.TIMESTAMP,
    "bytes": DataType.BINARY,
    "varbinary": DataType.BINARY,
    "blob": DataType.BINARY,
    "bytea": DataType.BINARY,
}
"""Other names of the same types. What differs in range, precision or form is no other name."""
STORABLE = tuple(wanted_type for wanted_type in DataType if wanted_type.is_storable)

_SMALL = "Use int, which holds all its values."
_LARGE = "Use bigint; what does not fit into it can be a double or a string."
_INEXACT = "Use double, or bigint in the smallest unit, such as cents."
_NARROW = "Use double, which holds all its values."
_CUT = "Use string; substring(value, 1, length) cuts it."
_NESTED = "Columns hold single values: use string, or take the value apart in a Python operator."
_INSTEAD = {
    **dict.fromkeys(("tinyint", "byte", "int1", "smallint", "short", "int2"), _SMALL),
    **dict.fromkeys(("mediumint", "utinyint", "usmallint", "umediumint"), _SMALL),
    **dict.fromkeys(("uint", "uinteger", "hugeint", "uhugeint", "ubigint", "int128"), _LARGE),
    "int8": "It has 8 bytes in some systems and 8 bits in others: write bigint or int.",
    **dict.fromkeys(("decimal", "numeric", "dec", "number", "bigdecimal", "money"), _INEXACT),
    **dict.fromkeys(("float", "real", "float4"), _NARROW),
    **dict.fromkeys(("char", "character", "nchar", "bpchar", "nvarchar", "char varying"), _CUT),
    **dict.fromkeys(("character varying", "national character"), _CUT),
    "timestamp_ntz": "Use timestamp: times are UTC.",
    "timestamp without time zone": "Use timestamp: times are UTC.",
    "time": "Use timestamp, or a string.",
    "interval": "It occurs in expressions only: "
    "unix_micros(a) - unix_micros(b) is the time between two timestamps as a number.",
    **dict.fromkeys(("uuid", "json", "jsonb", "variant", "xml", "clob"), "Use string."),
    **dict.fromkeys(("array", "map", "struct", "object", "row", "list"), _NESTED),
    "bit": "Use boolean, or int.",
}
"""What to use in place of types that Spark and other systems have and Penstock does not."""
_WITH_LENGTH = {
    DataType.STRING: _CUT,
    DataType.TIMESTAMP: "Times have microseconds: write timestamp; date_trunc makes them coarser.",
}


def data_type(name: str) -> DataType:
    """The type called ``name``; other names of the same type are understood.

    A type that would hold something else, such as ``decimal(10, 2)`` or ``varchar(5)``, is refused
    by its name with what to use instead: taking a near one would change values without a word.

    >>> data_type("varchar")
    <DataType.STRING: 'string'>
    >>> data_type("json")
    Traceback (most recent call last):
    penstock.errors.InputError: the type json is not supported. Use string.
    """
    folded = " ".join(name.lower().split())
    known = {str(wanted_type): wanted_type for wanted_type in STORABLE} | _ALIASES
    if folded in known:
        return known[folded]
    instead = _instead(folded, known)
    if instead is not None:
        raise InputError(f"the type {folded} is not supported", hint=instead)
    names = [str(wanted_type) for wanted_type in STORABLE]
    hint = f"The types are {listed(names)}. {suggestion(folded, known)}".strip()
    raise InputError(f"no type {name}", hint=hint)


def _instead(folded: str, known: Mapping[str, DataType]) -> str | None:
    """What to use in place of a type that some system has; None for what no system calls so."""
    base = re.split(r" ?[(<\[]", folded)[0]
    if folded.endswith("]"):
        return _NESTED
    if base in known:
        return _WITH_LENGTH.get(known[base], f"Write {known[base]}.")
    return _INSTEAD.get(base) or _INSTEAD.get(base.split()[0])


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
