"""What follows from conditions: compared with what they say of rows."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws import tried
from penstock.feeds.arrow import arrow_schema
from penstock.kernels.expressions import evaluate
from penstock.model.canonical_expressions import conditions_of, normalise, over_columns
from penstock.model.expressions import Call, Column, Expression, Literal
from penstock.model.schema import Schema
from penstock.share.containment import follows, residual

A, X = Column("a"), Column("x")
SCHEMA = Schema.parse("a bigint, x double")
VALUES = {
    "a": [None, -(2**63), -3, -1, 0, 1, 2, 3, 2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1],
    "x": [None, float("nan"), float("-inf"), -3.0, -0.5, -0.0, 0.0, 1.0, 1.5, 2.0, 3.0, 2.0**53],
}
ROWS = pa.table(
    {
        "a": [a for a in VALUES["a"] for _ in VALUES["x"]],
        "x": [x for _ in VALUES["a"] for x in VALUES["x"]],
    },
    schema=arrow_schema(SCHEMA),
)
NUMBERS = st.sampled_from([-3, -1, 0, 1, 2, 3, 2**53 - 1, 2**53, 2**53 + 1]) | st.sampled_from(
    [-0.5, 0.0, -0.0, 1.0, 1.5, 2.0, 2.0**53, float("nan"), float("inf")]
)


@st.composite
def comparisons(draw: st.DrawFn) -> Expression:
    value = draw(st.sampled_from([A, X, Call("+", (A, X))]))
    kind = draw(st.sampled_from(["<", "<=", ">", ">=", "=", "<>", "in"]))
    constants = [Literal(draw(NUMBERS)) for _ in range(3 if kind == "in" else 1)]
    if kind != "in" and draw(st.booleans()):
        return normalise(Call(kind, (constants[0], value)))
    return normalise(Call(kind, (value, *constants)))


def met(condition: Expression) -> list[bool]:
    return [value is True for value in evaluate(condition, ROWS, SCHEMA).to_pylist()]


@given(comparisons(), comparisons())
@tried(400)
def test_what_follows_holds_for_every_row(given: Expression, condition: Expression) -> None:
    if follows(condition, [given]):
        pairs = zip(met(given), met(condition), strict=True)
        assert all(then for when, then in pairs if when)


def compared(kind: str, value: object, of: Expression = A) -> Expression:
    return normalise(Call(kind, (of, Literal(value))))  # type: ignore[arg-type]


NOON = datetime(2026, 1, 1, 12)


@pytest.mark.parametrize(
    ("given", "condition", "does"),
    [
        (compared(">", 5), compared(">", 3), True),
        (compared(">", 3), compared(">", 5), False),
        (compared(">", 3), compared(">=", 3), True),
        (compared(">=", 3), compared(">", 3), False),
        (compared("<", 3), compared("<", 3.5), True),
        (compared("<", 3), compared(">", 1), False),
        (compared("=", 4), compared(">", 3), True),
        (compared("=", 4), compared(">", 4), False),
        (compared("<", 3, X), compared("<", 4), False),
        (compared(">", 2**53), compared(">", float(2**53)), False),
        (compared("=", "b"), normalise(Call("in", (A, Literal("a"), Literal("b")))), True),
        (normalise(Call("in", (A, Literal(1), Literal(2)))), compared("<", 3), True),
        (normalise(Call("in", (A, Literal(1), Literal(3)))), compared("<", 3), False),
        (compared(">", NOON), compared(">", NOON.replace(hour=11, tzinfo=UTC)), True),
        (compared(">", date(2026, 1, 2)), compared(">", date(2026, 1, 1)), True),
        (compared(">", date(2026, 1, 2)), compared(">", NOON), False),
        (compared(">", "b"), compared(">", "a"), False),
    ],
)
def test_what_is_recognised(given: Expression, condition: Expression, does: bool) -> None:
    assert follows(condition, [given]) is does


def test_what_is_left_to_check() -> None:
    held = conditions_of(normalise(Call("and", (compared(">", 1), compared("<", 9)))))
    wanted = (*held, compared("=", 2, X))
    assert residual(wanted, held) == (compared("=", 2, X),)
    assert residual(wanted, held[:1]) == wanted[1:]
    assert residual(held, wanted) is None
    stricter = (compared("=", 2),)
    assert residual(stricter, held) == stricter


def test_what_is_made_of_columns_that_are_there() -> None:
    total = Call("+", (A, X))
    known = {"`a`": Column("first"), "+(`a`, `x`)": Column("sum")}
    assert over_columns(Call("*", (total, A)), known) == Call("*", (Column("sum"), Column("first")))
    assert over_columns(X, known) is None
    assert over_columns(Literal(3), {}) == Literal(3)
