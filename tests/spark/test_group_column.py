"""Rows in partition groups: every row in one, by its keys alone, in Arrow as in Spark."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from penstock.channels.channel import Channel
from penstock.channels.files import described
from penstock.channels.writer import Writer
from penstock.errors import RunError
from penstock.kernels.group_numbers import group_numbers, in_groups
from penstock.model.partition_groups import PartitionGroups
from penstock.spark.group_column import group_column
from penstock.spark.sinks.batch import Batch
from penstock.spark.sinks.channel_sink import ChannelSink
from penstock.spark.sources.channel_reader import ChannelReader, FilePart

HOMES = ["", "a", "b", "é", "日本", "a\x1fb", "\x00", "NULL", "1", None]
KEYS = pa.table(
    {
        "home": pa.array(HOMES * 4, pa.string()),
        "n": pa.array([None, -1, 0, 1, 2**63 - 1] * 8, pa.int64()),
        "ok": pa.array([True, False, None, True] * 10, pa.bool_()),
        "at": pa.array(range(40), pa.int32()),
    }
)
GROUPINGS = [
    PartitionGroups(("home",), 8),
    PartitionGroups(("n",), 7),
    PartitionGroups(("ok", "home", "n"), 60),
    PartitionGroups(("at",), 1),
]
NUMBERS = [
    [0, 3, 1, 6, 4, 7, 5, 3, 7, 5],
    [2, 6, 4, 2, 5, 2, 6, 4, 2, 5],
    [25, 48, 4, 39, 6, 2, 20, 38, 8, 42],
]
core = pytest.mark.core


@core
@given(st.lists(st.tuples(st.text(max_size=3), st.integers(0, 3))), st.integers(1, 9))
def test_every_row_is_in_the_one_group_of_its_key(rows: list[tuple[str, int]], count: int) -> None:
    table = pa.table(
        {
            "k": pa.array([key for key, _ in rows], pa.string()),
            "v": pa.array([value for _, value in rows], pa.int64()),
        }
    )
    found = dict(in_groups(table, PartitionGroups(("k",), count)))
    homes, seen = dict[str, int](), defaultdict[str, list[int]](list)
    for number, part in found.items():
        assert 0 <= number < count and part.num_rows
        for row in part.to_pylist():
            assert homes.setdefault(row["k"], number) == number
            seen[row["k"]].append(row["v"])
    expected = defaultdict[str, list[int]](list)
    for key, value in rows:
        expected[key].append(value)
    assert seen == expected, "nothing lost, nothing twice, each key in the order it came"


@core
def test_numbers_never_change() -> None:
    # Readers in other processes and other versions rely on them.
    found = [group_numbers(KEYS.slice(0, 10), one).tolist() for one in GROUPINGS[:3]]
    assert found == NUMBERS


@pytest.mark.parametrize("groups", GROUPINGS, ids=str)
def test_spark_gives_the_same_numbers(session: SparkSession, groups: PartitionGroups) -> None:
    rows = session.createDataFrame(KEYS)
    found = rows.select("at", group_column(groups).alias("number")).toArrow().sort_by("at")
    assert found["number"].to_pylist() == group_numbers(KEYS, groups).tolist()


@pytest.fixture
def channel(tmp_path: Path) -> Channel:
    return Channel.open(tmp_path / "channel")


def reader(channel: Channel, groups: frozenset[int] | None, name: str = "r") -> ChannelReader:
    return ChannelReader(channel, name, None, channel.folder / "beats", groups=groups)


def read(one: ChannelReader) -> list[FilePart]:
    start = one.first()
    return [part for task in one.parts(start, one.latest(start)) for part in task]


@pytest.mark.parametrize("is_large", [False, True])
def test_readers_share_a_channel(
    session: SparkSession, channel: Channel, monkeypatch: pytest.MonkeyPatch, is_large: bool
) -> None:
    groups = GROUPINGS[0]
    if is_large:
        monkeypatch.setattr("penstock.spark.sinks.parquet._COLLECTED_AT_MOST", -1)
    sink = ChannelSink(Writer(channel, 1), groups)
    assert sink.write(session.createDataFrame(KEYS), Batch(0, None, True, None)) == 40
    numbers = group_numbers(KEYS, groups).tolist()
    for mine in (frozenset({0, 1, 2}), frozenset({3, 4, 5, 6, 7})):
        paths = [str(part.path) for part in read(reader(channel, mine))]
        got = session.read.parquet(*paths).toArrow()
        assert got.schema.names == KEYS.schema.names
        expected = [at for at, number in enumerate(numbers) if number in mine]
        assert sorted(got["at"].to_pylist()) == expected != []


@core
def test_a_channel_without_groups_is_not_taken_for_one(channel: Channel) -> None:
    path = channel.data / "0000000000-1-0.parquet"
    path.write_bytes(b"rows")
    Writer(channel, 1).commit(0, [described(path, 1)])
    assert len(read(reader(channel, None))) == 1
    with pytest.raises(RunError, match=r"batch 0 .* is not kept in groups"):
        read(reader(channel, frozenset({0})))
