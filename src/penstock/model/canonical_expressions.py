"""Expressions in one spelling: what means the same is written the same.

Only rewrites that hold for every value are made, nulls and NaN included: comparisons are a total
order in Spark, so NOT (a < b) is b <= a; sums are not regrouped, because overflow gives null and
doubles round.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping

from penstock.model.expressions import (
    TRUE,
    Call,
    Case,
    Cast,
    Column,
    Expression,
    Literal,
    literal_sql,
    transform,
)

_COMMUTATIVE = ("+", "*", "=", "<>", "<=>")
_SWAPPED = {">": "<", ">=": "<="}
_NEGATED = {"=": "<>", "<>": "=", "<": ">=", "<=": ">"}
_DUAL = {"and": "or", "or": "and"}
_NEUTRAL = {"and": TRUE, "or": Literal(False)}

_LONGEST = 2_000
"""Longer expressions are named by a digest, or columns used twice at every step would grow without
bound."""


def normalise(expression: Expression) -> Expression:
    """The expression in its one spelling; it has the same value for every row.

    >>> a, b = Column("a"), Column("b")
    >>> normalise(Call(">", (a, b))) == normalise(Call("<", (b, a)))
    True
    >>> normalise(Call(">", (a, b))) == normalise(Call(">=", (a, b)))
    False
    """
    match expression:
        case Call(function, arguments):
            return _REWRITES.get(function, _plain_call)(
                function, tuple(normalise(argument) for argument in arguments)
            )
        case Cast(operand, type):
            return Cast(normalise(operand), type)
        case Case(branches, otherwise):
            return Case(
                tuple((normalise(when), normalise(then)) for when, then in branches),
                normalise(otherwise),
            )
        case _:
            return expression


def conditions_of(expression: Expression) -> tuple[Expression, ...]:
    """The parts that must all be true for a normalised expression to be true, TRUE left out."""
    return in_order(part for part in _parts(expression, "and") if part != TRUE)


def in_order(expressions: Iterable[Expression]) -> tuple[Expression, ...]:
    """Each expression once, sorted by how it is written."""
    by_text = {describe(expression): expression for expression in expressions}
    return tuple(by_text[text] for text in sorted(by_text))


def substitute(expression: Expression, columns: Mapping[str, Expression]) -> Expression:
    """The normalised expression with what ``columns`` has under lower-case names put in."""

    def meaning(part: Expression) -> Expression | None:
        return columns[part.name.lower()] if isinstance(part, Column) else None

    return shorten(normalise(transform(expression, meaning)))


def shorten(expression: Expression) -> Expression:
    """The expression, or a column named by its digest where it is very long."""
    text = describe(expression)
    return expression if len(text) <= _LONGEST else Column(f"#{digest(text)}")


def digest(text: str) -> str:
    """A short name for a text; other texts have other names."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def describe(expression: Expression) -> str:
    """The expression as text: two expressions are equal just when their texts are.

    >>> describe(Call("<", (Literal(9), Column("kwh"))))
    '<(9, `kwh`)'
    """
    match expression:
        case Column(name):
            return f"`{name}`"
        case Literal(value):
            return literal_sql(value)
        case Cast(operand, type):
            return f"cast({describe(operand)}, {type})"
        case Case(branches, otherwise):
            parts = [describe(part) for branch in branches for part in branch]
            return f"case({', '.join([*parts, describe(otherwise)])})"
        case Call(function, arguments):
            return f"{function}({', '.join(map(describe, arguments))})"


def over_columns(meaning: Expression, columns: Mapping[str, Column]) -> Expression | None:
    """A canonical expression as one over columns whose meanings are known; None if it is none.

    ``columns`` has each column by its meaning as text.

    >>> over_columns(Call("+", (Literal(1), Column("a"))), {"`a`": Column("first")})
    Call(function='+', arguments=(Literal(value=1), Column(name='first')))
    """
    known = columns.get(describe(meaning))
    if known is not None:
        return known
    match meaning:
        case Literal():
            return meaning
        case Call(function, arguments):
            parts = _all_over(arguments, columns)
            return None if parts is None else Call(function, parts)
        case Cast(operand, type):
            inner = over_columns(operand, columns)
            return None if inner is None else Cast(inner, type)
        case Case(branches, otherwise):
            flat = [part for branch in branches for part in branch]
            parts = _all_over((*flat, otherwise), columns)
            if parts is None:
                return None
            pairs = zip(parts[:-1:2], parts[1:-1:2], strict=True)
            return Case(tuple(pairs), parts[-1])
    return None


def _all_over(
    meanings: Iterable[Expression], columns: Mapping[str, Column]
) -> tuple[Expression, ...] | None:
    found = [over_columns(meaning, columns) for meaning in meanings]
    known = tuple(part for part in found if part is not None)
    return known if len(known) == len(found) else None


Arguments = tuple[Expression, ...]


def _plain_call(function: str, arguments: Arguments) -> Expression:
    return Call(function, arguments)


def _sorted_call(function: str, arguments: Arguments) -> Expression:
    return Call(function, tuple(sorted(arguments, key=describe)))


def _swapped(function: str, arguments: Arguments) -> Expression:
    return Call(_SWAPPED[function], arguments[::-1])


def _same_or_null(function: str, arguments: Arguments) -> Expression:
    known = [argument for argument in arguments if argument != Literal(None)]
    return Call("is_null", (known[0],)) if len(known) == 1 else _sorted_call(function, arguments)


def _connected(function: str, arguments: Arguments) -> Expression:
    """AND and OR: nested ones made one, each part once; what says nothing is left out."""
    neutral = _NEUTRAL[function]
    parts = in_order(
        part for argument in arguments for part in _parts(argument, function) if part != neutral
    )
    if len(parts) > 1:
        return Call(function, parts)
    return parts[0] if parts else neutral


def _not(function: str, arguments: Arguments) -> Expression:
    (inner,) = arguments
    match inner:
        case Call("not", (doubly,)):
            return doubly
        case Call("and" | "or" as connective, parts):
            negated = tuple(_not("not", (part,)) for part in parts)
            return _connected(_DUAL[connective], negated)
        case Call(comparison, sides) if comparison in _NEGATED:
            return normalise(Call(_NEGATED[comparison], sides))
        case Literal(bool() as value):
            return Literal(not value)
    return Call(function, arguments)


def _in(function: str, arguments: Arguments) -> Expression:
    value, *others = arguments
    members = in_order(others)
    if len(members) == 1:
        return _sorted_call("=", (value, members[0]))
    return Call(function, (value, *members))


def _if(_: str, arguments: Arguments) -> Expression:
    when, then, otherwise = arguments
    return Case(((when, then),), otherwise)


def _parts(expression: Expression, connective: str) -> Arguments:
    if isinstance(expression, Call) and expression.function == connective:
        return expression.arguments
    return (expression,)


_REWRITES: Mapping[str, Callable[[str, Arguments], Expression]] = {
    **dict.fromkeys(_COMMUTATIVE, _sorted_call),
    **dict.fromkeys(_SWAPPED, _swapped),
    **dict.fromkeys(_DUAL, _connected),
    "<=>": _same_or_null,
    "not": _not,
    "in": _in,
    "if": _if,
}
