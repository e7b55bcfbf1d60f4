"""Times that a query computes, kept within the years that everything behind it can write."""

from __future__ import annotations

from penstock.model.types import DataType

# The last moment or day before the years 1 to 9999, and the first after them.
_OUTSIDE = {
    DataType.TIMESTAMP: (
        "timestamp_micros(-62135596800000001)",
        "timestamp_micros(253402300800000000)",
    ),
    DataType.DATE: ("date_from_unix_date(-719163)", "date_from_unix_date(2932897)"),
}


def in_calendar(value: str, type: DataType) -> str:
    """SQL of ``value``, or of null where that is a time outside of the years 1 to 9999.

    The value is written once, so that what is computed of it again does not double in length.

    >>> in_calendar("`kwh`", DataType.DOUBLE)
    '`kwh`'
    """
    if type not in _OUTSIDE:
        return value
    before, after = _OUTSIDE[type]
    clamped = f"greatest(least({value}, {after}), {before})"
    return f"nullif(nullif({clamped}, {before}), {after})"
