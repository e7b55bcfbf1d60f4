"""Rows for Python, whatever their times."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from penstock.feeds.arrow import rows_of, values_of

MOMENT = pa.timestamp("us", tz="UTC")


def test_values_are_those_of_arrow_where_python_has_them() -> None:
    moments = [datetime(1, 1, 1, tzinfo=UTC), None, datetime.max.replace(tzinfo=UTC)]
    assert values_of(pa.array(moments, MOMENT)) == moments
    assert values_of(pa.chunked_array([[1.5], [None]])) == [1.5, None]


@pytest.mark.parametrize(
    ("value", "type", "text"),
    [
        (253_402_300_800_000_000, MOMENT, "+10000-01-01T00:00:00.000000Z"),
        (-62_135_596_800_000_001, MOMENT, "0000-12-31T23:59:59.999999Z"),
        (-63_000_000_000_000_000, pa.timestamp("us"), "-0027-08-11T08:00:00.000000Z"),
        (2_932_897, pa.date32(), "+10000-01-01"),
    ],
)
def test_times_that_python_cannot_hold_are_texts(value: int, type: pa.DataType, text: str) -> None:
    column = pa.array([0, value, None], pa.int64() if pa.types.is_timestamp(type) else pa.int32())
    first, shown, nothing = values_of(column.cast(type))
    assert isinstance(first, date)
    assert (shown, nothing) == (text, None)


def test_rows_have_their_columns_by_name() -> None:
    table = pa.table({"n": [1, 2], "ts": pa.array([0, 253_402_300_800_000_000], MOMENT)})
    assert rows_of(table) == [
        {"n": 1, "ts": datetime(1970, 1, 1, tzinfo=UTC)},
        {"n": 2, "ts": "+10000-01-01T00:00:00.000000Z"},
    ]
    assert rows_of(table.slice(0, 0)) == []
