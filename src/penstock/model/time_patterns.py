"""Patterns of times, such as ``dd/MMM/yyyy:HH:mm:ss Z``, read exactly as Spark reads them.

Spark takes Java's patterns, strictly: ``MM`` is two digits, ``M`` one or more, and 30 February is
no date. Rows are read where they enter, without Spark, so the letters below are read here too; a
test holds both together. What has other rules in other places (names of zones and of weekdays,
weeks, eras) is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from penstock.errors import InputError

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_BY_MONTH = {
    **{name.lower(): number for number, name in enumerate(_MONTHS, 1)},
    **{name[:3].lower(): number for number, name in enumerate(_MONTHS, 1)},
}
_SHORT_MONTHS = "|".join(name[:3] for name in _MONTHS)
_ONE_OR_MORE = "[0-9]{1,19}+"
_READ = {
    "yyyy": ("year", "[0-9]{4}"),
    "yy": ("short_year", "[0-9]{2}"),
    "MMMM": ("month_name", "|".join(_MONTHS)),
    "MMM": ("month_name", _SHORT_MONTHS),
    "MM": ("month", "[0-9]{2}"),
    "M": ("month", _ONE_OR_MORE),
    "dd": ("day", "[0-9]{2}"),
    "d": ("day", _ONE_OR_MORE),
    "HH": ("hour", "[0-9]{2}"),
    "H": ("hour", _ONE_OR_MORE),
    "hh": ("half_hour", "[0-9]{2}"),
    "h": ("half_hour", _ONE_OR_MORE),
    "a": ("half", "AM|PM"),
    "mm": ("minute", "[0-9]{2}"),
    "m": ("minute", _ONE_OR_MORE),
    "ss": ("second", "[0-9]{2}"),
    "s": ("second", _ONE_OR_MORE),
    **{"S" * digits: ("fraction", f"[0-9]{{1,{digits}}}+") for digits in range(1, 10)},
    **{"Z" * count: ("zone", "[+-][0-9]{4}") for count in range(1, 4)},
    "X": ("zone", "Z|[+-][0-9]{2}(?:[0-9]{2})?"),
    "XX": ("zone", "Z|[+-][0-9]{4}"),
    "XXX": ("zone", "Z|[+-][0-9]{2}:[0-9]{2}"),
    "xx": ("zone", "[+-][0-9]{4}"),
    "xxx": ("zone", "[+-][0-9]{2}:[0-9]{2}"),
}
_ITEM = re.compile(r"(?P<letters>([A-Za-z])\2*)|'(?P<quoted>(?:[^']|'')*)'|(?P<other>[^A-Za-z'])")
_RESERVED = "{}#[]"
_HOURS_OF_ZONE = 18
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

LETTERS = "yyyy yy MMMM MMM MM M dd d HH H hh h a mm m ss s S…SSSSSSSSS Z X XX XXX xx xxx"


@dataclass(frozen=True)
class TimePattern:
    """A pattern ready to read texts.

    ``java`` is a regular expression of Java's for the texts that may be times. Spark must see no
    others: it fails, instead of giving null, where a year has more than five digits.
    """

    text: str
    expression: re.Pattern[str]
    java: str

    def read(self, text: str) -> int | None:
        """The microseconds since 1970 of a time written so; None if it is not.

        What the pattern does not tell is that of 1970-01-01 00:00:00 UTC.

        >>> time_pattern("dd/MMM/yyyy:HH:mm:ss Z").read("10/Oct/2000:13:55:36 -0700")
        971211336000000
        """
        found = self.expression.fullmatch(text)
        if found is None:
            return None
        try:
            return _micros(found.groupdict())
        except (ValueError, OverflowError):
            return None


@lru_cache
def time_pattern(text: str) -> TimePattern:
    """The pattern ``text``; raises where it says what is not read here.

    >>> time_pattern("EEE dd")
    Traceback (most recent call last):
    penstock.errors.InputError: EEE in the time pattern 'EEE dd' is not supported. There are yyyy \
