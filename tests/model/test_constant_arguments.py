"""What must be a constant, and which constants are refused."""

from __future__ import annotations

import pytest

from penstock.errors import InputError
from penstock.model.expressions import Call, Column, Expression, Literal, type_of
from penstock.model.schema import Schema

SCHEMA = Schema.parse("s string, i int, d double")


def call(function: str, *arguments: str | int | Expression) -> Call:
    given = (
        Literal(argument) if isinstance(argument, str | int) else argument for argument in arguments
    )
    return Call(function, tuple(given))


S, N = Column("s"), Column("i")


@pytest.mark.parametrize(
    "expression",
    [
        call("rlike", S, "^a|[)]"),
        call("rlike", S, r"\p{L}+"),
        call("rlike", S, "[[a]"),
        call("rlike", S, "(a" + "(b)" * 200 + ")"),
        Call("rlike", (S, Literal(None))),
        call("regexp_extract", S, "(a)"),
        call("regexp_extract", S, "a", 0),
        call("regexp_extract", S, "(?<n>a)", 7),
        call("regexp_extract", S, "(a)(b)", 2),
        call("like", S, r"100\% \\ \_"),
        call("like", S, S),
        call("round", Column("d")),
        call("round", Column("d"), -2),
        call("round", Column("d"), Call("negate", (Literal(2),))),
    ],
)
def test_accepted(expression: Expression) -> None:
    type_of(expression, SCHEMA)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (call("rlike", S, "(a"), "'(a' is no regular expression: it has a ( without its )"),
        (call("rlike", S, "a)"), "'a)' is no regular expression: it has a ) without its ("),
        (call("rlike", S, "[a"), "'[a' is no regular expression: it has a [ without its ]"),
        (call("rlike", S, S), "a regular expression must be a constant. Write it out."),
        (
            call("regexp_extract", S, "(a)", N),
            "the number of a group must be a constant. Write it out.",
        ),
        (
            call("regexp_extract", S, "a"),
            "'a' has 0 groups; 1 is none of them. "
            "Put what is wanted in ( ), or ask for group 0, which is all that fits.",
        ),
        (
            call("regexp_extract", S, "(a)", -1),
            "'(a)' has 1 group; -1 is none of them. "
            "Put what is wanted in ( ), or ask for group 0, which is all that fits.",
        ),
        (
            call("like", S, "a\\"),
            "'a\\\\' is no pattern: a backslash stands before none of %, _ and \\. "
            "Write two backslashes for one.",
        ),
        (call("round", N, N), "the count of digits must be a constant. Write it out."),
    ],
)
def test_refused(expression: Expression, message: str) -> None:
    with pytest.raises(InputError) as caught:
        type_of(expression, SCHEMA)
    assert str(caught.value) == message
