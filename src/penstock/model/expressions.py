"""Expressions over the columns of a row: small frozen trees that know their type.

An expression is built without a schema and checked against one by :func:`type_of`. Its SQL text
is Spark's dialect, fully explicit, so that two equal expressions print the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from math import isfinite

from penstock.errors import InputError
from penstock.model.constant_arguments import NOT_CONSTANT, check_constants
from penstock.model.durations import duration_text
from penstock.model.functions import AFTER_LAST_SECOND, FIRST_SECOND, FUNCTIONS, result_type
from penstock.model.schema import Schema
from penstock.model.time_patterns import time_pattern
from penstock.model.types import STORABLE, DataType, common_type

Scalar = bool | int | float | str | datetime | date | timedelta | None


@dataclass(frozen=True)
class Column:
    """The value of a column."""

    name: str


@dataclass(frozen=True)
class Literal:
    """A constant. Numbers with a point are doubles; an interval is a ``timedelta``."""

    value: Scalar


@dataclass(frozen=True)
class Call:
    """A function or operator applied to arguments; ``function`` is a key of ``FUNCTIONS``."""

    function: str
    arguments: tuple[Expression, ...]

    def __post_init__(self) -> None:
        if self.function not in FUNCTIONS:
            raise InputError(f"no function {self.function}")


@dataclass(frozen=True)
class Cast:
    """A value read as another type; what cannot be read becomes null."""

    operand: Expression
    type: DataType


@dataclass(frozen=True)
class Case:
    """The value of the first branch whose condition is true, else ``otherwise``."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression


Expression = Column | Literal | Call | Cast | Case

TRUE = Literal(True)


def children(expression: Expression) -> tuple[Expression, ...]:
    """The expressions directly inside ``expression``."""
    match expression:
        case Call(_, arguments):
            return arguments
        case Cast(operand, _):
            return (operand,)
        case Case(branches, otherwise):
            return (*(part for branch in branches for part in branch), otherwise)
        case _:
            return ()


def columns_of(expression: Expression) -> frozenset[str]:
    """The names of all columns ``expression`` reads.

    >>> sorted(columns_of(Call(">", (Column("kwh"), Literal(9)))))
    ['kwh']
    """
    return frozenset(column.name for column in walk(expression) if isinstance(column, Column))


def walk(expression: Expression) -> Iterator[Expression]:
    """``expression`` and everything inside it, outermost first."""
    yield expression
    for child in children(expression):
        yield from walk(child)


def is_column(expression: Expression, name: str) -> bool:
    """Whether ``expression`` is just the column ``name``, in any case.

    >>> is_column(Column("TS"), "ts")
    True
    """
    return isinstance(expression, Column) and expression.name.lower() == name.lower()


def transform(
    expression: Expression, change: Callable[[Expression], Expression | None]
) -> Expression:
    """The expression with every part for which ``change`` gives another replaced by it."""
    changed = change(expression)
    if changed is not None:
        return changed
    match expression:
        case Call(function, arguments):
            return Call(function, tuple(transform(argument, change) for argument in arguments))
        case Cast(operand, type):
            return Cast(transform(operand, change), type)
        case Case(branches, otherwise):
            changed_branches = tuple(
                (transform(when, change), transform(then, change)) for when, then in branches
            )
            return Case(changed_branches, transform(otherwise, change))
        case _:
            return expression


def conjuncts(expression: Expression) -> tuple[Expression, ...]:
    """The parts that must all be true for ``expression`` to be true.

    >>> len(conjuncts(Call("and", (Column("a"), Call("and", (Column("b"), Column("c")))))))
    3
    """
    if isinstance(expression, Call) and expression.function == "and":
        return tuple(part for argument in expression.arguments for part in conjuncts(argument))
    return (expression,)


def all_of(parts: tuple[Expression, ...]) -> Expression:
    """One expression that is true when all ``parts`` are; true for none."""
    if not parts:
        return TRUE
    whole = parts[0]
    for part in parts[1:]:
        whole = Call("and", (whole, part))
    return whole


