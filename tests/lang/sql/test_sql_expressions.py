"""Expressions: what each way of writing means, and that they print back."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from sql_strategies import SCHEMA, any_expression

from laws import tried
from penstock.errors import InputError
from penstock.lang.sql import expression_sql, parse_aggregate, parse_expression
from penstock.model.aggregates import AggregateCall
from penstock.model.expressions import Call, Case, Cast, Column, Expression, Literal, type_of
from penstock.model.types import DataType

KWH, HOME, TS = Column("kwh"), Column("home"), Column("ts")


def parsed(text: str) -> Expression:
    return parse_expression(text, SCHEMA)


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("KWH > 9", Call(">", (KWH, Literal(9)))),
        ("kwh != 1.5", Call("<>", (KWH, Literal(1.5)))),
        ("kwh == 1e3", Call("=", (KWH, Literal(1000.0)))),
        ("-5", Literal(-5)),
        ("-(5)", Call("negate", (Literal(5),))),
        ("-9223372036854775808", Literal(-(2**63))),
        ("'it''s'", Literal("it's")),
        (r"'it\'s'", Literal("it's")),
        (r"'a\\d'", Literal(r"a\d")),
        (r"r'a\d'", Literal(r"a\d")),
        ("'a' 'b'", Literal("ab")),
        ("NULL", Literal(None)),
        ("TRUE", Literal(True)),
        ("NOT flag", Call("not", (Column("flag"),))),
        ("home IS NOT NULL", Call("not", (Call("is_null", (HOME,)),))),
        ("flag IS TRUE", Call("<=>", (Column("flag"), Literal(True)))),
        ("home IS NOT DISTINCT FROM 'a'", Call("<=>", (HOME, Literal("a")))),
        ("home IS DISTINCT FROM 'a'", Call("not", (Call("<=>", (HOME, Literal("a"))),))),
        ("home IN ('a', 'b')", Call("in", (HOME, Literal("a"), Literal("b")))),
        ("home NOT IN ('a')", Call("not", (Call("in", (HOME, Literal("a"))),))),
        ("home LIKE 'a%'", Call("like", (HOME, Literal("a%")))),
        ("home NOT LIKE 'a%'", Call("not", (Call("like", (HOME, Literal("a%"))),))),
        ("home RLIKE 'a'", Call("rlike", (HOME, Literal("a")))),
        (
            "home ILIKE 'A'",
            Call("like", (Call("lower", (HOME,)), Call("lower", (Literal("A"),)))),
        ),
        (
            "kwh BETWEEN 1 AND 2",
            Call("and", (Call(">=", (KWH, Literal(1))), Call("<=", (KWH, Literal(2))))),
        ),
        ("home || 'a' || 'b'", Call("concat", (HOME, Literal("a"), Literal("b")))),
        ("n % 2", Call("%", (Column("n"), Literal(2)))),
        ("mod(n, 2)", Call("%", (Column("n"), Literal(2)))),
        ("nvl(home, 'a')", Call("coalesce", (HOME, Literal("a")))),
        ("substr(home, 2)", Call("substring", (HOME, Literal(2)))),
        ("left(home, 2)", Call("substring", (HOME, Literal(1), Literal(2)))),
        ("IF(flag, 1, 2)", Call("if", (Column("flag"), Literal(1), Literal(2)))),
        ("IFF(flag, 1, 2)", Call("if", (Column("flag"), Literal(1), Literal(2)))),
        ("isnotnull(home)", Call("not", (Call("is_null", (HOME,)),))),
        ("EXTRACT(HOUR FROM ts)", Call("hour", (TS,))),
        ("date_trunc('hour', ts)", Call("date_trunc", (Literal("hour"), TS))),
        ("regexp_extract(home, '(a)')", Call("regexp_extract", (HOME, Literal("(a)")))),
        ("split_part(home, '/', 3)", Call("split_part", (HOME, Literal("/"), Literal(3)))),
        ("CAST(kwh AS double precision)", Cast(KWH, DataType.DOUBLE)),
        ("TRY_CAST(home AS int)", Cast(HOME, DataType.INT)),
        ("kwh::varchar", Cast(KWH, DataType.STRING)),
        ("ts::date", Cast(TS, DataType.DATE)),
        ("5L", Cast(Literal(5), DataType.BIGINT)),
        (
            "CASE n WHEN 1 THEN 'a' END",
            Case(((Call("=", (Column("n"), Literal(1))), Literal("a")),), Literal(None)),
        ),
        ("CASE WHEN flag THEN 1 ELSE 2 END", Case(((Column("flag"), Literal(1)),), Literal(2))),
        ("DATE '2024-02-01'", Literal(date(2024, 2, 1))),
        ("TIMESTAMP '2024-02-01 10:00:00'", Literal(datetime(2024, 2, 1, 10, tzinfo=UTC))),
        ("TIMESTAMP '2024-02-01T10:00:00+02:00'", Literal(datetime(2024, 2, 1, 8, tzinfo=UTC))),
        ("ts > '2024-02-01'", Call(">", (TS, Literal(datetime(2024, 2, 1, tzinfo=UTC))))),
        ("day = '2024-02-01'", Call("=", (Column("day"), Literal(date(2024, 2, 1))))),
        ("`end`", Column("end")),
        ("`interval`", Column("interval")),
    ],
)
def test_meaning(text: str, expression: Expression) -> None:
    assert parsed(text) == expression
    assert parsed(expression_sql(expression)) == expression


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("INTERVAL 6 HOURS", timedelta(hours=6)),
        ("INTERVAL '6' HOUR", timedelta(hours=6)),
        ("INTERVAL '6 hours'", timedelta(hours=6)),
        ("INTERVAL '1 hour 30 minutes'", timedelta(minutes=90)),
        ("INTERVAL -5 MINUTES", timedelta(minutes=-5)),
        ("INTERVAL '-5' MINUTE", timedelta(minutes=-5)),
        ("-INTERVAL 5 MINUTES", timedelta(minutes=-5)),
        ("INTERVAL 1.5 SECONDS", timedelta(seconds=1.5)),
        ("INTERVAL '2' WEEKS", timedelta(weeks=2)),
        ("INTERVAL 250 MILLISECONDS", timedelta(milliseconds=250)),
    ],
)
def test_intervals(text: str, length: timedelta) -> None:
    assert parsed(f"ts + {text}") == Call("+", (TS, Literal(length)))


@pytest.mark.parametrize(
    "text",
    [
        "kwh + 1.5 > 9 AND home IS NOT NULL",
        "(kwh + 1) * 2 - -3",
        "kwh - (1 - n)",
        "flag OR NOT (flag AND n = 1)",
        "(flag OR n = 1) AND kwh BETWEEN 1 AND n * 2",
        "home NOT IN ('a', 'b') AND home NOT LIKE 'x%'",
        "CASE WHEN n = 1 THEN 'one' ELSE upper(home) END = 'A'",
        "ts - INTERVAL '6' HOUR < TIMESTAMP '2024-02-01 10:00:00'",
        "CAST(kwh AS BIGINT) % 2 = 0",
        "(n = 1) = flag",
        "coalesce(`end`, 'a') RLIKE 'it\\'s'",
    ],
)
def test_printed_as_people_write(text: str) -> None:
    assert expression_sql(parsed(text)) == text


def test_numbers_without_a_digit() -> None:
    assert expression_sql(Literal(float("-inf"))) == "CAST('-Infinity' AS DOUBLE)"
    assert expression_sql(Literal(float("nan"))) == "CAST('NaN' AS DOUBLE)"


def test_columns_that_stand_alone_have_no_relation() -> None:
    with pytest.raises(InputError, match=r"nothing called r here\. Name the column alone\."):
        parsed("r.kwh > 3")


def test_aggregates() -> None:
    assert parse_aggregate("SUM(kwh)", SCHEMA) == AggregateCall("sum", (KWH,))
    assert parse_aggregate("count(*)", SCHEMA) == AggregateCall("count")
    with pytest.raises(InputError, match="upper\\(home\\) is not an aggregate"):
        parse_aggregate("upper(home)", SCHEMA)
    with pytest.raises(InputError, match="the aggregate sum cannot be used in an expression"):
        parsed("sum(kwh) > 3")
    with pytest.raises(InputError, match="sum takes a number; it got a string"):
        parse_aggregate("sum(home)", SCHEMA)


@tried(60)
@given(any_expression(3))
def test_whatever_is_printed_reads_back(expression: Expression) -> None:
    type_of(expression, SCHEMA)
    assert parsed(expression_sql(expression)) == expression
