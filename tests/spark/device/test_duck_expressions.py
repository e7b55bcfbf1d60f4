"""What is printed for DuckDB is what Spark computes, at the limits of all types."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.device.duck_expressions import NotExact
from penstock.device.duck_functions import DUCK_FUNCTIONS
from penstock.device.engine import ShippedRun
from penstock.device.steps import step_of
from penstock.errors import InputError
from penstock.feeds.arrow import arrow_schema
from penstock.model.expressions import (
    Call,
    Case,
    Cast,
    Column,
    Expression,
    Literal,
    to_sql,
    type_of,
    walk,
)
from penstock.model.functions import FUNCTIONS
from penstock.model.operators import Input, Map
from penstock.model.schema import Schema, Shape
from penstock.model.types import DataType
from penstock.spark.calendar import in_calendar
from penstock.spark.ddl import spark_ddl

SCHEMA = Schema.parse(
    "i int, j int, l bigint, m bigint, x double, y double, s string, t string, "
    "b boolean, c boolean, ts timestamp, tt timestamp, d date, e date"
)
_INTS = [None, 0, 1, -1, 7, 2**31 - 1, -(2**31)]
_LONGS = [None, 0, 1, -1, 12, 2**62, 2**63 - 1, -(2**63), 3_037_000_500, 1_700_000_000_123]
_DOUBLES = [
    None, 0.0, -0.0, 1.5, -2.25, 2.5, -0.5, math.inf, -math.inf, math.nan, 1e308, 5e-324, 9.3e18,
]  # fmt: skip
_STRINGS = [None, "", "a", "B", "é", " zz ", "\U0001f600", "a,b,,c", "\tA%_", "e\u0301a", "it's"]
_TIMES = [
    None,
    *(datetime(year, 3, 4, 5, 6, 7, 123456, UTC) for year in (1, 1600, 1969, 2024, 9999)),
    datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
]
_DAYS = [None, date(1, 1, 1), date(1969, 12, 31), date(2024, 2, 29), date(9999, 12, 31)]
_VALUES = {
    "i": _INTS, "j": _INTS, "l": _LONGS, "m": _LONGS, "x": _DOUBLES, "y": _DOUBLES,
    "s": _STRINGS, "t": _STRINGS, "b": [None, True, False], "c": [None, True, False],
    "ts": _TIMES, "tt": _TIMES, "d": _DAYS, "e": _DAYS,
}  # fmt: skip
_ROWS = 250
_LITERALS: tuple[Expression, ...] = tuple(
    map(Literal, (None, 0, 3, 1, -5, 2**40, 2.5, "", "a", "%a_", ",", "day", "week", True,
                  timedelta(days=400_000), timedelta(microseconds=7)))
)  # fmt: skip


def _rows(random: Random) -> pa.Table:
    columns = {name: [random.choice(kept) for _ in range(_ROWS)] for name, kept in _VALUES.items()}
    return pa.table(columns, schema=arrow_schema(SCHEMA))


def _fits(expression: Expression) -> bool:
    """Whether it has a type that a column can have."""
    try:
        return type_of(expression, SCHEMA).is_storable
    except InputError:
        return False


def _shipped(expressions: list[Expression], rows: pa.Table) -> pa.Table:
    shape = Shape(SCHEMA)
    columns = tuple((f"e{at}", one) for at, one in enumerate(expressions))
    step = step_of(Map("map", Input("rows", shape), columns))
    return ShippedRun([step], SCHEMA, {}).feed(rows, None)


def _is_exact(expression: Expression) -> bool:
    try:
        step_of(Map("map", Input("rows", Shape(SCHEMA)), (("e", expression),)))
    except NotExact:
        return False
    return True


def _alike(ours: object, theirs: object) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float):
        return ours == theirs or (math.isnan(ours) and math.isnan(theirs))
    return type(ours) is type(theirs) and ours == theirs


def _check(session: SparkSession, expressions: list[Expression], rows: pa.Table) -> None:
    frame = session.createDataFrame(rows, spark_ddl(SCHEMA))
    texts = [
        in_calendar(to_sql(expression, SCHEMA), type_of(expression, SCHEMA))
        for expression in expressions
    ]
    theirs = frame.selectExpr(*(f"{text} AS e{at}" for at, text in enumerate(texts))).toArrow()
    ours = _shipped(expressions, rows)
    failures = []
    for at, one in enumerate(expressions):
        mine, spark = ours.column(at).to_pylist(), theirs.column(at).to_pylist()
        wrong = [row for row in range(_ROWS) if not _alike(mine[row], spark[row])]
        if wrong:
            read = {part.name for part in walk(one) if isinstance(part, Column)}
            given = {name: rows.column(name)[wrong[0]].as_py() for name in sorted(read)}
            failures.append(
                f"{to_sql(one, SCHEMA)} of {given}: {mine[wrong[0]]!r}, "
                f"Spark has {spark[wrong[0]]!r}"
            )
    assert not failures, "\n".join(failures)


def _calls(random: Random) -> Iterator[Expression]:
    """Every function that can be printed, with all that fits among columns and constants."""
    leaves = [*(Column(name) for name in _VALUES), *_LITERALS]
    for function in DUCK_FUNCTIONS:
        found = 0
        for _ in range(4_000):
            count = random.choice((1, 2, 2, 3))
            call = _call(function, tuple(random.choice(leaves) for _ in range(count)))
            if call is not None and _is_exact(call):
                found += 1
                yield call
            if found == 14:
                break
        assert found, f"nothing fits {function}"


def _call(function: str, arguments: tuple[Expression, ...]) -> Call | None:
    call = Call(function, arguments)
    if function.startswith("unix_") and _reads_day(arguments[0]):
        return None  # Spark has it for timestamps only.
    reads = any(isinstance(argument, Column) for argument in arguments)
    return call if reads and _fits(call) else None


def _reads_day(argument: Expression) -> bool:
    return _fits(argument) and type_of(argument, SCHEMA) is DataType.DATE


def test_every_function_gives_what_spark_gives(session: SparkSession) -> None:
    random = Random(1)
    _check(session, list(_calls(random)), _rows(random))


def test_every_cast_gives_what_spark_gives(session: SparkSession) -> None:
    casts = [Cast(Column(name), type) for name in _VALUES for type in DataType]
    known = [cast for cast in casts if _fits(cast) and _is_exact(cast)]
    assert len(known) > 40
    _check(session, known, _rows(Random(2)))


@pytest.mark.parametrize("seed", range(3))
def test_nested_expressions_give_what_spark_gives(session: SparkSession, seed: int) -> None:
    random = Random(seed)
    pool: list[Expression] = [*(Column(name) for name in _VALUES), *_LITERALS]
    made: list[Expression] = []
    while len(made) < 150:
        parts = tuple(random.choice(pool) for _ in range(3))
        one: Expression | None
        if random.random() < 0.2:
            one = Case(((parts[0], parts[1]),), parts[2])
            one = one if _fits(one) else None
        else:
            one = _call(random.choice(list(DUCK_FUNCTIONS)), parts[: random.choice((1, 2, 2, 3))])
        if one is not None and _is_exact(one) and len(list(walk(one))) < 25:
            made.append(one)
            pool.append(one)
    _check(session, made, _rows(random))


def test_what_differs_is_refused_by_name() -> None:
    refused = set(FUNCTIONS) - set(DUCK_FUNCTIONS)
    assert {"upper", "lower", "rlike", "exp", "ln", "date_format"} <= refused
    with pytest.raises(NotExact) as error:
        step_of(Map("m", Input("rows", Shape(SCHEMA)), (("u", Call("upper", (Column("s"),))),)))
    assert str(error.value) == (
        "DuckDB does not compute upper(`s`) exactly as Spark does: upper differs. "
        "Leave it to the server, or write it in another way."
    )