def type_of(expression: Expression, schema: Schema) -> DataType:
    """The type of ``expression`` over rows of ``schema``; raises where it makes no sense.

    >>> type_of(Call("+", (Column("kwh"), Literal(1))), Schema.parse("kwh double"))
    <DataType.DOUBLE: 'double'>
    """
    match expression:
        case Column(name):
            return schema[name].type
        case Literal(value):
            return _literal_type(value)
        case Cast(operand, type):
            return _cast_type(type_of(operand, schema), type)
        case Case():
            return _case_type(expression, schema)
        case Call(function, arguments):
            result = result_type(function, [type_of(argument, schema) for argument in arguments])
            check_constants(function, [_constant(argument) for argument in arguments])
            return result
    raise InputError(f"{expression!r} is not an expression")


def _constant(expression: Expression) -> object:
    match expression:
        case Literal(value):
            return value
        case Call("negate", (Literal(int() | float() as value),)):
            return -value
    return NOT_CONSTANT


def _literal_type(value: Scalar) -> DataType:
    match value:
        case None:
            return DataType.NULL
        case bool():
            return DataType.BOOLEAN
        case int():
            return _integer_type(value)
        case float():
            return DataType.DOUBLE
        case str():
            return DataType.STRING
        case datetime():
            return DataType.TIMESTAMP
        case date():
            return DataType.DATE
        case timedelta():
            return DataType.INTERVAL
    raise InputError(f"{value!r} cannot be a constant", hint="Use a number, a string or a time.")


def _integer_type(value: int) -> DataType:
    if not -(2**63) <= value < 2**63:
        raise InputError(f"{value} is too large for a bigint", hint="Write a double, such as 1e20.")
    return DataType.INT if -(2**31) <= value < 2**31 else DataType.BIGINT


_NUMBERS = frozenset(data_type for data_type in DataType if data_type.is_numeric)
_CASTS = {
    DataType.NULL: frozenset(STORABLE),
    DataType.STRING: frozenset(STORABLE),
    DataType.BOOLEAN: _NUMBERS,
    **dict.fromkeys(_NUMBERS, _NUMBERS | {DataType.BOOLEAN, DataType.TIMESTAMP}),
    DataType.TIMESTAMP: _NUMBERS | {DataType.DATE},
    DataType.DATE: frozenset({DataType.TIMESTAMP}),
}
"""What Spark casts to what, besides each type to itself and all but intervals to string."""


def _cast_type(given: DataType, wanted: DataType) -> DataType:
    allowed = {given, DataType.STRING} | _CASTS.get(given, frozenset())
    if given is DataType.INTERVAL or not wanted.is_storable or wanted not in allowed:
        raise InputError(f"a {given} cannot be cast to {wanted}")
    return wanted


def _case_type(case: Case, schema: Schema) -> DataType:
    result = type_of(case.otherwise, schema)
    for when, then in case.branches:
        condition = type_of(when, schema)
        if condition not in (DataType.BOOLEAN, DataType.NULL):
            raise InputError(
                f"the condition {to_sql(when)} of a CASE is a {condition}",
                hint="It must be true or false; compare it with something.",
            )
        both = common_type(result, type_of(then, schema))
        if both is None:
            raise InputError(
                f"the branches of a CASE are {result} and {type_of(then, schema)}",
                hint="Cast them to one type.",
            )
        result = both
    return result


