"""What one stream contains of another: which conditions follow from others.

Conditions are canonical and all of them hold for the rows of a stream. Only what follows for every
value is said to follow, nulls and NaN included; what is not recognised is taken not to.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from penstock.model.canonical_expressions import describe
from penstock.model.canonical_stream import Conditions
from penstock.model.expressions import Call, Expression, Literal

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EXACT = 2**53 - 1
"""Up to here no other whole number becomes the same double, so comparing them does not round."""


def residual(wanted: Conditions, held: Conditions) -> Conditions | None:
    """What has still to be checked of rows that fulfil ``held`` so that all of ``wanted`` holds.

    None if rows are wanted that may not be among them.

    >>> from penstock.model.expressions import Column
    >>> kwh = Column("kwh")
    >>> three, five = (Call("<", (Literal(low), kwh)) for low in (3, 5))
    >>> residual((five,), (three,)) == (five,), residual((three,), (five,)) is None
    (True, True)
    """
    if not all(follows(condition, wanted) for condition in held):
        return None
    known = {describe(condition) for condition in held}
    return tuple(condition for condition in wanted if describe(condition) not in known)


def follows(condition: Expression, given: Iterable[Expression]) -> bool:
    """Whether a condition is true wherever all the given ones are."""
    text = describe(condition)
    return any(describe(known) == text or _implies(known, condition) for known in given)


@dataclass(frozen=True)
class _Range:
    """A comparison of a value with a constant: on which side of it the value lies."""

    value: str
    is_above: bool
    bound: Expression
    is_strict: bool

    def has(self, constant: Expression) -> bool:
        """Whether a constant surely lies in it."""
        mine, bound = _place(constant), _place(self.bound)
        if mine is None or bound is None or mine.among != bound.among:
            return False
        within = mine.at > bound.at if self.is_above else mine.at < bound.at
        return within or (mine.at == bound.at and not self.is_strict)

    def lies_in(self, other: _Range) -> bool:
        """Whether all that lies in it lies in the other one."""
        if (self.value, self.is_above) != (other.value, other.is_above):
            return False
        is_same = describe(other.bound) == describe(self.bound)
        return other.has(self.bound) or (self.is_strict and is_same)


class _Place(NamedTuple):
    """Where a constant lies among those that it may be compared with."""

    among: str
    at: float


def _place(constant: Expression) -> _Place | None:
    """Where a constant lies; None where that is not sure.

    Spark compares a column with two such constants just as they compare with each other.
    """
    match constant:
        case Literal(datetime() as moment):
            known = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
            return _Place("times", (known - _EPOCH) // timedelta(microseconds=1))
        case Literal(date() as day):
            return _Place("days", day.toordinal())
        case Literal(bool()):
            return None
        case Literal(int() | float() as number) if -_EXACT <= number <= _EXACT:
            # NaN lies in no range of numbers.
            return _Place("numbers", number)
    return None


def _implies(given: Expression, condition: Expression) -> bool:
    """Whether comparisons of the same value with constants allow to conclude."""
    known, asked = _range(given), _range(condition)
    if known is not None:
        return asked is not None and known.lies_in(asked)
    allowed, others = _allowed(given), _allowed(condition)
    if allowed is None:
        return False
    value, constants = allowed
    if asked is not None:
        return asked.value == value and all(map(asked.has, constants))
    return (
        others is not None
        and others[0] == value
        and set(map(describe, constants)) <= set(map(describe, others[1]))
    )


def _range(condition: Expression) -> _Range | None:
    match condition:
        case Call("<" | "<=" as comparison, (Literal() as bound, value)):
            return _Range(describe(value), True, bound, comparison == "<")
        case Call("<" | "<=" as comparison, (value, Literal() as bound)):
            return _Range(describe(value), False, bound, comparison == "<")
    return None


def _allowed(condition: Expression) -> tuple[str, tuple[Expression, ...]] | None:
    """The value that is compared, and the constants that it may be; None if it is not so."""
    match condition:
        case Call("=", (Literal() as constant, value)) | Call("=", (value, Literal() as constant)):
            return describe(value), (constant,)
        case Call("in", (value, *constants)) if all(isinstance(c, Literal) for c in constants):
            return describe(value), tuple(constants)
    return None
