"""Text to typed columns, keeping apart what cannot be read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.feeds.arrow import ARROW_TYPES
from penstock.model.schema import Field
from penstock.model.types import DataType

_MICROS = pa.timestamp("us", tz="UTC")
_NAIVE = pa.timestamp("us")


@dataclass(frozen=True)
class Converted:
    """A typed column, and which of its rows held something unreadable."""

    values: pa.Array
    bad: np.ndarray


def convert_text(text: pa.Array, field: Field) -> Converted:
    """Reads a text column as ``field``'s type: all at once, value by value only if that fails.

    Timestamps are ISO dates and times (UTC unless they say otherwise) or seconds since 1970.

    >>> convert_text(pa.array(["1.5", "x", None]), Field("kwh", DataType.DOUBLE)).values.to_pylist()
    [1.5, None, None]
    """
    none_bad = np.zeros(len(text), dtype=bool)
    if field.type is DataType.STRING:
        return Converted(text, none_bad)
    try:
        return Converted(_whole_column(text, field.type), none_bad)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return _value_by_value(text, field.type)


def _whole_column(text: pa.Array, type: DataType) -> pa.Array:
    if type is DataType.TIMESTAMP:
        return _timestamps(text)
    if type is DataType.BINARY:
        return text.cast(pa.binary())
    return pc.utf8_trim_whitespace(text).cast(ARROW_TYPES[type])


def _timestamps(text: pa.Array) -> pa.Array:
    trimmed = pc.utf8_trim_whitespace(text)
    present = trimmed.drop_null()
    if len(present) and _is_number(present[0].as_py()):
        return _from_seconds(trimmed.cast(pa.float64()))
    if len(present) and present[0].as_py()[10:].rstrip("Z").count(":") == 1:
        trimmed = pc.binary_join_element_wise(pc.utf8_rtrim(trimmed, "Z"), ":00", "")
    zoned = len(present) > 0 and _has_zone(present[0].as_py())
    return trimmed.cast(_MICROS) if zoned else trimmed.cast(_NAIVE).cast(_MICROS)


def _has_zone(text: str) -> bool:
    return text.endswith("Z") or "+" in text[10:] or "-" in text[10:]


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()


def _from_seconds(seconds: pa.Array) -> pa.Array:
    micros = pc.round(pc.multiply(seconds, 1e6)).cast(pa.int64())
    return micros.cast(_MICROS)


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
    if _is_number(text):
        return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=round(float(text) * 1e6))
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _read_int(bits: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        value = int(text)
        if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
            raise OverflowError(text)
        return value

    return read


_READERS: dict[DataType, Callable[[str], object]] = {
    DataType.BOOLEAN: _read_boolean,
    DataType.INT: _read_int(32),
    DataType.BIGINT: _read_int(64),
    DataType.DOUBLE: float,
    DataType.TIMESTAMP: _read_timestamp,
    DataType.DATE: date.fromisoformat,
    DataType.BINARY: str.encode,
}
