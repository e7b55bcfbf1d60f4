"""Expressions in DuckDB's dialect, with exactly the meaning they have on Spark.

What cannot be said exactly is refused by name: a device must never give another row than the
server would. Intervals are counted in microseconds, times have no zone (they are UTC), integers are
computed in a wider type and cast back, so that what does not fit is null. Nothing that is printed
can fail. ``tests/spark/device`` compares all of it with Spark.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from math import isfinite

from penstock.device.duck_functions import (
    DUCK_FUNCTIONS,
    DUCK_TYPES,
    UNFIT_ARGUMENTS,
    floor_division,
    widen,
)
from penstock.errors import InputError
from penstock.model.expressions import (
    Call,
    Case,
    Cast,
    Column,
    Expression,
    Literal,
    to_sql,
    type_of,
)
from penstock.model.functions import AFTER_LAST_SECOND, FIRST_SECOND
from penstock.model.schema import Schema
from penstock.model.types import DataType

_B, _N, _L, _D = DataType.BOOLEAN, DataType.INT, DataType.BIGINT, DataType.DOUBLE
_S, _T, _DATE = DataType.STRING, DataType.TIMESTAMP, DataType.DATE
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class NotExact(InputError):
    """Something that DuckDB does not compute exactly as Spark does."""


def duck_sql(expression: Expression, schema: Schema) -> str:
    """The expression as DuckDB's SQL; raises :class:`NotExact` where it would differ.

    >>> from penstock.model.expressions import Column, Call, Literal
    >>> duck_sql(Call(">", (Column("kwh"), Literal(9))), Schema.parse("kwh double"))
    '("kwh" > CAST(9 AS DOUBLE))'
    """
    match expression:
        case Column(name):
            return quoted(schema[name].name)
        case Literal(value):
            return _literal(value)
        case Cast(operand, wanted):
            return _cast(expression, duck_sql(operand, schema), type_of(operand, schema), wanted)
        case Case(branches, otherwise):
            wanted = type_of(expression, schema)
            body = " ".join(
                f"WHEN {_as(when, _B, schema)} THEN {_as(then, wanted, schema)}"
                for when, then in branches
            )
            return f"CASE {body} ELSE {_as(otherwise, wanted, schema)} END"
        case Call(function, arguments):
            return _call(expression, function, arguments, schema)
    raise NotExact(f"{expression!r} is not an expression")


def in_calendar(text: str, type: DataType) -> str:
    """SQL of a value, or of null where it is a time outside of the years 1 to 9999."""
    if type is _T:
        first, after = FIRST_SECOND * 10**6, AFTER_LAST_SECOND * 10**6
        return (
            f"CASE WHEN epoch_us({text}) >= {first} AND epoch_us({text}) < {after} THEN {text} END"
        )
    if type is _DATE:
        return (
            f"CASE WHEN {text} >= DATE '0001-01-01' AND {text} <= DATE '9999-12-31' THEN {text} END"
        )
    return text


def quoted(name: str) -> str:
    """A name as DuckDB takes it, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


def _as(expression: Expression, wanted: DataType, schema: Schema) -> str:
    """The expression as a value of a wider type."""
    return widen(duck_sql(expression, schema), type_of(expression, schema), wanted)


def _refuse(expression: Expression, why: str) -> NotExact:
    return NotExact(
        f"DuckDB does not compute {to_sql(expression)} exactly as Spark does: {why}",
        hint="Leave it to the server, or write it in another way.",
    )


def _literal(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value) if abs(value) < 2**63 else f"CAST('{value}' AS BIGINT)"
        case float():
            return f"CAST('{value!r}' AS DOUBLE)" if not isfinite(value) else f"{value!r}::DOUBLE"
        case str():
            escaped = value.replace("'", "''")
            return f"'{escaped}'"
        case datetime():
            moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
            return f"make_timestamp({(moment - _EPOCH) // timedelta(microseconds=1)}::BIGINT)"
        case date():
            return f"DATE '{value.isoformat()}'"
        case timedelta():
            return f"({value // timedelta(microseconds=1)}::BIGINT)"
    raise NotExact(f"{value!r} cannot be a constant on a device")


_WIDENED = {(_N, _L), (_N, _D), (_L, _D), (_B, _N), (_B, _L), (_B, _D)}


def _cast(expression: Cast, text: str, given: DataType, wanted: DataType) -> str:
    """What cannot be read as the other type is null."""
    duck = DUCK_TYPES[wanted]
    if given is wanted:
        return text
    if given is DataType.NULL or (given, wanted) in _WIDENED:
        return f"CAST({text} AS {duck})"
    if (given, wanted) == (_L, _N):
        return f"TRY_CAST({text} AS INTEGER)"
    if given is _D and wanted.is_integer:
        return f"TRY_CAST(trunc({text}) AS {duck})"
    if given.is_numeric and wanted is _B:
        return f"({text} <> 0)"
    if wanted is _S and (given.is_integer or given in (_B, _DATE)):
        return f"CAST({text} AS VARCHAR)"
    if (given, wanted) == (_T, _L):
        return floor_division(f"epoch_us({text})", 10**6)
    if (given, wanted) == (_T, _D):
        return f"(CAST(epoch_us({text}) AS DOUBLE) / 1000000.0::DOUBLE)"
    if (given, wanted) in ((_T, _DATE), (_DATE, _T)):
        return f"CAST({text} AS {duck})"
    raise _refuse(expression, f"a {given} is read as {wanted} in another way")


def _call(call: Call, function: str, arguments: tuple[Expression, ...], schema: Schema) -> str:
    known = DUCK_FUNCTIONS.get(function)
    if known is None:
        raise _refuse(call, f"{function} differs")
    why = UNFIT_ARGUMENTS[function](arguments) if function in UNFIT_ARGUMENTS else ""
    if why:
        raise _refuse(call, why)
    types = [type_of(argument, schema) for argument in arguments]
    if function == "round" and (len(arguments) > 1 or types[0] is _D):
        raise _refuse(call, "it rounds halves in another way")
    texts = [duck_sql(argument, schema) for argument in arguments]
    return known(texts, types, type_of(call, schema))
