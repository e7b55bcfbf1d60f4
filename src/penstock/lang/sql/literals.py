"""Constants: numbers, strings, times and intervals in the ways people write them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from math import isinf

from sqlglot import exp

from penstock.errors import InputError
from penstock.lang.sql.places import WrittenText
from penstock.model.durations import duration_us
from penstock.model.expressions import Literal
from penstock.model.types import DataType

_MONTHS = ("month", "months", "year", "years", "quarter", "quarters")


def number(text: str) -> Literal:
    """A number; with a point or an exponent it is a double.

    >>> number("9"), number("9.5")
    (Literal(value=9), Literal(value=9.5))
    """
    if not text.removeprefix("-").isdigit():
        value = float(text)
        if isinf(value):
            raise InputError(f"{text} is too large for a double", hint="The largest is 1.79e308.")
        return Literal(value)
    if not -(2**63) <= int(text) < 2**63:
        raise InputError(f"{text} does not fit into a bigint", hint="Write it as a double: 1e19.")
    return Literal(int(text))


def moment(text: str, type: DataType) -> Literal:
    """The constant of ``TIMESTAMP '…'`` or ``DATE '…'``; times without a zone are UTC.

    >>> moment("2024-01-01 06:00:00", DataType.TIMESTAMP).value.hour
    6
    """
    try:
        if type is DataType.DATE:
            return Literal(date.fromisoformat(text.strip()))
        value = datetime.fromisoformat(text.strip())
    except ValueError:
        example = "2024-01-31" if type is DataType.DATE else "2024-01-31 12:00:00"
        raise InputError(
            f"{text!r} is not a {type}", hint=f"Write for example {example}."
        ) from None
    return Literal(value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC))


def interval(node: exp.Interval, written: WrittenText) -> timedelta:
    """The length of an ``INTERVAL`` in any of its spellings."""
    amount, unit = node.this, node.args.get("unit")
    if not isinstance(amount, exp.Literal) or not isinstance(unit, exp.Var | None):
        raise written.error(
            node,
            "an interval must be a constant with one unit",
            "Write for example INTERVAL 6 HOURS or INTERVAL '90' MINUTE.",
        )
    with written.pointing_at(node):
        return timedelta(microseconds=_interval_us(amount.name, unit.name if unit else ""))


def _interval_us(amount: str, unit: str) -> int:
    for word in (*amount.lower().split(), unit.lower()):
        if word in _MONTHS:
            raise InputError(
                f"an interval in {word} has no fixed length", hint="Give it in days, for example."
            )
    amount = amount.lstrip()
    is_negative = amount.startswith("-")
    size = amount.removeprefix("-" if is_negative else "+").lstrip()
    us = duration_us(f"{size} {unit}".strip())
    return -us if is_negative else us