yy MMMM MMM MM M dd d HH H hh h a mm m ss s S…SSSSSSSSS Z X XX XXX xx xxx, and text in quotes.
    """
    parts: list[str] = []
    fields: list[str] = []
    before = ""
    at = 0
    while at < len(text):
        item = _ITEM.match(text, at)
        if item is None:
            raise InputError(f"a quote in the time pattern {text!r} is not closed")
        at = item.end()
        letters = item["letters"] or ""
        if letters:
            _check_letters(text, letters, before, fields)
            name, expression = _READ[letters]
            fields.append(name)
            parts.append(f"(?P<{name}>{expression})")
        else:
            parts.append(re.escape(_literal(text, item)))
        before = letters
    _check_fields(text, fields)
    whole = "".join(parts)
    java = re.sub(r"\(\?P<\w+>", "(?:", whole)
    return TimePattern(text, re.compile(whole, re.IGNORECASE), rf"(?iu)\A{java}\z")


def _check_letters(text: str, letters: str, before: str, fields: list[str]) -> None:
    if letters not in _READ:
        raise InputError(
            f"{letters} in the time pattern {text!r} is not supported",
            hint=f"There are {LETTERS}, and text in quotes.",
        )
    name = _READ[letters][0]
    if name in fields:
        raise InputError(f"the time pattern {text!r} says the {name.replace('_', ' ')} twice")
    pair = (before, letters)
    if before and all(map(_is_number, pair)) and any(map(_is_varying, pair)):
        raise InputError(
            f"nothing separates {before} and {letters} in the time pattern {text!r}",
            hint="Numbers without a separator must have a fixed number of digits.",
        )


def _is_varying(letters: str) -> bool:
    return _READ[letters][1].endswith("+")


def _is_number(letters: str) -> bool:
    return _READ[letters][1].startswith("[0-9]")


def _literal(text: str, item: re.Match[str]) -> str:
    if item["other"] is None:
        return item["quoted"].replace("''", "'") or "'"
    if item["other"] in _RESERVED:
        raise InputError(
            f"{item['other']} in the time pattern {text!r} is not supported",
            hint="Put text that stands for itself in quotes.",
        )
    return item["other"]


def _check_fields(text: str, fields: list[str]) -> None:
    if not fields:
        raise InputError(
            f"the time pattern {text!r} says nothing about a time",
            hint="Write for example yyyy-MM-dd HH:mm:ss.",
        )
    if ("half" in fields) != ("half_hour" in fields) or {"half_hour", "hour"} <= {*fields}:
        raise InputError(
            f"the time pattern {text!r} has no clear hour",
            hint="Write HH for 0 to 23, or hh with a for 1 to 12 with AM or PM.",
        )
    for one, other in (("year", "short_year"), ("month", "month_name")):
        if one in fields and other in fields:
            raise InputError(f"the time pattern {text!r} says the {one} twice")


def _micros(found: dict[str, str | None]) -> int:
    def number(name: str, default: int) -> int:
        return int(found.get(name) or default)

    year = 2000 + number("short_year", 0) if found.get("short_year") else number("year", 1970)
    named = found.get("month_name")
    month = _BY_MONTH[named.lower()] if named else number("month", 1)
    hour = _hour(found) if found.get("half") else number("hour", 0)
    fraction = f"{found.get('fraction') or ''}000000"[:6]
    moment = datetime(
        year,
        month,
        number("day", 1),
        hour,
        number("minute", 0),
        number("second", 0),
        int(fraction),
        tzinfo=UTC,
    )
    return (moment - _zone(found.get("zone") or "Z") - _EPOCH) // _MICROSECOND


def _hour(found: dict[str, str | None]) -> int:
    hour = int(found["half_hour"] or 0)
    if not 1 <= hour <= 12:
        raise ValueError(hour)
    return hour % 12 + (12 if (found["half"] or "").upper() == "PM" else 0)


def _zone(written: str) -> timedelta:
    if written in ("Z", "z"):
        return timedelta()
    digits = written[1:].replace(":", "")
    hours, minutes = int(digits[:2]), int(digits[2:] or 0)
    if minutes > 59 or hours * 60 + minutes > _HOURS_OF_ZONE * 60:
        raise ValueError(written)
    size = timedelta(hours=hours, minutes=minutes)
    return -size if written[0] == "-" else size
