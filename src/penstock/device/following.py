"""Following a channel: what a cycle carries of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from penstock.channels.channel import Channel
from penstock.channels.manifest import END_OF_TIME_US, Manifest
from penstock.device.payload import PayloadSpan
from penstock.feeds.arrow import arrow_schema
from penstock.model.schema import Shape

MOST_ROWS = 500_000


@dataclass(frozen=True)
class Followed:
    """New rows of a channel, their place in it, and the latest event time with them."""

    rows: pa.Table
    place: PayloadSpan
    latest_us: int | None = None


def follow(
    channel: Channel, shape: Shape, start: int, until_us: int | None = None
) -> Followed | None:
    """What has come from batch ``start`` on; None if nothing has.

    With ``until_us`` rows after that moment are left out, and time does not go beyond it.
    """
    batches: list[Manifest] = []
    count = 0
    for manifest in channel.newer(start):
        batches.append(manifest)
        count += manifest.rows
        if count >= MOST_ROWS:
            break
    if not batches:
        return None
    tables = [_rows(channel, shape, manifest, until_us) for manifest in batches]
    last = batches[-1]
    watermark_us = END_OF_TIME_US if last.ended else last.watermark_us
    if until_us is not None and watermark_us is not None:
        watermark_us = min(watermark_us, until_us)
    place = PayloadSpan(
        start,
        tuple(table.num_rows for table in tables),
        watermark_us,
        _latest_before(channel, shape, start),
        last.ended and until_us is None,
    )
    latest_us = last.latest.get(shape.event_time or "")
    return Followed(pa.concat_tables(tables), place, latest_us)


def _rows(channel: Channel, shape: Shape, manifest: Manifest, until_us: int | None) -> pa.Table:
    schema = arrow_schema(shape.schema)
    files: Sequence[pa.Table] = [
        channel.rows_of(file, list(shape.schema.names)).cast(schema) for file in manifest.files
    ]
    rows = pa.concat_tables([schema.empty_table(), *files])
    if until_us is None or shape.event_time is None:
        return rows
    times = rows.column(shape.event_time).cast(pa.int64())
    return rows.filter(pc.less_equal(times, until_us))


def _latest_before(channel: Channel, shape: Shape, start: int) -> int | None:
    before = channel.manifest(start - 1) if start else None
    if before is None or shape.event_time is None:
        return None
    return before.latest.get(shape.event_time)
