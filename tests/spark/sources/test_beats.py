"""Heartbeats: rows that tell Spark the watermark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from penstock.feeds.arrow import arrow_schema
from penstock.model.schema import Schema
from penstock.spark.sources.beats import (
    BEAT,
    DELAY_DAYS,
    END_OF_TIME_US,
    beat_row,
    with_beat_column,
)

pytestmark = pytest.mark.core

SCHEMA = arrow_schema(
    Schema.parse(
        "ts timestamp, other timestamp, b boolean, i int, l bigint, d double, s string, "
        "day date, raw binary"
    )
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def test_a_beat_is_stamped_just_before_the_watermark_plus_the_delay() -> None:
    """Spark takes a row at its watermark for late; here such a row is still in time."""
    row = beat_row(SCHEMA, "ts", 1_521_911_720_865_716)
    moment = EPOCH + timedelta(microseconds=1_521_911_720_865_715, days=DELAY_DAYS)
    wanted = dict.fromkeys(SCHEMA.names) | {"ts": moment, BEAT: True}
    assert row.to_pylist() == [wanted]


def test_a_beat_and_rows_have_one_schema() -> None:
    rows = with_beat_column(pa.RecordBatch.from_pylist([{"i": 1}, {"i": 2}], schema=SCHEMA))
    assert rows.schema == beat_row(SCHEMA, "ts", 0).schema
    assert rows[BEAT].to_pylist() == [False, False]
    assert rows["i"].to_pylist() == [1, 2]


def test_no_rows_stay_no_rows() -> None:
    empty = pa.RecordBatch.from_pylist([], schema=SCHEMA)
    assert with_beat_column(empty).num_rows == 0
    assert BEAT in with_beat_column(empty).schema.names


@pytest.mark.parametrize("watermark_us", [0, -(10**15), END_OF_TIME_US])
def test_every_watermark_has_a_beat(watermark_us: int) -> None:
    (moment,) = beat_row(SCHEMA, "ts", watermark_us)["ts"].to_pylist()
    assert moment - timedelta(days=DELAY_DAYS) == EPOCH + timedelta(microseconds=watermark_us - 1)


def test_data_rows_never_move_the_watermark() -> None:
    """Spark subtracts the delay from the latest row: no such row may come after 1970."""
    latest = datetime(9000, 1, 1, tzinfo=UTC)
    assert latest - timedelta(days=DELAY_DAYS) > EPOCH
    realistic = datetime(2900, 1, 1, tzinfo=UTC)
    assert realistic - timedelta(days=DELAY_DAYS) < EPOCH


def test_the_end_of_time_is_after_every_window_and_before_the_end_of_the_calendar() -> None:
    end = EPOCH + timedelta(microseconds=END_OF_TIME_US)
    assert end == datetime(9000, 1, 1, tzinfo=UTC)
    assert end + timedelta(days=DELAY_DAYS) < datetime.max.replace(tzinfo=UTC)
