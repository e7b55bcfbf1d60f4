"""The time bound of a join, found among its conditions.

A condition bounds a join if it compares the event times of the two sides, each perhaps with
intervals added: ``r.ts BETWEEN l.ts AND l.ts + INTERVAL 1 HOUR``, ``r.ts - l.ts < INTERVAL 5
MINUTES`` and any rearrangement of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from penstock.model.expressions import Call, Column, Expression, Literal
from penstock.model.windows import TimeBound

# A time column's distance from the event time of its side: at least, at most.
Offsets = Mapping[str, tuple[int, int]]

_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


@dataclass(frozen=True)
class TimeLimits:
    """Bounds on right time less left event time; ``exact``: they say all the condition says."""

    lower_us: int | None = None
    upper_us: int | None = None
    exact: bool = True

    def both(self, other: TimeLimits) -> TimeLimits:
        """The limits of two conditions that must both hold."""
        lowers = [bound_us for bound_us in (self.lower_us, other.lower_us) if bound_us is not None]
        uppers = [bound_us for bound_us in (self.upper_us, other.upper_us) if bound_us is not None]
        return TimeLimits(max(lowers, default=None), min(uppers, default=None))

    @property
    def bound(self) -> TimeBound | None:
        """The time bound, if both ends are limited."""
        if self.lower_us is None or self.upper_us is None:
            return None
        return TimeBound(self.lower_us, self.upper_us)


def limits(condition: Expression, left: Offsets, right: str) -> TimeLimits | None:
    """What a condition says about the distance between the two sides' times, or None.

    >>> later = Call(">", (Column("r"), Column("l")))
    >>> limits(later, {"l": (0, 0)}, "r")
    TimeLimits(lower_us=1, upper_us=None, exact=True)
    """
    if not isinstance(condition, Call) or condition.function not in _FLIPPED:
        return None
    sum = _linear(Call("-", condition.arguments))
    if sum is None or sum.columns.get(right) not in (1, -1):
        return None
    sign = sum.columns[right]
    others = [name for name in sum.columns if name != right]
    if len(others) != 1 or others[0] not in left or sum.columns[others[0]] != -sign:
        return None
    comparison = condition.function if sign == 1 else _FLIPPED[condition.function]
    return _compared(comparison, -sign * sum.constant_us, left[others[0]])


def _compared(comparison: str, distance_us: int, offset: tuple[int, int]) -> TimeLimits:
    """Limits of ``right - column <comparison> distance`` where the column has an offset."""
    low, high = offset
    lower = {">": 1, ">=": 0, "=": 0}.get(comparison)
    upper = {"<": -1, "<=": 0, "=": 0}.get(comparison)
    return TimeLimits(
        None if lower is None else distance_us + lower + low,
        None if upper is None else distance_us + upper + high,
        exact=low == high,
    )


@dataclass(frozen=True)
class _Sum:
    """Columns with their signs, and microseconds."""

    columns: Mapping[str, int]
    constant_us: int = 0

    def plus(self, other: _Sum, sign: int) -> _Sum:
        names = dict.fromkeys([*self.columns, *other.columns])
        signs = {
            name: self.columns.get(name, 0) + sign * other.columns.get(name, 0) for name in names
        }
        present = {name: count for name, count in signs.items() if count}
        return _Sum(present, self.constant_us + sign * other.constant_us)


def _linear(expression: Expression) -> _Sum | None:
    match expression:
        case Column(name):
            return _Sum({name: 1})
        case Literal(timedelta() as value):
            return _Sum({}, value // timedelta(microseconds=1))
        case Call("+" | "-" as operator, (first, second)):
            one, other = _linear(first), _linear(second)
            return one and other and one.plus(other, 1 if operator == "+" else -1)
        case Call("negate", (operand,)):
            inner = _linear(operand)
            return inner and _Sum({}).plus(inner, -1)
        case _:
            return None


def combined(found: Iterable[TimeLimits]) -> TimeLimits:
    """The limits of all conditions together."""
    whole = TimeLimits()
    for time_limits in found:
        whole = whole.both(time_limits)
    return whole


def offsets_after(
    left: Offsets, right: str, bound: TimeBound, event_time: str | None, inner: bool
) -> Offsets:
    """Offsets of the known times of a join's result from its event time."""
    if event_time != right:
        added = {right: (bound.lower_us, bound.upper_us)} if inner else {}
        return {**left, **added}
    shifted = {
        name: (low - bound.upper_us, high - bound.lower_us) for name, (low, high) in left.items()
    }
    return {**shifted, right: (0, 0)}
