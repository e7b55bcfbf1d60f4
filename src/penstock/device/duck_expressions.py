"""Expressions in DuckDB's dialect, with exactly the meaning they have on Spark.

What cannot be said exactly is refused by name: a device must never give another row than the
server would. Intervals are counted in microseconds, times have no zone (they are UTC), integers are
computed in a wider type and cast back, so that what does not fit is null. Nothing that is printed
can fail. ``tests/spark/device`` compares all of it with Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from math import isfinite

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
from penstock.model.types import DataType, common_type

DUCK_TYPES = {
    DataType.BOOLEAN: "BOOLEAN",
    DataType.INT: "INTEGER",
    DataType.BIGINT: "BIGINT",
    DataType.DOUBLE: "DOUBLE",
    DataType.STRING: "VARCHAR",
    DataType.TIMESTAMP: "TIMESTAMP",
    DataType.DATE: "DATE",
    DataType.BINARY: "BLOB",
    DataType.INTERVAL: "BIGINT",
    DataType.NULL: "VARCHAR",
}
_B, _N, _L, _D = DataType.BOOLEAN, DataType.INT, DataType.BIGINT, DataType.DOUBLE
_S, _T, _DATE, _I = DataType.STRING, DataType.TIMESTAMP, DataType.DATE, DataType.INTERVAL
_UNITS = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Types = Sequence[DataType]
Print = Callable[[list[str], Types, DataType], str]


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
    return _widen(duck_sql(expression, schema), type_of(expression, schema), wanted)


def _widen(text: str, given: DataType, wanted: DataType) -> str:
    return text if given is wanted else f"CAST({text} AS {DUCK_TYPES[wanted]})"


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
        return _floor_division(f"epoch_us({text})", 10**6)
    if (given, wanted) == (_T, _D):
        return f"(CAST(epoch_us({text}) AS DOUBLE) / 1000000.0::DOUBLE)"
    if (given, wanted) in ((_T, _DATE), (_DATE, _T)):
        return f"CAST({text} AS {duck})"
    raise _refuse(expression, f"a {given} is read as {wanted} in another way")


def _call(call: Call, function: str, arguments: tuple[Expression, ...], schema: Schema) -> str:
    known = _FUNCTIONS.get(function)
    if known is None:
        raise _refuse(call, f"{function} differs")
    why = _UNFIT[function](arguments) if function in _UNFIT else ""
    if why:
        raise _refuse(call, why)
    types = [type_of(argument, schema) for argument in arguments]
    if function == "round" and (len(arguments) > 1 or types[0] is _D):
        raise _refuse(call, "it rounds halves in another way")
    texts = [duck_sql(argument, schema) for argument in arguments]
    return known(texts, types, type_of(call, schema))


def _floor_division(text: str, by: int) -> str:
    # DuckDB divides towards zero.
    return f"(({text} - ((({text}) % {by}) + {by}) % {by}) // {by})"


def _us(text: str, type: DataType) -> str:
    """A time or an interval in microseconds."""
    return text if type is _I else f"epoch_us(CAST({text} AS TIMESTAMP))"


def _arithmetic(symbol: str) -> Print:
    def print_(texts: list[str], types: Types, result: DataType) -> str:
        if result in (_T, _I):
            both = f"({_us(texts[0], types[0])} {symbol} {_us(texts[1], types[1])})"
            return f"make_timestamp({both})" if result is _T else both
        return _numbers(symbol, texts, types, result)

    return print_


def _numbers(symbol: str, texts: list[str], types: Types, result: DataType) -> str:
    if result is _D:
        left, right = (_widen(text, type, _D) for text, type in zip(texts, types, strict=True))
        right = f"nullif({right}, 0)" if symbol == "%" else right
        return f"({left} {symbol} {right})"
    wide = "BIGINT" if result is _N else "HUGEINT"
    left, right = (f"CAST({text} AS {wide})" for text in texts)
    right = f"nullif({right}, 0)" if symbol == "%" else right
    return f"TRY_CAST({left} {symbol} {right} AS {DUCK_TYPES[result]})"


def _divide(texts: list[str], types: Types, _: DataType) -> str:
    left, right = (_widen(text, type, _D) for text, type in zip(texts, types, strict=True))
    return f"({left} / nullif({right}, 0))"


def _negate(texts: list[str], types: Types, result: DataType) -> str:
    if result in (_D, _I):
        return f"(- {texts[0]})"
    wide = "BIGINT" if result is _N else "HUGEINT"
    return f"TRY_CAST(- CAST({texts[0]} AS {wide}) AS {DUCK_TYPES[result]})"


def _absolute(texts: list[str], types: Types, result: DataType) -> str:
    if result is _D:
        return f"abs({texts[0]})"
    wide = "BIGINT" if result is _N else "HUGEINT"
    return f"TRY_CAST(abs(CAST({texts[0]} AS {wide})) AS {DUCK_TYPES[result]})"


def _common(types: Types) -> DataType:
    whole = types[0]
    for other in types[1:]:
        whole = common_type(whole, other) or whole
    return whole


def _alike(texts: list[str], types: Types) -> list[str]:
    wanted = _common(types)
    return [_widen(text, type, wanted) for text, type in zip(texts, types, strict=True)]


def _comparison(symbol: str) -> Print:
    def print_(texts: list[str], types: Types, _: DataType) -> str:
        left, right = _alike(texts, types)
        return f"({left} {symbol} {right})"

    return print_


def _membership(texts: list[str], types: Types, _: DataType) -> str:
    value, *others = _alike(texts, types)
    return f"({value} IN ({', '.join(others)}))"


def _same(name: str) -> Print:
    return lambda texts, types, result: f"{name}({', '.join(_alike(texts, types))})"


def _if(texts: list[str], types: Types, result: DataType) -> str:
    condition = _widen(texts[0], types[0], _B)
    then, other = (
        _widen(text, type, result) for text, type in zip(texts[1:], types[1:], strict=True)
    )
    return f"CASE WHEN {condition} THEN {then} ELSE {other} END"


def _nullif(texts: list[str], types: Types, result: DataType) -> str:
    left, right = _alike(texts, types)
    return f"CASE WHEN {left} = {right} THEN NULL ELSE {texts[0]} END"


def _plain(name: str) -> Print:
    return lambda texts, types, result: f"{name}({', '.join(texts)})"


def _whole_number(name: str) -> Print:
    def print_(texts: list[str], types: Types, _: DataType) -> str:
        if types[0].is_integer:
            return _widen(texts[0], types[0], _L)
        value = _widen(texts[0], types[0], _D)
        bounds = "BETWEEN -9.2E18::DOUBLE AND 9.2E18::DOUBLE"
        return f"CASE WHEN {value} {bounds} THEN TRY_CAST({name}({value}) AS BIGINT) END"

    return print_


def _sqrt(texts: list[str], types: Types, _: DataType) -> str:
    value = _widen(texts[0], types[0], _D)
    return f"CASE WHEN {value} < 0 THEN 'NaN'::DOUBLE ELSE sqrt({value}) END"


def _logic(word: str) -> Print:
    def print_(texts: list[str], types: Types, _: DataType) -> str:
        left, right = (_widen(text, type, _B) for text, type in zip(texts, types, strict=True))
        return f"({left} {word} {right})"

    return print_


def _part(name: str, more: int = 0) -> Print:
    added = f" + {more}" if more else ""
    return lambda texts, types, result: f"CAST({name}({texts[0]}){added} AS INTEGER)"


def _since_1970(per_us: int) -> Print:
    def print_(texts: list[str], types: Types, _: DataType) -> str:
        value, per_s = _widen(texts[0], types[0], _L), 10**6 // per_us
        first, after = FIRST_SECOND * per_s, AFTER_LAST_SECOND * per_s
        inside = f"{value} >= {first} AND {value} < {after}"
        # The product is only taken of what lies inside.
        clamped = f"greatest(least({value}, {after}), {first})"
        return f"CASE WHEN {inside} THEN make_timestamp({clamped} * {per_us}) END"

    return print_


_FUNCTIONS: Mapping[str, Print] = {
    "+": _arithmetic("+"),
    "-": _arithmetic("-"),
    "*": lambda texts, types, result: _numbers("*", texts, types, result),
    "/": _divide,
    "%": lambda texts, types, result: _numbers("%", texts, types, result),
    "negate": _negate,
    **{symbol: _comparison(symbol) for symbol in ("=", "<>", "<", "<=", ">", ">=")},
    "<=>": _comparison("IS NOT DISTINCT FROM"),
    "and": _logic("AND"),
    "or": _logic("OR"),
    "not": lambda texts, types, result: f"(NOT {_widen(texts[0], types[0], _B)})",
    "is_null": lambda texts, types, result: f"({texts[0]} IS NULL)",
    "in": _membership,
    "like": lambda texts, types, result: f"({texts[0]} LIKE {texts[1]})",
    "coalesce": _same("coalesce"),
    "if": _if,
    "nullif": _nullif,
    "greatest": _same("greatest"),
    "least": _same("least"),
    "abs": _absolute,
    "round": lambda texts, types, result: texts[0],
    "floor": _whole_number("floor"),
    "ceil": _whole_number("ceil"),
    "sqrt": _sqrt,
    "trim": lambda texts, types, result: f"trim({texts[0]}, ' ')",
    "length": _part("length"),
    "concat": lambda texts, types, result: f"({' || '.join(texts)})",
    "substring": _plain("substring"),
    "replace": _plain("replace"),
    "split_part": _plain("split_part"),
    "startswith": _plain("starts_with"),
    "endswith": _plain("ends_with"),
    "contains": _plain("contains"),
    "md5": _plain("md5"),
    **{name: _part(name) for name in ("year", "month", "day", "hour", "minute", "second")},
    "dayofweek": _part("dayofweek", 1),
    "date_trunc": lambda texts, types, result: (
        f"CAST(date_trunc({texts[0]}, {texts[1]}) AS TIMESTAMP)"
    ),
    "to_date": lambda texts, types, result: f"CAST({texts[0]} AS DATE)",
    "unix_micros": lambda texts, types, result: f"epoch_us({texts[0]})",
    "unix_millis": lambda texts, types, result: _floor_division(f"epoch_us({texts[0]})", 1000),
    "unix_seconds": lambda texts, types, result: _floor_division(f"epoch_us({texts[0]})", 10**6),
    "timestamp_millis": _since_1970(1000),
    "timestamp_micros": _since_1970(1),
}


def _constant(expression: Expression) -> object:
    return expression.value if isinstance(expression, Literal) else None


def _odd_like(arguments: Sequence[Expression]) -> str:
    pattern = _constant(arguments[1])
    if not isinstance(pattern, str) or "\\" in pattern:
        return "its pattern is not a constant without a backslash"
    return ""


def _odd_substring(arguments: Sequence[Expression]) -> str:
    numbers = [_constant(argument) for argument in arguments[1:]]
    fits = all(isinstance(number, int) and number >= 0 for number in numbers) and numbers[0] != 0
    return "" if fits else "its start and length are not constants, from 1 and 0 on"


def _odd_part(arguments: Sequence[Expression]) -> str:
    separator, number = _constant(arguments[1]), _constant(arguments[2])
    fits = isinstance(separator, str) and separator and isinstance(number, int) and number > 0
    return "" if fits else "its separator and number are not constants, from 1 on"


def _odd_replace(arguments: Sequence[Expression]) -> str:
    searched = _constant(arguments[1])
    return "" if isinstance(searched, str) and searched else "what it replaces is not a constant"


def _odd_unit(arguments: Sequence[Expression]) -> str:
    unit = _constant(arguments[0])
    fits = isinstance(unit, str) and unit.lower() in _UNITS
    return "" if fits else f"its unit is none of {', '.join(_UNITS)}"


_UNFIT: Mapping[str, Callable[[Sequence[Expression]], str]] = {
    "like": _odd_like,
    "substring": _odd_substring,
    "split_part": _odd_part,
    "replace": _odd_replace,
    "date_trunc": _odd_unit,
}
