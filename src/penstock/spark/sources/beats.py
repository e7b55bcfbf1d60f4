"""Heartbeats: how a reader tells Spark the watermark.

Spark's own rule, the latest event time minus a delay, cannot be told that an idle stream's time
has moved on, that a stream has ended, or that two inputs run at different paces. So the delay is
set so large that data rows never move the watermark, and a marked row, stamped with the watermark
plus that delay, moves it to exactly where the reader says. The row is dropped right after the
watermark operator.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa

BEAT = "__beat"
DELAY_DAYS = 365_000
_DELAY_US = DELAY_DAYS * 86_400 * 1_000_000

END_OF_TIME_US = int(datetime(9000, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000
"""The watermark of a stream that has ended: every window is closed."""


def stamp_us(watermark_us: int) -> int:
    """The event time of the row that moves the watermark to ``watermark_us``.

    A row at the watermark itself may still come, and Spark would take it for late: what Spark is
    told lies just before.
    """
    return watermark_us - 1 + _DELAY_US


def with_beat_column(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Data rows, marked as such."""
    unmarked = pa.repeat(pa.scalar(False), rows.num_rows)
    return pa.RecordBatch.from_arrays(
        [*rows.columns, unmarked], schema=rows.schema.append(pa.field(BEAT, pa.bool_()))
    )


def beat_row(schema: pa.Schema, event_time: str, watermark_us: int) -> pa.RecordBatch:
    """The one row that moves the watermark of a stream with ``schema`` to ``watermark_us``."""
    columns = [
        pa.array([stamp_us(watermark_us)], field.type)
        if field.name == event_time
        else pa.nulls(1, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(
        [*columns, pa.array([True])], schema=schema.append(pa.field(BEAT, pa.bool_()))
    )
