"""Event times computed from the columns of a row where it enters, exactly as Spark would.

A row is late or not by the order of arrival, so its event time must be known before Spark sees it.
The few functions that times are made with are computed here as well; a test holds them to Spark's
answers. Patterns of regular expressions are Java's, and those that Python reads otherwise are
refused.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from math import isfinite

import pyarrow as pa

from penstock.errors import InputError, listed
from penstock.model.expressions import Call, Column, Expression, Literal, to_sql, walk
from penstock.model.functions import AFTER_LAST_SECOND, FIRST_SECOND
from penstock.model.time_patterns import time_pattern

_MICROS = pa.timestamp("us", tz="UTC")
_FIRST_US, _AFTER_US = FIRST_SECOND * 10**6, AFTER_LAST_SECOND * 10**6
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

Values = list[object]


def event_times(expression: Expression, rows: pa.Table) -> pa.Array:
    """The timestamps that ``expression`` gives for ``rows``; linear in the rows.

    >>> from penstock.model.schema import Schema
    >>> at = Call("timestamp_millis", (Column("ms"),))
    >>> event_times(at, pa.table({"ms": [1500, None]})).cast("int64").to_pylist()
    [1500000, None]
    """
    return pa.array(_values(expression, rows), pa.int64()).cast(_MICROS)


def check_event_time(expression: Expression) -> None:
    """Raises if ``expression`` cannot be computed where rows enter."""
    for part in walk(expression):
        match part:
            case Column() | Literal():
                continue
            case Call("regexp_extract", (_, Literal(str() as pattern), *_)):
                _java_pattern(pattern)
            case Call("+" | "-", (_, Literal(timedelta()))):
                continue
            case Call("+" | "-" as sign, _):
                raise _refused(f"{sign} of anything but a time and an INTERVAL")
            case Call(function, _) if function not in _FUNCTIONS:
                raise _refused(function)
            case Call():
                continue
            case _:
                raise _refused(to_sql(part))


def _refused(what: str) -> InputError:
    return InputError(
        f"an event time cannot be computed with {what} where rows enter",
        hint=f"There are {listed(sorted(_FUNCTIONS))}.",
    )


def _values(expression: Expression, rows: pa.Table) -> Values:
    match expression:
        case Column(name):
            return _column(rows[name])
        case Literal(value):
            return [_plain(value)] * rows.num_rows
        case Call(function, arguments):
            given = [_values(argument, rows) for argument in arguments]
            compute = _FUNCTIONS[function]
            if function == "coalesce":
                return [compute(*row) for row in zip(*given, strict=True)]
            # Every other function gives null for a null.
            return [None if None in row else compute(*row) for row in zip(*given, strict=True)]
    raise _refused(to_sql(expression))


def _column(values: pa.ChunkedArray) -> Values:
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    return list(values.to_pylist())


def _plain(value: object) -> object:
    """A constant in the form values have here: moments and intervals are microseconds."""
    if isinstance(value, timedelta):
        return value // _MICROSECOND
    if isinstance(value, datetime):
        moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value
        return (moment - _EPOCH) // _MICROSECOND
    return value


def _in_calendar(us: int) -> int | None:
    return us if _FIRST_US <= us < _AFTER_US else None


def _seconds(value: float) -> int | None:
    if not isfinite(value) or not FIRST_SECOND <= value < AFTER_LAST_SECOND:
        return None
    return int(value * 10**6)


def _substring(text: str, start: int, length: int | None = None) -> str:
    begin = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    end = len(text) if length is None else begin + length
    return text[max(0, begin) : max(0, end)]


def _split_part(text: str, separator: str, number: int) -> str | None:
    if number == 0:
        return None
    parts = text.split(separator) if separator else [text]
    at = number - 1 if number > 0 else len(parts) + number
    return parts[at] if 0 <= at < len(parts) else ""


def _regexp_extract(text: str, pattern: str, group: int = 1) -> str:
    found = _java_pattern(pattern).search(text)
    return "" if found is None else found.group(group) or ""


# What Java and Python read alike: escaped punctuation and classes, sets without sets inside,
# groups, quantifiers. Anchors and dots are written for what Java takes for ends of lines.
_PART = re.compile(
    r"""\\[dDwWsStnrf] | \\[!-/:-@\[-`{-~]
      | \[\^?(?:\\[dDwWsStnrf]|\\[!-/:-@\[-`{-~]|[^\\\[\]&])+\]
      | \(\?: | \((?!\?) | \) | \| | [*+?][+?]? | \{[0-9]+(?:,[0-9]*)?\}[+?]? | \^ | \$ | \.
      | [^\\\[\]{}()|*+?^$.]""",
    re.VERBOSE,
)
_END = r"(?=(?:\r\n|(?<!\r)\n|[\r\u0085\u2028\u2029])?\Z)"
_INSTEAD = {".": "[^\\n\\r\\u0085\\u2028\\u2029]", "$": _END, "^": r"\A"}


@lru_cache
def _java_pattern(pattern: str) -> re.Pattern[str]:
    """A regular expression of Java's as Python's; raises where the two may differ."""
    parts, at = [], 0
    while at < len(pattern):
        found = _PART.match(pattern, at)
        if found is None:
            raise InputError(
                f"{pattern[at:]!r} in the regular expression {pattern!r} cannot be used "
                "in an event time",
                hint="Use characters, sets, groups, | and quantifiers.",
            )
        parts.append(_INSTEAD.get(found[0], found[0]))
        at = found.end()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return re.compile("".join(parts), re.ASCII)


_FUNCTIONS: Mapping[str, Callable[..., object]] = {
    "to_timestamp": lambda text, pattern: time_pattern(pattern).read(text),
    "timestamp_seconds": _seconds,
    "timestamp_millis": lambda value: _in_calendar(value * 1000),
    "timestamp_micros": _in_calendar,
    "regexp_extract": _regexp_extract,
    "concat": lambda *texts: "".join(texts),
    "substring": _substring,
    "split_part": _split_part,
    "replace": lambda text, old, new: text.replace(old, new) if old else text,
    "trim": lambda text: text.strip(" "),
    "coalesce": lambda *given: next((value for value in given if value is not None), None),
    "+": lambda one, other: _in_calendar(one + other),
    "-": lambda one, other: _in_calendar(one - other),
}


def fault(expression: Expression, values: Sequence[object]) -> str:
    """Why a row with these ``values`` of the columns in ``expression`` has no event time."""
    given = ", ".join(repr(value) for value in values)
    return f"event time: {to_sql(expression)} is null for {given}"
