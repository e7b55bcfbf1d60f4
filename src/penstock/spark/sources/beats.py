"""Heartbeats: how a reader tells Spark the watermark.

Spark's own rule, the latest event time minus a delay, cannot be told that an idle stream's time
has moved on, that a stream has ended, or that two inputs run at different paces. So the delay is
set so large that data rows never move the watermark, and a marked row, stamped with the watermark
plus that delay, moves it to exactly where the reader says. The row is dropped right after the
watermark operator.

Spark's watermark begins at 1970: earlier rows would be late from the start. So what it counts is
not the event time but a column beside it, 4,000 years on (ten times the 400 years after which the
calendar repeats). Event times of the years 1 to 9999, and windows around them, then all lie after
Spark's beginning and before what a long holds.
"""

from __future__ import annotations

BEAT = "__beat"
TIME = "__time"
"""The column by which Spark counts: the event time, ``SHIFT_US`` later."""

_CYCLE_DAYS = 146_097
_DAY_US = 86_400 * 1_000_000
SHIFT_US = 10 * _CYCLE_DAYS * _DAY_US

DELAY_DAYS = 60 * _CYCLE_DAYS
_DELAY_US = DELAY_DAYS * _DAY_US


def time_column(event_time: str) -> str:
    """SQL of the column ``TIME`` of rows with this event time."""
    return f"timestamp_micros(unix_micros(`{event_time}`) + {SHIFT_US}) AS `{TIME}`"


def event_time_of(time: str) -> str:
    """SQL of the event time that Spark counts as ``time``."""
    return f"timestamp_micros(unix_micros({time}) - {SHIFT_US})"


def event_time_us(watermark_ms: int) -> int | None:
    """What a watermark of Spark's means as an event time; None before the first heartbeat.

    >>> event_time_us(0), event_time_us(SHIFT_US // 1_000 + 5)
    (None, 5000)
    """
    return watermark_ms * 1_000 - SHIFT_US if watermark_ms else None


def stamp_us(watermark_us: int) -> int:
    """The event time of the row that moves the watermark to ``watermark_us``.

    A row at the watermark itself may still come, and Spark would take it for late: what Spark is
    told lies just before.
    """
    return watermark_us - 1 + _DELAY_US
