"""Reading a channel: by sequence number, each file once, with its watermark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws import tried
from penstock.channels.channel import Channel
from penstock.channels.manifest import END_OF_TIME_US, ChannelFile, Manifest
from penstock.channels.writer import Writer
from penstock.errors import RunError
from penstock.spark.sources import channel_reader
from penstock.spark.sources.beats import stamp_us
from penstock.spark.sources.channel_reader import ChannelReader, FilePart, HandedOver, Offset

from channels.disk import watched

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
            size = (self.channel.data / name).stat().st_size
            made.append(ChannelFile(name, count, size))
        return self.writer.commit(batch_id, made, watermark_us, ended)

    def reader(self, name: str = "heavy", **other: object) -> ChannelReader:
        beats = self.channel.folder / "beats"
        return ChannelReader(self.channel, name, beats=beats, **({"event_time": None} | other))  # type: ignore[arg-type]


@pytest.fixture
def feeding(tmp_path: Path) -> Feeding:
    return Feeding(tmp_path)


def read(reader: ChannelReader, start: Offset, end: Offset) -> list[int]:
    parts = [part for task in reader.parts(start, end) for part in task]
    assert all((part.start, part.length) == (0, part.size) for part in parts)
    rows = [pq.read_table(part.path)["n"].to_pylist() for part in parts if not part.is_beat]
    return [n for some in rows for n in some]


def told(reader: ChannelReader, end: Offset) -> list[int | None]:
    """The heartbeat in each task of the batch that ends here."""
    return [
        next((pq.read_table(one.path)["ts"][0].value for one in task if one.is_beat), None)
        for task in reader.parts({"next": 0}, end)
    ]


def test_an_empty_channel_has_nothing_new(feeding: Feeding) -> None:
    reader = feeding.reader()
    assert reader.first() == {"next": 0}
    assert reader.latest(reader.first()) == {"next": 0}


def test_each_row_is_read_once(feeding: Feeding) -> None:
    reader = feeding.reader()
    at, seen = reader.first(), []
    for counts in ((3,), (), (2, 2), (1,)):
        feeding.put(*counts)
        end = reader.latest(at)
        seen += read(reader, at, end)
        at = end
    assert seen == list(range(8))
    assert at == {"next": 4}
    assert read(reader, {"next": 0}, {"next": 4}) == list(range(8))


def test_batches_are_limited_by_rows_but_never_empty(feeding: Feeding) -> None:
    for counts in ((3,), (3,), (10,), (1,), (1,)):
        feeding.put(*counts)
    reader = feeding.reader(max_rows=6)
    at, ends = reader.first(), []
    while (end := reader.latest(at)) != at:
        ends.append(end["next"])
        at = end
    assert ends == [2, 3, 5]
    assert feeding.reader().latest({"next": 0}) == {"next": 5}


def test_only_as_much_is_looked_at_as_is_taken(feeding: Feeding) -> None:
    for _ in range(50):
        feeding.put(1)
    reader = feeding.reader(max_rows=5)
    with watched() as counts:
        assert reader.latest({"next": 0}) == {"next": 5}
    assert counts["files"] == 6
    assert counts["folders"] == 0


def test_the_offset_tells_the_watermark(feeding: Feeding) -> None:
    reader = feeding.reader()
    feeding.put(1)
    assert reader.latest({"next": 0}) == {"next": 1}
    feeding.put(1, watermark_us=50)
    feeding.put(1)
    assert reader.latest({"next": 0}) == {"next": 3, "watermark_us": 50}
    assert reader.latest({"next": 2, "watermark_us": 50}) == {"next": 3, "watermark_us": 50}
    feeding.put(1, watermark_us=40)
    assert reader.latest({"next": 0}) == {"next": 4, "watermark_us": 50}


def test_the_end_of_the_channel_is_the_end_of_time(feeding: Feeding) -> None:
    reader = feeding.reader()
    feeding.put(1, watermark_us=50)
    feeding.put(ended=True)
    end = reader.latest({"next": 0})
    assert end == {"next": 2, "ended": True, "watermark_us": END_OF_TIME_US}
    assert reader.latest(end) == end


def test_nothing_is_taken_while_reading_is_held_back(feeding: Feeding) -> None:
    open_: list[bool] = []
    reader = feeding.reader(may_read=lambda: bool(open_))
    feeding.put(3)
    assert reader.latest({"next": 0}) == {"next": 0}
    open_.append(True)
    assert reader.latest({"next": 0}) == {"next": 1}


def test_small_batches_are_one_task_that_tells_the_time(feeding: Feeding) -> None:
    feeding.put(1, 0, 2, 3, watermark_us=7)
    reader = feeding.reader(parallelism=4, event_time="ts")
    end = reader.latest({"next": 0})
    (task,) = reader.parts({"next": 0}, end)
    assert [one.path.name for one in task[:-1]] == ["0-0.parquet", "0-2.parquet", "0-3.parquet"]
    assert told(reader, end) == [stamp_us(7)]


@tried(40)
@given(
    sizes=st.lists(st.integers(1, 50), max_size=6),
    tasks=st.integers(1, 5),
    smallest=st.integers(1, 20),
)
def test_tasks_share_the_bytes_in_order(sizes: list[int], tasks: int, smallest: int) -> None:
    files = [FilePart(Path(str(at)), 0, size, size) for at, size in enumerate(sizes)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(channel_reader, "_SMALLEST_SPLIT", smallest)
        shared = channel_reader._shared_out(files, tasks)
    assert len(shared) <= tasks
    read = [(one.path, byte) for task in shared for one in task for byte in _bytes(one)]
    assert read == [(file.path, byte) for file in files for byte in _bytes(file)]
    share = max(smallest, -(-sum(sizes) // tasks))
    assert all(sum(one.length for one in task) <= share + smallest for task in shared)


def _bytes(part: FilePart) -> range:
    return range(part.start, part.start + part.length)


def test_a_batch_of_time_only_is_one_heartbeat(feeding: Feeding) -> None:
    feeding.put(watermark_us=7)
    reader = feeding.reader(event_time="ts")
    assert told(reader, {"next": 1, "watermark_us": 7}) == [stamp_us(7)]
    assert feeding.reader().parts({"next": 0}, {"next": 1, "watermark_us": 7}) == []


def test_heartbeats_that_were_read_are_removed(feeding: Feeding) -> None:
    feeding.put(watermark_us=7)
    feeding.put(watermark_us=8)
    reader = feeding.reader(event_time="ts")
    ends: list[Offset] = [{"next": 1, "watermark_us": 7}, {"next": 2, "watermark_us": 8}]
    for end in ends:
        told(reader, end)
    reader.commit(ends[0])
    assert [path.name for path in reader.beats.iterdir()] == ["7.parquet"]


def test_time_is_told_again_once_after_a_start(feeding: Feeding) -> None:
    """Spark forgets the watermark of each input when it stops."""
    feeding.put(1, watermark_us=7)
    at: Offset = {"next": 1, "watermark_us": 7}
    reader = feeding.reader(event_time="ts")
    first = reader.latest(at)
    assert first == at | {"again": 1}
    assert reader.latest(first) == first
    assert told(reader, first)[-1] == stamp_us(7)
    assert feeding.reader().latest(at) == at


@pytest.mark.parametrize("damage", ["gone", "garbage"])
def test_a_broken_file_is_named(feeding: Feeding, damage: str) -> None:
    feeding.put(2)
    path = feeding.channel.data / "0-0.parquet"
    path.unlink() if damage == "gone" else path.write_bytes(b"PAR1 oops PAR1")
    reader = feeding.reader()
    with pytest.raises(RunError) as caught:
        read(reader, {"next": 0}, {"next": 1})
    message = str(caught.value)
    assert message.startswith(f"the channel file {path} cannot be read (")
    assert message.endswith("). Restore the file from a backup, or start afresh with --fresh.")


def test_a_missing_batch_is_named(feeding: Feeding) -> None:
    feeding.put(2)
    feeding.put(2)
    feeding.channel.entry(0).unlink()
    with pytest.raises(RunError, match=r"log/00000000\.json is missing"):
        feeding.reader().parts({"next": 0}, {"next": 2})


def test_committing_frees_what_is_read(feeding: Feeding) -> None:
    feeding.channel.register("heavy")
    for _ in range(3):
        feeding.put(1)
    feeding.reader().commit({"next": 2})
    feeding.put(1)
    assert feeding.channel.sequences() == [2, 3]


def test_a_reader_that_comes_late_begins_with_what_is_kept(feeding: Feeding) -> None:
    """Else it would wait for ever for a batch that has been freed."""
    feeding.channel.register("heavy")
    for _ in range(3):
        feeding.put(1)
    feeding.reader().commit({"next": 2})
    feeding.put(1)
    feeding.channel.register("new")
    late = feeding.reader("new")
    assert late.first() == {"next": 2}
    assert read(late, late.first(), late.latest(late.first())) == [2, 3]


def test_the_backlog_is_what_no_batch_has_taken(feeding: Feeding) -> None:
    reader = feeding.reader(max_rows=5)
    assert reader.unread_rows() == 0
    feeding.put(4)
    feeding.put(3)
    start = reader.first()
    end = reader.latest(start)
    reader.parts(start, end)
    assert reader.unread_rows() == 3
    feeding.put(2)
    assert reader.unread_rows() == 5
    reader.parts(end, reader.latest(end))
    assert reader.unread_rows() == 0


def test_who_hands_over_plans_no_further_batch(feeding: Feeding) -> None:
    closing: list[bool] = []
    reader = feeding.reader(is_closing=lambda: bool(closing))
    feeding.put(3, watermark_us=50)
    end = reader.latest(reader.first())
    feeding.put(2)
    closing.append(True)
    with pytest.raises(HandedOver):
        reader.latest(end)


def test_who_was_replaced_frees_nothing(feeding: Feeding) -> None:
    def refuse() -> None:
        raise RunError("replaced")

    feeding.channel.register("heavy")
    reader = feeding.reader(check_owner=refuse)
    feeding.put(3)
    end = reader.latest(reader.first())
    with pytest.raises(RunError, match="replaced"):
        reader.commit(end)
    assert feeding.channel.needed_from() == 0
