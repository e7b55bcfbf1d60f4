"""The functions and operators expressions may use: argument types, result type, SQL.

One table, one line a function. Whoever adds a function adds a line here and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from penstock.errors import InputError, listed
from penstock.model.types import DataType, common_type

B, N, L, D = DataType.BOOLEAN, DataType.INT, DataType.BIGINT, DataType.DOUBLE
S, T, DATE, INTERVAL = DataType.STRING, DataType.TIMESTAMP, DataType.DATE, DataType.INTERVAL
_COMPARED = "two values of one type"

FIRST_SECOND, AFTER_LAST_SECOND = -62_135_596_800, 253_402_300_800
"""The years 1 to 9999, in seconds since 1970."""

Types = Sequence[DataType]
Check = Callable[[Types], DataType | None]
Render = Callable[[Sequence[str]], str]


@dataclass(frozen=True)
class Function:
    """How a function is checked and written.

    ``check`` gives the result type for argument types, or None where they do not fit; ``takes``
    says in words what fits; ``sql`` writes the call; ``safe_sql`` the form that gives null where
    a result does not fit its type, or with ``is_wide`` a wider one to be cast to it.
    """

    check: Check
    takes: str
    sql: Render
    safe_sql: Render
    infix: bool = False
    is_wide: bool = False

    @property
    def may_fail(self) -> bool:
        """Whether there are values for which the plain form is an error."""
        return self.safe_sql is not self.sql


def result_type(function: str, types: Types) -> DataType:
    """The type ``function`` gives for arguments of ``types``; raises where they do not fit."""
    result = FUNCTIONS[function].check(types)
    if result is None:
        takes, given = FUNCTIONS[function].takes, listed(str(type_) for type_ in types)
        hint = ""
        if takes == _COMPARED and len(types) == 2 and types[0].is_storable:
            hint = f"Convert one of them, for example by CAST(… AS {types[0]})."
        raise InputError(f"{function} takes {takes}; it got {given}", hint=hint)
    return result


def _fits(given: DataType, wanted: DataType) -> bool:
    return common_type(given, wanted) is wanted


def _fixed(result: DataType, *wanted: DataType, optional: int = 0) -> Check:
    def check(types: Types) -> DataType | None:
        if not len(wanted) - optional <= len(types) <= len(wanted):
            return None
        return result if all(map(_fits, types, wanted)) else None

    return check


def _variadic(result: DataType, wanted: DataType) -> Check:
    def check(types: Types) -> DataType | None:
        return result if types and all(_fits(type_, wanted) for type_ in types) else None

    return check


def _arithmetic(types: Types) -> DataType | None:
    both = common_type(*types) if len(types) == 2 else None
    return both if both is not None and both.is_numeric else None


def _sum_check(types: Types) -> DataType | None:
    if len(types) == 2 and types[0] in (T, DATE) and types[1] is INTERVAL:
        return T
    if list(types) == [INTERVAL, INTERVAL]:
        return INTERVAL
    if len(types) == 2 and types[0] is INTERVAL and types[1] in (T, DATE):
        return T
    return _arithmetic(types)


def _difference_check(types: Types) -> DataType | None:
    if list(types) == [T, T]:
        return INTERVAL
    if len(types) == 2 and types[0] is INTERVAL and types[1] in (T, DATE):
        return None
    return _sum_check(types)


def _division(types: Types) -> DataType | None:
    return D if _arithmetic(types) is not None else None


def _comparison(types: Types) -> DataType | None:
    both = common_type(*types) if len(types) == 2 else None
    return B if both is not None else None


def _same(types: Types) -> DataType | None:
    result = types[0] if types else None
    for type_ in types[1:]:
        result = common_type(result, type_) if result is not None else None
    return result


def _several(types: Types) -> DataType | None:
    return _same(types) if len(types) > 1 else None


def _membership(types: Types) -> DataType | None:
    return B if _several(types) is not None else None


def _if(types: Types) -> DataType | None:
    return _same(types[1:]) if len(types) == 3 and _fits(types[0], B) else None


def _numeric_same(types: Types) -> DataType | None:
    return types[0] if len(types) == 1 and types[0].is_numeric else None


def _negation(types: Types) -> DataType | None:
    return INTERVAL if list(types) == [INTERVAL] else _numeric_same(types)


def _rounding(types: Types) -> DataType | None:
    fits = len(types) in (1, 2) and types[0].is_numeric and all(map(_fits, types[1:], [N]))
    return types[0] if fits else None


def _one_of(result: DataType, *allowed: DataType) -> Check:
    def check(types: Types) -> DataType | None:
        return result if len(types) == 1 and types[0] in allowed else None

    return check


def _nullif(types: Types) -> DataType | None:
    return types[0] if _comparison(types) is not None else None


def _anything(types: Types) -> DataType | None:
    return B if len(types) == 1 else None


def _call(name: str) -> Render:
    return lambda arguments: f"{name}({', '.join(arguments)})"


def _infix(symbol: str) -> Render:
    return lambda arguments: f"({arguments[0]} {symbol} {arguments[1]})"


def _prefix(symbol: str) -> Render:
    return lambda arguments: f"({symbol} {arguments[0]})"


def _minus(arguments: Sequence[str]) -> str:
    return f"try_subtract(0, {arguments[0]})"


def _absolute(arguments: Sequence[str]) -> str:
    return f"if({arguments[0]} < 0, {_minus(arguments)}, {arguments[0]})"


def _within_bigint(name: str) -> Render:
    return lambda a: f"CASE WHEN {a[0]} BETWEEN -9.2E18D AND 9.2E18D THEN {name}({a[0]}) END"


def _round(arguments: Sequence[str]) -> str:
    if len(arguments) == 1:
        return arguments[0]  # An integer has no digits to lose.
    # All digits that a bigint can have, and one more.
    return f"round(CAST({arguments[0]} AS DECIMAL(20, 0)), {arguments[1]})"


def _since_1970(name: str, per_second: int) -> Render:
    """A timestamp from a count of units since 1970, if it lies in the years 1 to 9999."""
    first, after = FIRST_SECOND * per_second, AFTER_LAST_SECOND * per_second
    return lambda a: f"CASE WHEN {a[0]} >= {first}L AND {a[0]} < {after}L THEN {name}({a[0]}) END"


def _like(arguments: Sequence[str]) -> str:
    """Patterns that rows bring along need not be patterns; those are like nothing."""
    text, pattern = arguments
    is_pattern = rf"{pattern} RLIKE r'^[^\\]*+(\\[_%\\][^\\]*+)*+$'"
    return f"CASE WHEN {is_pattern} THEN {text} LIKE {pattern} END"


def _named(
    name: str, check: Check, takes: str, safe: Render | None = None, is_wide: bool = False
) -> tuple[str, Function]:
    render = _call(name)
    return name, Function(check, takes, render, safe or render, is_wide=is_wide)


def _operator(
    symbol: str,
    check: Check,
    takes: str,
    safe: Render | None = None,
    render: Render | None = None,
) -> tuple[str, Function]:
    written = render or _infix(symbol.upper())
    return symbol, Function(check, takes, written, safe or written, infix=True)


FUNCTIONS: Mapping[str, Function] = dict(
    [
        # Arithmetic.
        _operator("+", _sum_check, "two numbers, or a timestamp and an interval", _call("try_add")),
        _operator(
            "-",
            _difference_check,
            "two numbers, or a timestamp and an interval",
            _call("try_subtract"),
        ),
        _operator("*", _arithmetic, "two numbers", _call("try_multiply")),
        _operator("/", _division, "two numbers", _call("try_divide")),
        _operator("%", _arithmetic, "two numbers", _call("try_mod")),
        _operator("negate", _negation, "a number or an interval", _minus, _prefix("-")),
        # Comparison and logic.
        *(
            _operator(symbol, _comparison, _COMPARED)
            for symbol in ("=", "<>", "<", "<=", ">", ">=", "<=>")
        ),
        _operator("and", _fixed(B, B, B), "two conditions"),
        _operator("or", _fixed(B, B, B), "two conditions"),
        _operator("not", _fixed(B, B), "a condition", render=_prefix("NOT")),
        _operator("is_null", _anything, "one value", render=lambda a: f"({a[0]} IS NULL)"),
        _operator(
            "in",
            _membership,
            "a value and a list of values of its type",
            render=lambda a: f"({a[0]} IN ({', '.join(a[1:])}))",
        ),
        _operator("like", _fixed(B, S, S), "a string and a pattern", _like),
        _operator("rlike", _fixed(B, S, S), "a string and a regular expression"),
        # Choice.
        _named("coalesce", _same, "values of one type"),
        _named("if", _if, "a condition and two values of one type"),
        _named("nullif", _nullif, "two values of one type"),
        _named("greatest", _several, "two or more values of one type"),
        _named("least", _several, "two or more values of one type"),
        # Numbers.
        _named("abs", _numeric_same, "a number", safe=_absolute),
        _named("sign", _fixed(D, D), "a number"),
        _named("round", _rounding, "a number and a count of digits", _round, is_wide=True),
        _named("floor", _fixed(L, D), "a number", safe=_within_bigint("floor")),
        _named("ceil", _fixed(L, D), "a number", safe=_within_bigint("ceil")),
        _named("sqrt", _fixed(D, D), "a number"),
        _named("exp", _fixed(D, D), "a number"),
        _named("ln", _fixed(D, D), "a number"),
        _named("log10", _fixed(D, D), "a number"),
        _named("power", _fixed(D, D, D), "two numbers"),
        # Strings.
        _named("lower", _fixed(S, S), "a string"),
        _named("upper", _fixed(S, S), "a string"),
        _named("trim", _fixed(S, S), "a string"),
        _named("length", _fixed(N, S), "a string"),
        _named("concat", _variadic(S, S), "strings"),
        _named("substring", _fixed(S, S, N, N, optional=1), "a string, a start and a length"),
        _named("replace", _fixed(S, S, S, S), "a string, what to replace, and with what"),
        _named(
            "split_part",
            _fixed(S, S, S, N),
            "a string, a separator and a part's number",
            safe=lambda a: f"split_part({a[0]}, {a[1]}, nullif({a[2]}, 0))",
        ),
        _named("regexp_extract", _fixed(S, S, S, N, optional=1), "a string, a pattern, a group"),
        _named("startswith", _fixed(B, S, S), "a string and its beginning"),
        _named("endswith", _fixed(B, S, S), "a string and its end"),
        _named("contains", _fixed(B, S, S), "a string and a part of it"),
        _named("md5", _fixed(S, S), "a string"),
        # Times, in UTC.
        *(
            _named(part, _one_of(N, T, DATE), "a timestamp or date")
            for part in ("year", "month", "day", "dayofweek")
        ),
        *(_named(part, _fixed(N, T), "a timestamp") for part in ("hour", "minute", "second")),
        _named("date_trunc", _fixed(T, S, T), "a unit and a timestamp"),
        _named("date_format", _fixed(S, T, S), "a timestamp and a format"),
        _named("to_date", _one_of(DATE, T, DATE), "a timestamp"),
        _named("unix_micros", _fixed(L, T), "a timestamp"),
        _named("unix_seconds", _fixed(L, T), "a timestamp"),
        _named("unix_millis", _fixed(L, T), "a timestamp"),
        *(
            _named(name, _fixed(T, type), f"{unit} since 1970", _since_1970(name, per_second))
            for name, type, unit, per_second in (
                ("timestamp_seconds", D, "seconds", 1),
                ("timestamp_millis", L, "milliseconds", 10**3),
                ("timestamp_micros", L, "microseconds", 10**6),
            )
        ),
        _named("to_timestamp", _fixed(T, S, S), "a string and a pattern of its times"),
    ]
)
