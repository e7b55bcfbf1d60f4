"""What kernels compute with Arrow is what Spark computes, at the limits of all types."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.feeds.arrow import arrow_schema
from penstock.kernels.expressions import can_evaluate, evaluate
from penstock.model.expressions import (
    Call,
    Case,
    Cast,
    Column,
    Expression,
    Literal,
    condition_sql,
    to_sql,
    type_of,
)
from penstock.model.schema import Schema
from penstock.model.types import DataType
from penstock.spark.ddl import spark_ddl

SCHEMA = Schema.parse(
    "i int, j int, l bigint, m bigint, x double, y double, s string, t string, "
    "b boolean, c boolean, ts timestamp, tt timestamp"
)
_INTS = [None, 0, 1, -1, 7, 2**31 - 1, -(2**31)]
_LONGS = [None, 0, 1, -1, 12, 2**62, 2**63 - 1, -(2**63), 3_037_000_500]
_DOUBLES = [None, 0.0, -0.0, 1.5, -2.25, math.inf, -math.inf, math.nan, 1e308, 5e-324]
_STRINGS = [None, "", "a", "B", "é", "zz", "\U0001f600"]
_TIMES = [None, *(datetime(year, 3, 4, 5, 6, 7, 123456, UTC) for year in (1600, 1969, 2024, 9999))]
_VALUES = {
    "i": _INTS, "j": _INTS, "l": _LONGS, "m": _LONGS, "x": _DOUBLES, "y": _DOUBLES,
    "s": _STRINGS, "t": _STRINGS, "b": [None, True, False], "c": [None, True, False],
    "ts": _TIMES, "tt": _TIMES,
}  # fmt: skip
_CONSTANTS = {
    DataType.INT: [0, 3, -5, 2**31 - 1],
    DataType.BIGINT: [2**40, -(2**40)],
    DataType.DOUBLE: [0.0, 2.5, -1e9],
    DataType.STRING: ["", "a", "é"],
    DataType.BOOLEAN: [True, False],
    DataType.TIMESTAMP: [datetime(year, 3, 4, 5, 6, 7, 123456, UTC) for year in (1600, 2024)],
}
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>")


def _rows(random: Random, count: int) -> pa.Table:
    columns = {name: [random.choice(kept) for _ in range(count)] for name, kept in _VALUES.items()}
    return pa.table(columns, schema=arrow_schema(SCHEMA))


def _leaf(random: Random, type: DataType) -> Expression:
    columns = [field.name for field in SCHEMA if field.type is type]
    constants = _CONSTANTS.get(type, [])
    if constants and random.random() < 0.3:
        constant = random.choice([*constants, None])
        return Cast(Literal(None), type) if constant is None else Literal(constant)
    return Column(random.choice(columns))


def _expression(random: Random, type: DataType, depth: int) -> Expression:
    def part(wanted: DataType) -> Expression:
        return _expression(random, wanted, depth - 1)

    if depth == 0 or random.random() < 0.15:
        return _leaf(random, type)
    number = random.choice([DataType.INT, DataType.BIGINT, DataType.DOUBLE])
    any_type = random.choice([number, DataType.STRING, DataType.TIMESTAMP, DataType.BOOLEAN])
    chosen = random.random()
    if chosen < 0.1:
        return Call("coalesce", (part(type), part(type)))
    if chosen < 0.2:
        return Call("if", (part(DataType.BOOLEAN), part(type), part(type)))
    if chosen < 0.3:
        return Case(((part(DataType.BOOLEAN), part(type)),), part(type))
    if chosen < 0.36:
        return Call("nullif", (part(type), part(type)))
    if type is DataType.BOOLEAN:
        simple = random.choice(["compare", "compare", "and", "or", "not", "is_null", "in"])
        if simple == "compare":
            return Call(random.choice(_COMPARISONS), (part(any_type), part(any_type)))
        if simple in ("and", "or"):
            return Call(simple, (part(type), part(type)))
        if simple == "not":
            return Call("not", (part(type),))
        if simple == "is_null":
            return Call("is_null", (part(any_type),))
        return Call("in", (part(any_type), part(any_type), part(any_type)))
    if type is DataType.BIGINT and chosen < 0.5:
        return random.choice(
            [Call("unix_micros", (part(DataType.TIMESTAMP),)), Cast(part(DataType.INT), type)]
        )
    if type is DataType.DOUBLE and chosen < 0.6:
        return random.choice([Call("/", (part(number), part(number))), Cast(part(number), type)])
    if type.is_numeric:
        symbols = ["+", "-", "*", "abs", "negate"] + (["%"] if type.is_integer else [])
        symbol = random.choice(symbols)
        count = 1 if symbol in ("abs", "negate") else 2
        return Call(symbol, tuple(part(type) for _ in range(count)))
    return _leaf(random, type)


def _alike(ours: object, theirs: object) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float):
        return ours == theirs or (math.isnan(ours) and math.isnan(theirs))
    return type(ours) is type(theirs) and ours == theirs


@pytest.mark.parametrize("seed", range(4))
def test_arrow_gives_what_spark_gives(session: SparkSession, seed: int) -> None:
    random = Random(seed)
    rows = _rows(random, 60)
    types = [DataType.BOOLEAN, DataType.INT, DataType.BIGINT, DataType.DOUBLE, DataType.STRING]
    made = [_expression(random, random.choice(types), 3) for _ in range(200)]
    known = [one for one in made if can_evaluate(one, SCHEMA)]
    assert len(known) > 100, "nearly all of these should be evaluated here"
    frame = session.createDataFrame(rows, spark_ddl(SCHEMA))
    theirs = frame.selectExpr(
        *(f"{to_sql(one, SCHEMA)} AS e{at}" for at, one in enumerate(known))
    ).toArrow()
    for at, one in enumerate(known):
        ours, spark = evaluate(one, rows, SCHEMA).to_pylist(), theirs.column(at).to_pylist()
        wrong = [row for row in range(60) if not _alike(ours[row], spark[row])]
        assert not wrong, (
            f"{to_sql(one, SCHEMA)} ({type_of(one, SCHEMA)}) of "
            f"{rows.slice(wrong[0], 1).to_pylist()}: "
            f"{ours[wrong[0]]!r}, Spark has {spark[wrong[0]]!r}"
        )


def test_spark_takes_a_null_as_a_condition(session: SparkSession) -> None:
    null = Literal(None)
    chosen = to_sql(Case(((null, Literal(1)),), Literal(2)), SCHEMA)
    assert [row[0] for row in session.range(2).selectExpr(chosen).collect()] == [2, 2]
    assert session.range(2).where(condition_sql(null, SCHEMA)).count() == 0
