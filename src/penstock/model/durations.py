"""Lengths of time and moments, written by people, kept as whole microseconds."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from math import isfinite

from penstock.errors import InputError

US_PER_S = 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_UNITS_US = {
    "us": 1,
    "microsecond": 1,
    "ms": 1_000,
    "millisecond": 1_000,
    "s": US_PER_S,
    "sec": US_PER_S,
    "second": US_PER_S,
    "min": 60 * US_PER_S,
    "minute": 60 * US_PER_S,
    "h": 3_600 * US_PER_S,
    "hour": 3_600 * US_PER_S,
    "d": 86_400 * US_PER_S,
    "day": 86_400 * US_PER_S,
    "week": 7 * 86_400 * US_PER_S,
}
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")
_PRINTED = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))


def duration_us(written: str | int | float) -> int:
    """Microseconds of a duration as people write it; a bare number counts seconds.

    >>> duration_us("30min"), duration_us("1 hour 30 minutes"), duration_us(2)
    (1800000000, 5400000000, 2000000)
    """
    if isinstance(written, bool):
        raise _not_a_duration(written)
    if isinstance(written, int | float):
        if not isfinite(written):
            raise _not_a_duration(written)
        return round(written * US_PER_S)
    text = written.strip()
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return round(Decimal(text) * US_PER_S)
    return _sum_of_parts(text)


def _sum_of_parts(text: str) -> int:
    total, position = Decimal(0), 0
    while position < len(text):
        part = _PART.match(text, position)
        unit = part and _UNITS_US.get(_singular(part.group(2)))
        if not part or not unit:
            raise _not_a_duration(text)
        total += Decimal(part.group(1)) * unit
        position = part.end()
    if not text:
        raise _not_a_duration(text)
    return round(total)


def _singular(unit: str) -> str:
    unit = unit.lower()
    return unit[:-1] if unit.endswith("s") and unit not in ("s", "us", "ms") else unit


def _not_a_duration(written: object) -> InputError:
    return InputError(
        f"{written!r} is not a duration",
        hint="Write for example 500ms, 30 s, 2min, 6 hours or 1 day.",
    )


def duration_text(us: int) -> str:
    """The shortest exact way to write ``us`` microseconds with one unit; parses back.

    >>> duration_text(1_800_000_000), duration_text(1_500_000), duration_text(7)
    ('30 minutes', '1500 milliseconds', '7 microseconds')
    """
    for unit, seconds in _PRINTED:
        count, rest = divmod(us, seconds * US_PER_S)
        if not rest and (count or unit == "second"):
            return _counted(count, unit)
    count, rest = divmod(us, 1_000)
    return _counted(us, "microsecond") if rest else _counted(count, "millisecond")


def moment_text(us: int) -> str:
    """The moment ``us`` microseconds after 1970, as ISO writes it.

    >>> moment_text(1_500_000), moment_text(-1)
    ('1970-01-01T00:00:01.500000Z', '1969-12-31T23:59:59.999999Z')
    """
    moment = _EPOCH + timedelta(microseconds=us)
    return f"{moment.replace(tzinfo=None).isoformat()}Z"


def _counted(count: int, unit: str) -> str:
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"
