"""Random expressions of a given depth over the columns of one schema."""

from __future__ import annotations

from datetime import UTC, timedelta
from functools import cache

from hypothesis import strategies as st

from penstock.model.expressions import Call, Case, Cast, Column, Expression, Literal
from penstock.model.schema import Schema
from penstock.model.types import DataType

SCHEMA = Schema.parse(
    "flag boolean, n int, amount bigint, kwh double, home string, ts timestamp, day date, "
    "end string, interval double"
)
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>")

Expressions = st.SearchStrategy[Expression]


def any_expression(depth: int) -> Expressions:
    return st.one_of(conditions(depth), numbers(depth), texts(depth), times(depth))


def columns(*types: DataType) -> Expressions:
    return st.sampled_from([Column(one.name) for one in SCHEMA if one.type in types])


def call(functions: tuple[str, ...], *arguments: Expressions) -> Expressions:
    return st.builds(
        lambda function, *given: Call(function, given), st.sampled_from(functions), *arguments
    )


@cache
def numbers(depth: int) -> Expressions:
    leaves = st.one_of(
        columns(DataType.INT, DataType.BIGINT, DataType.DOUBLE),
        st.integers(-(2**63), 2**63 - 1).map(Literal),
        st.floats(allow_nan=False, allow_infinity=False).map(Literal),
    )
    if not depth:
        return leaves
    inner, condition = numbers(depth - 1), conditions(depth - 1)
    return st.one_of(
        leaves,
        call(("+", "-", "*", "/", "%", "power"), inner, inner),
        call(("negate", "abs"), inner),
        call(("if",), condition, inner, inner),
        st.builds(lambda when, then, other: Case(((when, then),), other), condition, inner, inner),
        st.builds(Cast, st.one_of(inner, texts(depth - 1)), st.just(DataType.DOUBLE)),
    )


@cache
def texts(depth: int) -> Expressions:
    leaves = st.one_of(columns(DataType.STRING), st.text(max_size=6).map(Literal))
    if not depth:
        return leaves
    inner = texts(depth - 1)
    return st.one_of(
        leaves,
        call(("concat", "coalesce"), inner, inner),
        st.builds(Cast, numbers(depth - 1), st.just(DataType.STRING)),
    )


@cache
def intervals(depth: int) -> Expressions:
    leaves = st.timedeltas(timedelta(-1000), timedelta(1000)).map(Literal)
    if not depth:
        return leaves
    inner, moments = intervals(depth - 1), times(depth - 1)
    return st.one_of(
        leaves,
        call(("+", "-"), inner, inner),
        call(("negate",), inner),
        call(("-",), moments, moments),
    )


@cache
def times(depth: int) -> Expressions:
    leaves = st.one_of(
        columns(DataType.TIMESTAMP), st.datetimes(timezones=st.just(UTC)).map(Literal)
    )
    if not depth:
        return leaves
    return st.one_of(
        leaves,
        call(("+", "-"), times(depth - 1), intervals(depth - 1)),
        st.builds(Cast, texts(depth - 1), st.just(DataType.TIMESTAMP)),
    )


PATTERNS = st.sampled_from(["a", "it's", "^[a-c]", "%_", "(a|b)", "é"]).map(Literal)


@cache
def conditions(depth: int) -> Expressions:
    leaves = st.one_of(columns(DataType.BOOLEAN), st.booleans().map(Literal))
    if not depth:
        return leaves
    inner, number, text = conditions(depth - 1), numbers(depth - 1), texts(depth - 1)
    return st.one_of(
        leaves,
        *(call(COMPARISONS, one, one) for one in (number, text, times(depth - 1), inner)),
        call(("and", "or"), inner, inner),
        call(("not",), inner),
        call(("is_null",), st.one_of(number, text, inner)),
        call(("in",), text, text, text),
        call(("like",), text, st.one_of(columns(DataType.STRING), PATTERNS)),
        call(("rlike",), text, PATTERNS),
        st.builds(_between, number, number, number),
    )


def _between(value: Expression, low: Expression, high: Expression) -> Expression:
    return Call("and", (Call(">=", (value, low)), Call("<=", (value, high))))
