"""Heartbeats: rows that tell Spark the watermark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from penstock.channels.manifest import END_OF_TIME_US
from penstock.spark.sources.beats import DELAY_DAYS, SHIFT_US, event_time_us, stamp_us

pytestmark = pytest.mark.core

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def test_a_beat_is_stamped_just_before_the_watermark_plus_the_delay() -> None:
    """Spark takes a row at its watermark for late; here such a row is still in time."""
    assert stamp_us(1_521_911_720_865_716) == 1_521_911_720_865_715 + DELAY_US


def micros(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


FIRST_US = micros(datetime.min.replace(tzinfo=UTC))
LAST_US = micros(datetime.max.replace(tzinfo=UTC))
DELAY_US = DELAY_DAYS * 86_400 * 1_000_000
LONGEST_US = 1_000 * 366 * 86_400 * 1_000_000


@pytest.mark.parametrize("watermark_us", [0, FIRST_US, LAST_US, END_OF_TIME_US])
def test_every_watermark_has_a_beat(watermark_us: int) -> None:
    """Spark drops what is less than a millisecond, and cannot go below zero."""
    stamp = stamp_us(watermark_us)
    told_ms = (stamp + SHIFT_US) // 1_000 - DELAY_US // 1_000
    assert 0 < told_ms < stamp + SHIFT_US < 2**63
    assert event_time_us(told_ms) == (watermark_us - 1) // 1_000 * 1_000


def test_data_rows_never_move_the_watermark() -> None:
    """Spark subtracts the delay from the latest row, and begins at zero."""
    assert END_OF_TIME_US + SHIFT_US <= DELAY_US


def test_no_window_around_the_calendar_lies_before_the_beginning_or_after_the_end() -> None:
    assert FIRST_US - 2 * LONGEST_US + SHIFT_US > 0
    assert LAST_US + 2 * LONGEST_US < END_OF_TIME_US


def test_days_of_the_year_stay_the_same_for_spark() -> None:
    """So that its own logs can be read: 4,000 years are whole cycles of the calendar."""
    leap_day = datetime(2024, 2, 29, tzinfo=UTC)
    assert leap_day + timedelta(microseconds=SHIFT_US) == leap_day.replace(year=6024)
