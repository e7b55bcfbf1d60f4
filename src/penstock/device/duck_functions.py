"""Functions in DuckDB's dialect, as Spark computes them.

``DUCK_FUNCTIONS`` prints each from its printed arguments, ``UNFIT_ARGUMENTS`` says with which
arguments DuckDB would compute something else. A new function is an entry here; the test that
compares random calls with Spark takes it from here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from penstock.model.expressions import Expression, Literal
from penstock.model.functions import AFTER_LAST_SECOND, FIRST_SECOND
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
_T, _I = DataType.TIMESTAMP, DataType.INTERVAL
_UNITS = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")

Types = Sequence[DataType]
Print = Callable[[list[str], Types, DataType], str]
"""Prints a call: from its arguments as SQL, their types, and the type of the result."""


def widen(text: str, given: DataType, wanted: DataType) -> str:
    """A printed value as one of a wider type."""
    return text if given is wanted else f"CAST({text} AS {DUCK_TYPES[wanted]})"


def floor_division(text: str, by: int) -> str:
    """A printed division that rounds down; DuckDB's own rounds towards zero."""
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
        left, right = (widen(text, type, _D) for text, type in zip(texts, types, strict=True))
        right = f"nullif({right}, 0)" if symbol == "%" else right
        return f"({left} {symbol} {right})"
    wide = "BIGINT" if result is _N else "HUGEINT"
    left, right = (f"CAST({text} AS {wide})" for text in texts)
    right = f"nullif({right}, 0)" if symbol == "%" else right
    return f"TRY_CAST({left} {symbol} {right} AS {DUCK_TYPES[result]})"


def _divide(texts: list[str], types: Types, _: DataType) -> str:
    left, right = (widen(text, type, _D) for text, type in zip(texts, types, strict=True))
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
    return [widen(text, type, wanted) for text, type in zip(texts, types, strict=True)]


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
    condition = widen(texts[0], types[0], _B)
    then, other = (
        widen(text, type, result) for text, type in zip(texts[1:], types[1:], strict=True)
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
            return widen(texts[0], types[0], _L)
        value = widen(texts[0], types[0], _D)
        bounds = "BETWEEN -9.2E18::DOUBLE AND 9.2E18::DOUBLE"
        return f"CASE WHEN {value} {bounds} THEN TRY_CAST({name}({value}) AS BIGINT) END"

    return print_


def _sqrt(texts: list[str], types: Types, _: DataType) -> str:
    value = widen(texts[0], types[0], _D)
    return f"CASE WHEN {value} < 0 THEN 'NaN'::DOUBLE ELSE sqrt({value}) END"


def _logic(word: str) -> Print:
    def print_(texts: list[str], types: Types, _: DataType) -> str:
        left, right = (widen(text, type, _B) for text, type in zip(texts, types, strict=True))
        return f"({left} {word} {right})"

    return print_


def _part(name: str, more: int = 0) -> Print:
    added = f" + {more}" if more else ""
    return lambda texts, types, result: f"CAST({name}({texts[0]}){added} AS INTEGER)"


def _since_1970(per_us: int) -> Print:
    def print_(texts: list[str], types: Types, _: DataType) -> str:
        value, per_s = widen(texts[0], types[0], _L), 10**6 // per_us
        first, after = FIRST_SECOND * per_s, AFTER_LAST_SECOND * per_s
        inside = f"{value} >= {first} AND {value} < {after}"
        # The product is only taken of what lies inside.
        clamped = f"greatest(least({value}, {after}), {first})"
        return f"CASE WHEN {inside} THEN make_timestamp({clamped} * {per_us}) END"

    return print_


DUCK_FUNCTIONS: Mapping[str, Print] = {
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
    "not": lambda texts, types, result: f"(NOT {widen(texts[0], types[0], _B)})",
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
    "unix_millis": lambda texts, types, result: floor_division(f"epoch_us({texts[0]})", 1000),
    "unix_seconds": lambda texts, types, result: floor_division(f"epoch_us({texts[0]})", 10**6),
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


UNFIT_ARGUMENTS: Mapping[str, Callable[[Sequence[Expression]], str]] = {
    "like": _odd_like,
    "substring": _odd_substring,
    "split_part": _odd_part,
    "replace": _odd_replace,
    "date_trunc": _odd_unit,
}
