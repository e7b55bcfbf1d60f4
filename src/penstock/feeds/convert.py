"""Text to typed columns, keeping apart what cannot be read."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.feeds.arrow import ARROW_TYPES
from penstock.model.functions import AFTER_LAST_SECOND, FIRST_SECOND
from penstock.model.schema import Field
from penstock.model.sources import TIME_UNITS
from penstock.model.time_patterns import time_pattern
from penstock.model.types import DataType

_MICROS = pa.timestamp("us", tz="UTC")
_NAIVE = pa.timestamp("us")
_EXACT_S = 2.0**32
"""Up to here, the year 2106, doubles are finer than half a microsecond."""
_EARLIEST, _LATEST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d([Tt ].+)?", re.ASCII)


@dataclass(frozen=True)
class Converted:
    """A typed column, and which of its rows held something unreadable."""

    values: pa.Array
    bad: np.ndarray


def convert_text(text: pa.Array, field: Field, time_format: str = "") -> Converted:
    """Reads a text column as ``field``'s type: all at once, value by value only if that fails.

    What becomes of a value depends on that value alone, not on the others in the column.
    Timestamps are ISO dates and times (UTC unless they say otherwise) or seconds since 1970, or
    written in ``time_format``, and lie in the years 1 to 9999.

    >>> convert_text(pa.array(["1.5", "x", None]), Field("kwh", DataType.DOUBLE)).values.to_pylist()
    [1.5, None, None]
    """
    none_bad = np.zeros(len(text), dtype=bool)
    if field.type is DataType.STRING:
        return Converted(text, none_bad)
    if field.type is DataType.TIMESTAMP and time_format:
        return _read_moments(text, time_format)
    try:
        return Converted(_whole_column(text, field.type), none_bad)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return _value_by_value(text, field.type)


def _whole_column(text: pa.Array, type: DataType) -> pa.Array:
    if type is DataType.TIMESTAMP:
        return _timestamps(text)
    if type is DataType.BINARY:
        return text.cast(pa.binary())
    trimmed = pc.utf8_trim_whitespace(text)
    if type.is_integer and pc.any(pc.starts_with(trimmed, "0x", ignore_case=True)).as_py():
        raise pa.ArrowInvalid("Arrow would read hexadecimal numbers")
    values = trimmed.cast(ARROW_TYPES[type])
    return in_calendar(values) if type is DataType.DATE else values


def _timestamps(text: pa.Array) -> pa.Array:
    trimmed = pc.utf8_trim_whitespace(text)
    first = next((moment.as_py() for moment in trimmed if moment.is_valid), "")
    if _NUMBER.fullmatch(first):
        return moments_of_seconds(trimmed.cast(pa.float64()))
    zoned = first.endswith("Z") or "+" in first[10:] or "-" in first[10:]
    return in_calendar(trimmed.cast(_MICROS) if zoned else trimmed.cast(_NAIVE).cast(_MICROS))


def _read_moments(text: pa.Array, time_format: str) -> Converted:
    """Times written in a pattern, or as a count of a unit since 1970."""
    unit_us = TIME_UNITS.get(time_format)
    read = partial(_read_count, unit_us=unit_us) if unit_us else time_pattern(time_format).read
    written = text.to_pylist()
    micros = [None if text is None else read(text.strip()) for text in written]
    pairs = zip(written, micros, strict=True)
    bad = np.array([text is not None and us is None for text, us in pairs], dtype=bool)
    return Converted(pa.array(micros, pa.int64()).cast(_MICROS), bad)


def _read_count(text: str, unit_us: int) -> int | None:
    """The microseconds that so many units are, if that is a time of the calendar."""
    if not _NUMBER.fullmatch(text):
        return None
    us = Decimal(text) * unit_us
    if not FIRST_SECOND * 10**6 <= us < AFTER_LAST_SECOND * 10**6:
        return None
    return int(us.to_integral_value(ROUND_HALF_EVEN))


def moments_of_seconds(seconds: pa.Array) -> pa.Array:
    """Timestamps from seconds since 1970; raises where doubles are too coarse for microseconds.

    What was written is then to be read digit by digit.

    >>> moments_of_seconds(pa.array([1.5])).cast("int64").to_pylist()
    [1500000]
    """
    if pc.any(pc.greater(pc.abs(seconds), _EXACT_S)).as_py():
        raise pa.ArrowInvalid("doubles as large as these lose microseconds")
    micros = pc.round(pc.multiply(seconds, 1e6)).cast(pa.int64())
    return in_calendar(micros.cast(_MICROS))


def in_calendar(moments: pa.Array) -> pa.Array:
    """``moments``, dates or timestamps, if all lie in the years 1 to 9999; raises otherwise."""
    if outside_calendar(moments).any():
        raise pa.ArrowInvalid("a time outside the years 1 to 9999")
    return moments


def outside_calendar(moments: pa.Array) -> np.ndarray:
    """Which of ``moments``, dates or timestamps, do not lie in the years 1 to 9999."""
    early = pc.less(moments, pa.scalar(_EARLIEST, moments.type))
    late = pc.greater(moments, pa.scalar(_LATEST, moments.type))
    return np.asarray(pc.fill_null(pc.or_(early, late), False))


def null_outside_calendar(rows: pa.Table) -> pa.Table:
    """``rows`` with dates and timestamps outside of the years 1 to 9999 as nulls."""
    for at, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type) or pa.types.is_date(field.type):
            outside = outside_calendar(rows[field.name])
            if outside.any():
                inside = pc.if_else(pa.array(outside), None, rows[field.name])
                rows = rows.set_column(at, field, inside)
    return rows


def _value_by_value(text: pa.Array, type: DataType) -> Converted:
    read = _READERS[type]
    values: list[object] = []
    bad = np.zeros(len(text), dtype=bool)
    for at, written in enumerate(text.to_pylist()):
        try:
            values.append(None if written is None else read(written.strip()))
        except (ValueError, OverflowError):
            values.append(None)
            bad[at] = True
    return Converted(pa.array(values, ARROW_TYPES[type]), bad)


def _read_boolean(text: str) -> bool:
    known = {"true": True, "1": True, "false": False, "0": False}
    if text.lower() not in known:
        raise ValueError(text)
    return known[text.lower()]


def _read_timestamp(text: str) -> datetime:
    if _NUMBER.fullmatch(text):
        return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=_micros(text))
    if not _MOMENT.fullmatch(text):
        raise ValueError(text)
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _micros(seconds: str) -> int:
    """Microseconds of written seconds, rounded as the whole column would be."""
    if abs(float(seconds)) <= _EXACT_S:
        return round(float(seconds) * 1e6)
    return round(Decimal(seconds) * 1_000_000)


def _read_int(bits: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not _INTEGER.fullmatch(text):
            raise ValueError(text)
        value = int(text)
        if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
            raise OverflowError(text)
        return value

    return read


def _read_double(text: str) -> float:
    if "_" in text:
        raise ValueError(text)
    return float(text)


_READERS: dict[DataType, Callable[[str], object]] = {
    DataType.BOOLEAN: _read_boolean,
    DataType.INT: _read_int(32),
    DataType.BIGINT: _read_int(64),
    DataType.DOUBLE: _read_double,
    DataType.TIMESTAMP: _read_timestamp,
    DataType.DATE: date.fromisoformat,
    DataType.BINARY: str.encode,
}
