"""What aggregates take and give."""

from datetime import timedelta

import pytest

from penstock.errors import InputError
from penstock.model.aggregates import AGGREGATES, AggregateCall
from penstock.model.expressions import Call, Column, Expression, Literal
from penstock.model.schema import Schema
from penstock.model.types import DataType

SCHEMA = Schema.parse("i int, l bigint, d double, s string, b boolean, t timestamp, raw binary")
NULL, INTERVAL = Literal(None), Literal(timedelta(seconds=1))


def one(function: str, *columns: str | Expression) -> AggregateCall:
    arguments = tuple(Column(c) if isinstance(c, str) else c for c in columns)
    return AggregateCall(function, arguments)


@pytest.mark.parametrize(
    ("call", "type"),
    [
        (one("count"), DataType.BIGINT),
        (one("count", "s"), DataType.BIGINT),
        (one("count", NULL), DataType.BIGINT),
        (one("count_if", "b"), DataType.BIGINT),
        (one("sum", "i"), DataType.BIGINT),
        (one("sum", "l"), DataType.BIGINT),
        (one("sum", "d"), DataType.DOUBLE),
        (one("avg", "i"), DataType.DOUBLE),
        (one("stddev", "d"), DataType.DOUBLE),
        (one("variance", "l"), DataType.DOUBLE),
        (one("min", "s"), DataType.STRING),
        (one("min", "raw"), DataType.BINARY),
        (one("max", "t"), DataType.TIMESTAMP),
        (one("max", "i"), DataType.INT),
        (one("min_by", "s", "t"), DataType.STRING),
        (one("max_by", "d", "i"), DataType.DOUBLE),
        (one("approx_count_distinct", "s"), DataType.BIGINT),
    ],
)
def test_results(call: AggregateCall, type: DataType) -> None:
    assert call.result_type(SCHEMA) is type


def test_every_aggregate_has_a_case_above() -> None:
    cases = test_results.pytestmark[0].args[1]  # type: ignore[attr-defined]
    assert {call.function for call, _ in cases} == set(AGGREGATES)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (one("sum", "s"), "sum takes a number; it got a string"),
        (one("sum", NULL), "sum takes a number; it got a null"),
        (one("avg", "t"), "avg takes a number; it got a timestamp"),
        (one("stddev", "b"), "stddev takes a number; it got a boolean"),
        (one("variance", "s"), "variance takes a number; it got a string"),
        (one("count_if", "i"), "count_if takes a condition; it got a int"),
        (one("min", INTERVAL), "min takes a value that can be compared; it got a interval"),
        (
            one("max_by", INTERVAL, "i"),
            "max_by takes a value and what to order by; it got a interval",
        ),
    ],
)
def test_wrong_types_are_refused(call: AggregateCall, message: str) -> None:
    with pytest.raises(InputError) as caught:
        call.result_type(SCHEMA)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("function", "count", "takes"),
    [
        ("sum", 0, "a number"),
        ("sum", 2, "a number"),
        ("count", 2, "one value or *"),
        ("min_by", 1, "a value and what to order by"),
        ("approx_count_distinct", 0, "one value"),
    ],
)
def test_wrong_counts_of_arguments_are_refused(function: str, count: int, takes: str) -> None:
    with pytest.raises(InputError) as caught:
        one(function, *["i"] * count)
    given = "1 argument" if count == 1 else f"{count} arguments"
    assert str(caught.value) == f"{function} takes {takes}; it got {given}"


def test_an_unknown_aggregate_lists_those_there_are() -> None:
    with pytest.raises(InputError) as caught:
        one("summ", "i")
    names = ", ".join(AGGREGATES)
    assert str(caught.value) == f"no aggregate summ. There are {names}. Did you mean sum?"


def test_calls_as_sql() -> None:
    assert one("count").sql() == "count(*)"
    assert one("max_by", "s", "t").sql() == "max_by(`s`, `t`)"
    assert one("sum", "i").sql() == "sum(`i`)"


def test_with_a_schema_a_sum_that_overflows_is_null() -> None:
    doubled = Call("*", (Column("i"), Literal(2)))
    assert one("sum", doubled).sql(SCHEMA) == "try_sum(try_multiply(`i`, 2))"
    assert one("avg", "i").sql(SCHEMA) == "avg(`i`)"
