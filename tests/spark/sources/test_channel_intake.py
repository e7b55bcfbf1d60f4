"""Reading a channel: by sequence number, each row once, with its watermark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from channels.disk import watched
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import RunError
from penstock.spark.channels.channel import Channel, Writer
from penstock.spark.channels.manifest import ChannelFile, Manifest
from penstock.spark.sources import channel_intake
from penstock.spark.sources.beats import END_OF_TIME_US
from penstock.spark.sources.channel_intake import ChannelIntake
from penstock.spark.sources.intake import Offset
from penstock.spark.sources.source import StreamReader
from penstock.spark.sources.spec import ReaderSpec

pytestmark = pytest.mark.core


class Feeding:
    """A channel and who writes it."""

    def __init__(self, folder: Path) -> None:
        self.channel = Channel.open(folder / "readings")
        self.writer = Writer(self.channel, 1)
        self.rows = 0

    def put(self, *counts: int, watermark_us: int | None = None, ended: bool = False) -> Manifest:
        """Commits one file for each count, with the next numbers in it."""
        batch_id = 0 if self.writer.last is None else self.writer.last.batch_id + 1
        made = []
        for at, count in enumerate(counts):
            numbers = pa.array(range(self.rows, self.rows + count), pa.int32())
            self.rows += count
            name = f"{batch_id}-{at}.parquet"
            table = pa.table({"home": numbers.cast(pa.string()), "n": numbers})
            pq.write_table(table, self.channel.data / name)
            made.append(ChannelFile(name, count))
        return self.writer.commit(batch_id, made, watermark_us, ended)

    def spec(self, **other: object) -> ReaderSpec:
        given: dict[str, object] = {"columns": ("n",), "event_time": None, "reader": "heavy"}
        origin = {"kind": "channel", "folder": str(self.channel.folder)}
        return ReaderSpec("readings", "home string, n int", origin=origin, **(given | other))  # type: ignore[arg-type]

    def intake(self, **other: object) -> ChannelIntake:
        return ChannelIntake(self.spec(**other))


@pytest.fixture
def feeding(tmp_path: Path) -> Feeding:
    return Feeding(tmp_path)


def read(intake: ChannelIntake, start: Offset, end: Offset) -> list[int]:
    return sorted(
        number
        for part in intake.slices(start, end)
        for batch in intake.read(part)
        for number in batch["n"].to_pylist()
    )


def test_an_empty_channel_has_nothing_new(feeding: Feeding) -> None:
    intake = feeding.intake()
    assert intake.first() == {"next": 0}
    assert intake.latest(intake.first(), 10) == {"next": 0}


def test_each_row_is_read_once(feeding: Feeding) -> None:
    intake = feeding.intake()
    at, seen = intake.first(), []
    for counts in ((3,), (), (2, 2), (1,)):
        feeding.put(*counts)
        end = intake.latest(at, None)
        seen += read(intake, at, end)
        at = end
    assert seen == list(range(8))
    assert at == {"next": 4}
    assert read(intake, {"next": 0}, {"next": 4}) == list(range(8))


def test_batches_are_limited_by_rows_but_never_empty(feeding: Feeding) -> None:
    for counts in ((3,), (3,), (10,), (1,), (1,)):
        feeding.put(*counts)
    intake = feeding.intake()
    at, ends = intake.first(), []
    while (end := intake.latest(at, 6)) != at:
        ends.append(end["next"])
        at = end
    assert ends == [2, 3, 5]
    assert intake.latest(intake.first(), None) == {"next": 5}


def test_only_as_much_is_looked_at_as_is_taken(feeding: Feeding) -> None:
    for _ in range(50):
        feeding.put(1)
    intake = feeding.intake()
    with watched() as counts:
        assert intake.latest({"next": 0}, 5) == {"next": 5}
    assert counts["files"] == 6
    assert counts["folders"] == 0


def test_the_offset_tells_the_watermark(feeding: Feeding) -> None:
    intake = feeding.intake()
    feeding.put(1)
    assert intake.latest({"next": 0}, None) == {"next": 1}
    feeding.put(1, watermark_us=50)
    feeding.put(1)
    assert intake.latest({"next": 0}, None) == {"next": 3, "watermark_us": 50}
    assert intake.latest({"next": 2, "watermark_us": 50}, None) == {"next": 3, "watermark_us": 50}
    feeding.put(1, watermark_us=40)
    assert intake.latest({"next": 0}, None) == {"next": 4, "watermark_us": 50}


def test_the_end_of_the_channel_is_the_end_of_time(feeding: Feeding) -> None:
    intake = feeding.intake()
    feeding.put(1, watermark_us=50)
    feeding.put(ended=True)
    end = intake.latest({"next": 0}, None)
    assert end == {"next": 2, "ended": True, "watermark_us": END_OF_TIME_US}
    assert intake.latest(end, None) == end


def test_small_batches_are_one_slice(feeding: Feeding) -> None:
    feeding.put(1, 0, 2, 3, watermark_us=7)
    intake = feeding.intake(parallelism=4)
    (part,) = intake.slices({"next": 0}, intake.latest({"next": 0}, None))
    assert part.watermark_us == 7
    assert part.body == {
        "ranges": [["0-0.parquet", 0, 1], ["0-2.parquet", 0, 2], ["0-3.parquet", 0, 3]]
    }


@settings(database=None, deadline=None, max_examples=30)
@given(
    batches=st.lists(st.lists(st.integers(0, 7), max_size=4), min_size=1, max_size=4),
    parallelism=st.integers(1, 5),
    rows_per_slice=st.integers(1, 6),
)
def test_slices_share_the_rows_and_the_last_tells_the_time(
    tmp_path_factory: pytest.TempPathFactory,
    batches: list[list[int]],
    parallelism: int,
    rows_per_slice: int,
) -> None:
    feeding = Feeding(tmp_path_factory.mktemp("channel"))
    for counts in batches:
        feeding.put(*counts, watermark_us=7)
    intake = feeding.intake(parallelism=parallelism)
    end = intake.latest({"next": 0}, None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(channel_intake, "_ROWS_PER_SLICE", rows_per_slice)
        parts = intake.slices({"next": 0}, end)
        assert intake.slices({"next": 0}, end) == parts
    assert len(parts) <= parallelism
    assert [part.watermark_us for part in parts] == [None] * (len(parts) - 1) + [7]
    # Cut anywhere, also inside files, and put together again in order.
    rows = [n for part in parts for batch in intake.read(part) for n in batch["n"].to_pylist()]
    assert rows == list(range(feeding.rows))
    shares = [sum(batch.num_rows for batch in intake.read(part)) for part in parts]
    assert max(shares) - min(shares) <= 1


def test_a_batch_of_time_only_is_one_empty_slice(feeding: Feeding) -> None:
    feeding.put(watermark_us=7)
    intake = feeding.intake()
    (part,) = intake.slices({"next": 0}, {"next": 1, "watermark_us": 7})
    assert part.watermark_us == 7
    assert list(intake.read(part)) == []


def test_only_the_needed_columns_are_read_in_their_order(feeding: Feeding) -> None:
    feeding.put(2)
    for columns in (("n",), ("n", "home")):
        intake = feeding.intake(columns=columns)
        (part,) = intake.slices({"next": 0}, {"next": 1})
        (batch,) = intake.read(part)
        assert tuple(batch.schema.names) == columns


@pytest.mark.parametrize("damage", ["gone", "garbage"])
def test_a_broken_file_is_named(feeding: Feeding, damage: str) -> None:
    feeding.put(2)
    path = feeding.channel.data / "0-0.parquet"
    path.unlink() if damage == "gone" else path.write_bytes(b"PAR1 oops PAR1")
    intake = feeding.intake()
    with pytest.raises(RunError) as caught:
        read(intake, {"next": 0}, {"next": 1})
    message = str(caught.value)
    assert message.startswith(f"the channel file {path} cannot be read (")
    assert message.endswith("). Restore the file from a backup, or start afresh with --fresh.")


def test_a_missing_batch_is_named(feeding: Feeding) -> None:
    feeding.put(2)
    feeding.put(2)
    feeding.channel.entry(0).unlink()
    with pytest.raises(RunError, match=r"log/00000000\.json is missing"):
        feeding.intake().slices({"next": 0}, {"next": 2})


def test_committing_frees_what_is_read(feeding: Feeding) -> None:
    feeding.channel.register("heavy")
    for _ in range(3):
        feeding.put(1)
    feeding.intake().commit({"next": 2})
    feeding.put(1)
    assert feeding.channel.sequences() == [2, 3]


def test_a_reader_that_comes_late_begins_with_what_is_kept(feeding: Feeding) -> None:
    """Else it would wait for ever for a batch that has been freed."""
    feeding.channel.register("heavy")
    for _ in range(3):
        feeding.put(1)
    feeding.intake().commit({"next": 2})
    feeding.put(1)
    feeding.channel.register("new")
    late = feeding.intake(reader="new")
    assert late.first() == {"next": 2}
    assert read(late, late.first(), late.latest(late.first(), None)) == [2, 3]


class TestIdleReaders:
    """The part of Spark's reader that moves an idle stream's time on."""

    SECOND = 1_000_000

    @pytest.fixture
    def now_s(self, monkeypatch: pytest.MonkeyPatch) -> list[float]:
        now_s = [50.0]
        monkeypatch.setattr("penstock.spark.sources.source.time.monotonic", lambda: now_s[0])
        return now_s

    def reader(self, feeding: Feeding, lateness_us: int) -> StreamReader:
        timing = {"lateness_us": lateness_us, "idle_timeout_us": 10 * self.SECOND}
        return StreamReader(feeding.spec(**timing))

    def next(self, reader: StreamReader, start: Offset) -> Offset:
        return reader.latestOffset(start, reader.getDefaultReadLimit())

    def test_time_moves_on_once_a_timeout(self, feeding: Feeding, now_s: list[float]) -> None:
        reader = self.reader(feeding, 0)
        feeding.put(1, watermark_us=100 * self.SECOND)
        at = self.next(reader, {"next": 0})
        seen = []
        for _ in range(7):
            now_s[0] += 5
            at = self.next(reader, at)
            seen.append(int(str(at["watermark_us"])) // self.SECOND)
        assert seen == [100, 110, 110, 120, 120, 130, 130]

    def test_a_long_lateness_is_added_once(self, feeding: Feeding, now_s: list[float]) -> None:
        reader = self.reader(feeding, 3_600 * self.SECOND)
        feeding.put(1, watermark_us=0)
        at = self.next(reader, {"next": 0})
        for _ in range(10):
            now_s[0] += 10
            at = self.next(reader, at)
        assert at["watermark_us"] == 3_600 * self.SECOND

    def test_new_rows_do_not_turn_time_back(self, feeding: Feeding, now_s: list[float]) -> None:
        reader = self.reader(feeding, 0)
        feeding.put(1, watermark_us=100 * self.SECOND)
        at = self.next(reader, {"next": 0})
        now_s[0] += 20
        at = self.next(reader, at)
        feeding.put(1, watermark_us=101 * self.SECOND)
        at = self.next(reader, at)
        assert at == {"next": 2, "watermark_us": 120 * self.SECOND}

    def test_a_stream_that_has_ended_is_not_idle(
        self, feeding: Feeding, now_s: list[float]
    ) -> None:
        reader = self.reader(feeding, 0)
        feeding.put(ended=True)
        at = self.next(reader, {"next": 0})
        now_s[0] += 100
        assert self.next(reader, at) == at