def to_sql(expression: Expression, schema: Schema | None = None) -> str:
    """The expression as Spark SQL.

    With a ``schema``, arithmetic is written so that overflow and division by zero give null
    instead of an error: one odd row must not stop a continuous query.

    >>> to_sql(Call(">", (Call("+", (Column("kwh"), Literal(1.5))), Literal(9))))
    '((`kwh` + 1.5D) > 9)'
    """
    match expression:
        case Column(name):
            return f"`{name}`"
        case Literal(value):
            return literal_sql(value)
        case Cast(operand, type):
            return f"TRY_CAST({to_sql(operand, schema)} AS {type})"
        case Case(branches, otherwise):
            body = " ".join(
                f"WHEN {condition_sql(when, schema)} THEN {to_sql(then, schema)}"
                for when, then in branches
            )
            return f"CASE {body} ELSE {to_sql(otherwise, schema)} END"
        case Call("to_timestamp", (text, Literal(str() as pattern))) if schema is not None:
            return _read_time(to_sql(text, schema), pattern)
        case Call(function, arguments):
            texts = [to_sql(argument, schema) for argument in arguments]
            if schema is None or not _may_fail(expression, schema):
                return FUNCTIONS[function].sql(texts)
            safe = FUNCTIONS[function].safe_sql(texts)
            is_wide = FUNCTIONS[function].is_wide
            return f"TRY_CAST({safe} AS {type_of(expression, schema)})" if is_wide else safe
    raise InputError(f"{expression!r} is not an expression")


def condition_sql(condition: Expression, schema: Schema | None) -> str:
    """A condition as Spark SQL: where Spark wants one, it takes a null only as a boolean."""
    text = to_sql(condition, schema)
    is_null = schema is not None and type_of(condition, schema) is DataType.NULL
    return f"CAST({text} AS BOOLEAN)" if is_null else text


def _read_time(text: str, pattern: str) -> str:
    """A text read as a time of the years 1 to 9999; null where it is none."""
    fitting = f"if({text} RLIKE {literal_sql(time_pattern(pattern).java)}, {text}, NULL)"
    read = f"unix_micros(try_to_timestamp({fitting}, {literal_sql(pattern)}))"
    before, after = f"{FIRST_SECOND * 10**6 - 1}L", f"{AFTER_LAST_SECOND * 10**6}L"
    # least and greatest leave nulls out, so a null becomes a bound, and a bound null.
    return (
        f"timestamp_micros(nullif(nullif(least(greatest({read}, {before}), {after}), {before}), "
        f"{after}))"
    )


def _may_fail(call: Call, schema: Schema) -> bool:
    if not FUNCTIONS[call.function].may_fail:
        return False
    if call.function in ("/", "%", "split_part") or call.function.startswith("timestamp_"):
        return True
    if call.function == "like":
        return not isinstance(call.arguments[1], Literal)
    types = [type_of(argument, schema) for argument in call.arguments]
    if call.function in ("floor", "ceil"):
        return types == [DataType.DOUBLE]
    return all(type_.is_integer for type_ in types)


def literal_sql(value: Scalar) -> str:
    """A constant as Spark SQL; a time without a zone is UTC.

    >>> literal_sql("it's"), literal_sql(2.0), literal_sql(timedelta(minutes=5))
    ("'it\\\\'s'", '2.0D', "INTERVAL '300.000000' SECOND")
    """
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return f"{value}L" if _integer_type(value) is DataType.BIGINT else str(value)
        case float():
            return f"{value!r}D" if isfinite(value) else f"double('{value}')"
        case str():
            escaped = value.replace("\\", "\\\\").replace("'", "\\'")
            return f"'{escaped}'"
        case datetime():
            moment = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
            return f"TIMESTAMP '{moment.isoformat(' ', 'microseconds')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case timedelta():
            microseconds = value // timedelta(microseconds=1)
            sign, size = ("-", -microseconds) if microseconds < 0 else ("", microseconds)
            return f"INTERVAL '{sign}{size // 10**6}.{size % 10**6:06d}' SECOND"
    raise InputError(f"{value!r} cannot be a constant")


def interval_text(value: timedelta) -> str:
    """An interval as people write it in SQL.

    >>> interval_text(timedelta(hours=6))
    "INTERVAL '6' HOUR"
    """
    count, unit = duration_text(value // timedelta(microseconds=1)).split()
    return f"INTERVAL '{count}' {unit.rstrip('s').upper()}"
