"""What a cycle carries of a channel."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.channels.channel import Channel
from penstock.channels.manifest import END_OF_TIME_US, ChannelFile, file_name
from penstock.channels.writer import Writer
from penstock.device.following import follow
from penstock.feeds.arrow import arrow_schema
from penstock.model.schema import Schema, Shape

pytestmark = pytest.mark.core

SHAPE = Shape.timed(Schema.parse("ts timestamp, home string"), "ts")


@pytest.fixture
def channel(tmp_path: Path) -> Channel:
    """Three batches of two rows, at 1 to 6 microseconds; the last one ends it."""
    writer = Writer(Channel.open(tmp_path / "rows"), 1)
    for batch in range(3):
        moments = [2 * batch + 1, 2 * batch + 2]
        rows = pa.table({"ts": moments, "home": ["h", "h"]}).cast(arrow_schema(SHAPE.schema))
        name = file_name(batch, 1, 0)
        path = writer.channel.data / name
        pq.write_table(rows, path)
        files = [ChannelFile(name, 2, path.stat().st_size)]
        writer.commit(batch, files, moments[1], batch == 2, latest={"ts": moments[1]})
    return writer.channel


def moments(rows: pa.Table) -> list[int]:
    found: list[int] = rows.column("ts").cast(pa.int64()).to_pylist()
    return found


def test_all_that_is_new(channel: Channel) -> None:
    found = follow(channel, SHAPE, 1)
    assert found is not None
    assert moments(found.rows) == [3, 4, 5, 6]
    assert (found.place.first, found.place.counts, found.place.ended) == (1, (2, 2), True)
    assert (found.place.watermark_us, found.place.latest_us) == (END_OF_TIME_US, 2)
    assert found.latest_us == 6
    assert follow(channel, SHAPE, 3) is None


@pytest.mark.parametrize(("until_us", "expected"), [(3, [1, 2, 3]), (4, [1, 2, 3, 4])])
def test_a_row_at_the_moment_of_a_switch_comes_by_the_old_plan(
    channel: Channel, until_us: int, expected: list[int]
) -> None:
    found = follow(channel, SHAPE, 0, until_us)
    assert found is not None
    assert moments(found.rows) == expected
    assert sum(found.place.counts) == len(expected)
    assert (found.place.watermark_us, found.place.ended) == (until_us, False)
