"""Bringing files in: once, in order, whatever happens in between."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from channels.disk import Died, careless, dying_at, full, names
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import InputError, RunError
from penstock.feeds import files
from penstock.model.schema import Schema, Shape
from penstock.model.sources import CsvLayout, DirectorySource, ReplaySource, Stream
from penstock.spark.channels import files as channel_files
from penstock.spark.channels.channel import Channel, Writer
from penstock.spark.channels.manifest import Manifest
from penstock.spark.dead_letters import DeadLetters
from penstock.spark.ingest import entrance, linking
from penstock.spark.ingest import file_ingest as ingest
from penstock.spark.ingest.entrance import Entrance
from penstock.spark.ingest.file_ingest import FileIngest, FileProgress
from penstock.spark.ingest.thread import IngestThread
from penstock.spark.sources.beats import END_OF_TIME_US

pytestmark = pytest.mark.core

SHAPE = Shape.timed(Schema.parse("ts timestamp, n int"), "ts")
S = 1_000_000
NO_LATENESS = Shape.timed(SHAPE.schema, "ts", watermarked=False)


@dataclass
class Place:
    """A stream, the folder its files arrive in, and all that ingesting keeps."""

    root: Path
    stream: Stream
    epoch: int = 0

    @property
    def channel(self) -> Channel:
        return Channel.open(self.root / "channel")

    @property
    def letters(self) -> DeadLetters:
        return DeadLetters(self.root / "letters")

    def start(self) -> FileIngest:
        """An ingest as a new process would start it."""
        self.epoch += 1
        writer = Writer(self.channel, self.epoch)
        return FileIngest(self.stream, writer, self.root / "stream", self.letters)

    def put(self, name: str, *rows: str) -> Path:
        """A file of rows, each ``ts,n``, put there in one step."""
        folder = self.root / "in"
        folder.mkdir(exist_ok=True)
        (folder / f".{name}").write_text("ts,n\n" + "".join(f"{row}\n" for row in rows))
        return (folder / f".{name}").rename(folder / name)

    def manifests(self) -> list[Manifest]:
        return list(self.channel.newer(0))

    def rows(self) -> list[int]:
        """The numbers of all rows in the channel, in order."""
        found = []
        for manifest in self.manifests():
            for file in manifest.files:
                found += pq.read_table(self.channel.data / file.name)["n"].to_pylist()
                assert file.rows == pq.read_metadata(self.channel.data / file.name).num_rows
        return found

    def set_aside(self) -> list[str]:
        """All dead letters, in no particular order."""
        folder = self.letters.folder
        return sorted(
            line for path in folder.glob("*.jsonl") for line in path.read_text().splitlines()
        )

    def reasons(self) -> list[str]:
        return sorted(json.loads(line)["reason"] for line in self.set_aside())


def place(root: Path, lateness_us: int | None = 0, **source: object) -> Place:
    shape = NO_LATENESS if lateness_us is None else SHAPE
    given = DirectorySource(root / "in", "csv", **source)  # type: ignore[arg-type]
    (root / "in").mkdir(exist_ok=True)
    return Place(root, Stream("readings", given, shape, lateness_us))


def replay(root: Path, *rows: str, speedup: float | None = None, lateness_us: int = 0) -> Place:
    here = place(root)
    path = here.put("recorded.csv", *rows)
    source = ReplaySource(path, "csv", CsvLayout(), speedup)
    here.stream = Stream("readings", source, SHAPE, lateness_us)
    return here


def run(one: FileIngest, most_steps: int = 1_000) -> int:
    """Steps until nothing more happens; how many did something."""
    for step in range(most_steps):
        if not one.step():
            return step
    raise AssertionError("it never comes to rest")


@pytest.fixture(autouse=True, scope="module")
def quick_disk() -> Iterator[None]:
    with careless():
        yield


class Clock:
    """Time that passes when told."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s

    def time(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(ingest, "time", made)
    monkeypatch.setattr(entrance, "time", made)
    return made


@pytest.fixture
def small_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "_ROWS_PER_COMMIT", 3)
    monkeypatch.setattr(files, "_BLOCK_BYTES", 64)


class TestDirectory:
    def test_files_are_taken_in_the_order_of_their_names(self, tmp_path: Path) -> None:
        here = place(tmp_path)
        here.put("b.csv", "2,2", "3,3")
        here.put("a.csv", "0,0", "1,1")
        run(here.start())
        assert here.rows() == [0, 1, 2, 3]

    def test_files_that_arrive_later_come_later_whatever_their_names(self, tmp_path: Path) -> None:
        here = place(tmp_path)
        here.put("b.csv", "0,0")
        one = here.start()
        run(one)
        here.put("a.csv", "1,1")
        here.put("c.csv", "2,2")
        run(one)
        assert here.rows() == [0, 1, 2]
        run(here.start())
        assert here.rows() == [0, 1, 2]

    def test_only_whole_files_that_fit_the_pattern_are_taken(self, tmp_path: Path) -> None:
        here = place(tmp_path, pattern="*.csv")
        for name in (".a.csv", "_a.csv", "a.csv.tmp", "a.txt"):
            (tmp_path / "in" / name).write_text("ts,n\n1,1\n")
        (tmp_path / "in" / "folder.csv").mkdir()
        here.put("good.csv", "0,0")
        run(here.start())
        assert here.rows() == [0]
        assert here.reasons() == []

    def test_a_file_is_taken_once_and_may_then_go(self, tmp_path: Path) -> None:
        here = place(tmp_path)
        path = here.put("a.csv", "0,0")
        run(here.start())
        path.unlink()
        run(here.start())
        here.put("a.csv", "1,1")
        run(here.start())
        assert here.rows() == [0]

    @pytest.mark.parametrize("name", ["two\nlines.csv", "ends\u2028.csv", os.fsdecode(b"\xff.csv")])
    def test_odd_names_are_names(self, tmp_path: Path, name: str) -> None:
        here = place(tmp_path, lateness_us=S)
        here.put(name, "0,0", "0,x")
        here.put("z.csv", "1,1")
        run(here.start())
        run(here.start())
        assert sorted(here.rows()) == [0, 1]
        assert len(here.set_aside()) == 1

    def test_an_unreadable_file_is_set_aside_and_the_rest_goes_on(self, tmp_path: Path) -> None:
        here = place(tmp_path)
        here.put("a.csv", "0,0")
        (tmp_path / "in" / "b.csv").write_text("when,n\n1,1\n")
        (tmp_path / "in" / "c.csv.gz").write_bytes(b"not gzip")
        here.put("d.csv", "1,1")
        run(here.start())
        run(here.start())
        assert here.rows() == [0, 1]
        missing, damaged = sorted(here.set_aside(), key=lambda line: json.loads(line)["file"])
        assert json.loads(missing) == {
            "file": "b.csv",
            "line": 0,
            "reason": f"{tmp_path}/in/b.csv has no column ts; it has when, n. "
            "Correct the schema of the stream, or the file.",
            "row": "",
        }
        assert "c.csv.gz cannot be read as csv" in json.loads(damaged)["reason"]
        assert here.letters.counts() == {"malformed": 2, "late": 0}

    def test_what_was_readable_of_a_damaged_file_is_kept(
        self, tmp_path: Path, small_commits: None
    ) -> None:
        here = place(tmp_path)
        here.put("a.csv", *(f"{at},{at}" for at in range(50)))
        with (tmp_path / "in" / "a.csv").open("a") as file:
            file.write('"' + "x" * 5_000)
        here.put("b.csv", "100,100")
        while here.start().step():
            pass
        assert here.rows()[-1] == 100
        assert here.rows()[:-1] == list(range(len(here.rows()) - 1))
        assert len(here.rows()) > 10
        assert here.letters.counts() == {"malformed": 1, "late": 0}

    def test_a_file_that_vanished_before_it_was_read_is_set_aside(
        self, tmp_path: Path, small_commits: None
    ) -> None:
        here = place(tmp_path)
        here.put("a.csv", "0,0", "1,1", "2,2")
        path = here.put("b.csv", "3,3")
        here.put("c.csv", "4,4")
        one = here.start()
        assert one.step()
        path.unlink()
        run(one)
        assert here.rows() == [0, 1, 2, 4]
        assert here.reasons() == [f"no file {path}. Check the path."]

    def test_a_file_that_vanished_half_read_is_set_aside(
        self, tmp_path: Path, small_commits: None
    ) -> None:
        here = place(tmp_path)
        path = here.put("a.csv", *(f"{at},{at}" for at in range(40)))
        assert here.start().step()
        before = here.rows()
        path.unlink()
        run(here.start())
        run(here.start())
        assert here.rows() == before
        assert here.reasons() == [f"no file {path}. Check the path."]

    def test_a_missing_directory_is_an_error(self, tmp_path: Path) -> None:
        here = place(tmp_path)
        (tmp_path / "in").rmdir()
        with pytest.raises(InputError) as caught:
            here.start().step()
        assert str(caught.value) == (
            f"stream readings reads from {tmp_path}/in, and there is no such directory. "
            "Make it, or correct the path."
        )

    def test_an_unfinished_directory_never_ends(self, tmp_path: Path) -> None:
        here = place(tmp_path)
        here.put("a.csv", "0,0")
        one = here.start()
        run(one)
        assert not one.is_finished
        assert not one.step()

    @pytest.mark.parametrize("rows", [(), ("0,0", "1,1")])
    def test_a_finished_directory_ends_with_the_end_of_time(
        self, tmp_path: Path, rows: tuple[str, ...]
    ) -> None:
        here = place(tmp_path, finished=True)
        here.put("a.csv", *rows)
        one = here.start()
        run(one)
        assert one.is_finished
        last = here.manifests()[-1]
        assert last.ended and last.watermark_us == END_OF_TIME_US
        assert [manifest.ended for manifest in here.manifests()].count(True) == 1
        here.put("b.csv", "2,2")
        again = here.start()
        assert again.is_finished
        assert not again.step()
        assert len(here.rows()) == len(rows)

    def test_empty_files_leave_no_batches(self, tmp_path: Path) -> None:
        here = place(tmp_path)
        one = here.start()
        for name in ("a.csv", "b.csv"):
            here.put(name)
            assert not one.step()
        assert here.manifests() == []
        here.put("c.csv", "0,0")
        run(one)
        assert here.rows() == [0]

    def test_a_list_of_files_cut_off_by_a_crash_is_mended(self, tmp_path: Path) -> None:
        here = place(tmp_path)
        here.put("a.csv", "0,0")
        run(here.start())
        taken = tmp_path / "stream" / "taken"
        taken.write_text(taken.read_text() + '"b.c')
        here.put("b.csv", "1,1")
        run(here.start())
        here.put("c.csv", "2,2")
        run(here.start())
        assert here.rows() == [0, 1, 2]
        assert here.reasons() == []
        assert taken.read_text() == '"a.csv"\n"b.csv"\n"c.csv"\n'

    def test_a_damaged_list_of_files_is_refused_by_name(self, tmp_path: Path) -> None:
        here = place(tmp_path)
        here.start()
        (tmp_path / "stream" / "taken").write_text("a.csv\n")
        with pytest.raises(RunError) as caught:
            here.start()
        assert str(caught.value) == (
            f"the list of accepted files {tmp_path}/stream/taken is damaged. "
            "Restore the file from a backup, or start afresh with --fresh."
        )


class TestParquet:
    """Files that need no change enter the channel as they are."""

    def place(self, root: Path, lateness_us: int | None = 0) -> Place:
        here = place(root, lateness_us)
        source = replace(here.stream.source, format="parquet")
        here.stream = replace(here.stream, source=source)
        return here

    def put(self, here: Place, name: str, times_s: list[int | None], **columns: pa.Array) -> Path:
        """A file whose rows have these times, in seconds, and are numbered by them."""
        times = pa.array([None if one is None else one * S for one in times_s], pa.int64())
        rows = {"ts": times.cast(pa.timestamp("us", "UTC")), "n": pa.array(times_s)} | columns
        if "n" not in columns:
            rows["n"] = rows["n"].cast(pa.int32())
        path = here.root / "in" / name
        pq.write_table(pa.table(rows), path)
        return path

    def is_linked(self, here: Place, path: Path) -> bool:
        kept = [here.channel.data / file.name for one in here.manifests() for file in one.files]
        return any(one.samefile(path) for one in kept)

    def test_a_fitting_file_is_linked_and_outlives_its_original(self, tmp_path: Path) -> None:
        here = self.place(tmp_path)
        extra = pa.array(["x", "y"])
        path = self.put(here, "a.parquet", [1, 2], extra=extra)
        run(here.start())
        assert self.is_linked(here, path)
        path.unlink()
        assert here.rows() == [1, 2]
        assert [one.watermark_us for one in here.manifests()] == [2 * S]

    def test_of_a_symbolic_link_the_file_is_kept(self, tmp_path: Path) -> None:
        here = self.place(tmp_path)
        path = self.put(here, "a.parquet", [1, 2])
        elsewhere = path.rename(tmp_path / "elsewhere.parquet")
        path.symlink_to(elsewhere)
        run(here.start())
        elsewhere.unlink()
        assert here.rows() == [1, 2]

    @pytest.mark.parametrize(
        ("times_s", "rows", "late"),
        [([5, 3, 6], [5, 6], 1), ([5, None, 6], [5, 6], 1), ([1, 2], [], 2)],
    )
    def test_late_rows_are_taken_out(
        self, tmp_path: Path, times_s: list[int | None], rows: list[int], late: int
    ) -> None:
        here = self.place(tmp_path)
        self.put(here, "a.parquet", [4])
        path = self.put(here, "b.parquet", times_s)
        run(here.start())
        assert here.rows() == [4, *rows]
        assert not self.is_linked(here, path)
        assert here.letters.counts() == {"malformed": 0, "late": late}

    def test_other_types_are_cast(self, tmp_path: Path) -> None:
        here = self.place(tmp_path)
        path = self.put(here, "a.parquet", [1, 2], n=pa.array(["1", "x"]))
        run(here.start())
        assert here.rows() == [1]
        assert not self.is_linked(here, path)
        assert here.reasons() == ["n: 'x' is no int"]

    def test_impossible_times_are_set_aside(self, tmp_path: Path) -> None:
        here = self.place(tmp_path)
        self.put(here, "a.parquet", [1, 10**12, 2], n=pa.array([1, 9, 2], pa.int32()))
        run(here.start())
        assert here.rows() == [1, 2]
        assert here.letters.counts() == {"malformed": 1, "late": 0}

    @pytest.mark.parametrize("column", [0, 1])
    def test_damaged_files_are_set_aside(self, tmp_path: Path, column: int) -> None:
        here = self.place(tmp_path)
        (tmp_path / "in" / "a.parquet").write_bytes(b"PAR1 oops PAR1")
        path = self.put(here, "b.parquet", list(range(1_000)))
        start = pq.read_metadata(path).row_group(0).column(column).dictionary_page_offset
        raw = bytearray(path.read_bytes())
        raw[start : start + 400] = bytes(400)
        path.write_bytes(raw)
        self.put(here, "c.parquet", [7])
        run(here.start())
        run(here.start())
        assert here.rows() == [7]
        assert here.letters.counts() == {"malformed": 2, "late": 0}

    def test_files_without_an_event_time_are_looked_at_too(self, tmp_path: Path) -> None:
        here = self.place(tmp_path)
        here.stream = Stream("readings", here.stream.source, Shape(SHAPE.schema))
        path = self.put(here, "a.parquet", [3, 1])
        run(here.start())
        assert self.is_linked(here, path)
        assert here.rows() == [3, 1]

    def test_names_that_are_not_utf8(self, tmp_path: Path) -> None:
        here = self.place(tmp_path)
        path = self.put(here, "a.parquet", [1])
        path.rename(path.with_name(os.fsdecode(b"\xff.parquet")))
        run(here.start())
        assert here.rows() == [1]

    def test_another_disk_is_copied_from(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*args: object) -> None:
            raise OSError(errno.EXDEV, "Invalid cross-device link")

        here = self.place(tmp_path)
        path = self.put(here, "a.parquet", [1, 2])
        monkeypatch.setattr(linking, "os", SimpleNamespace(link=refuse))
        run(here.start())
        assert not self.is_linked(here, path)
        assert here.rows() == [1, 2]

    def test_a_full_disk_leaves_no_half_copy(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def half(path: Path, target: Path) -> None:
            target.write_bytes(b"PAR1 and then")
            full()

        here = self.place(tmp_path)
        self.put(here, "a.parquet", [1, 2])
        one = here.start()
        with monkeypatch.context() as patch:
            patch.setattr(linking, "os", SimpleNamespace(link=full))
            patch.setattr(linking.shutil, "copyfile", half)
            with pytest.raises(OSError, match="No space left"):
                one.step()
        assert names(here.channel.data) == []
        run(one)
        assert here.rows() == [1, 2]

    @pytest.mark.parametrize("after", [False, True])
    def test_dying_anywhere_changes_nothing(self, tmp_path: Path, after: bool) -> None:
        for death in range(1, 30):
            (tmp_path / str(death)).mkdir()
            here = self.place(tmp_path / str(death))
            self.put(here, "a.parquet", [1, 3])
            self.put(here, "b.parquet", [4, 2, 5])
            self.put(here, "c.parquet", [6])
            survived = _live_until(here, death, after)
            run(here.start())
            assert here.rows() == [1, 3, 4, 5, 6]
            assert here.letters.counts() == {"malformed": 0, "late": 1}
            if survived:
                return
        raise AssertionError("three files take this many changes?")


class TestLateAndMalformedRows:
    def test_are_set_aside_once(self, tmp_path: Path) -> None:
        here = place(tmp_path, lateness_us=2 * S)
        here.put("a.csv", "10,0", "8,1", "7,2", "x,3", "11", ",5", "12,6")
        run(here.start())
        run(here.start())
        assert here.rows() == [0, 1, 6]
        assert here.letters.counts() == {"malformed": 2, "late": 2}
        assert here.reasons() == [
            "1 column instead of 2",
            "late",
            "late",
            "ts: 'x' is no timestamp",
        ]

    def test_a_late_letter_tells_the_row(self, tmp_path: Path) -> None:
        here = place(tmp_path)
        here.put("a.csv", "10,0", "9,1")
        run(here.start())
        (line,) = here.set_aside()
        assert json.loads(line) == {
            "reason": "late",
            "row": {"ts": "1970-01-01 00:00:09+00:00", "n": 1},
        }

    def test_the_watermark_follows_the_latest_row(
        self, tmp_path: Path, small_commits: None
    ) -> None:
        here = place(tmp_path, lateness_us=2 * S)
        here.put("a.csv", "10,0", "9,1", "8,2")
        here.put("b.csv", "9,3", "30,4", "29,5")
        run(here.start())
        assert [one.watermark_us for one in here.manifests()] == [8 * S, 28 * S]

    def test_without_a_lateness_nothing_is_late_and_nothing_promised(self, tmp_path: Path) -> None:
        here = place(tmp_path, lateness_us=None)
        here.put("a.csv", "10,0", "1,1")
        run(here.start())
        assert here.rows() == [0, 1]
        assert [one.watermark_us for one in here.manifests()] == [None]

    def test_a_file_of_nothing_but_rejects_is_taken_piece_by_piece(
        self, tmp_path: Path, small_commits: None
    ) -> None:
        here = place(tmp_path)
        here.put("a.csv", *(f"{at}" for at in range(30)))
        here.put("b.csv", *(f"x,{at}" for at in range(30)))
        one = here.start()
        assert one.step()
        assert here.letters.counts()["malformed"] <= 35
        run(one)
        assert here.letters.counts() == {"malformed": 60, "late": 0}


class TestReplay:
    ROWS = ("10,0", "11,1", "15,2", "14,3", "20,4")

    def test_without_a_pace_it_is_all_there_at_once(self, tmp_path: Path) -> None:
        here = replay(tmp_path, *self.ROWS, lateness_us=S)
        one = here.start()
        run(one)
        assert here.rows() == [0, 1, 2, 3, 4]
        assert one.is_finished
        assert here.manifests()[-1].watermark_us == END_OF_TIME_US

    def test_rows_come_when_their_time_has_come(self, tmp_path: Path, clock: Clock) -> None:
        here = replay(tmp_path, *self.ROWS, speedup=2, lateness_us=S)
        one = here.start()
        seen = []
        for _ in range(13):
            run(one)
            seen.append(len(here.rows()))
            clock.now_s += 0.5
        # Twice as fast as recorded: 10 s of event time in 5 s; row 3 waits for the later row 2.
        assert seen == [1, 2, 2, 2, 2, 4, 4, 4, 4, 4, 5, 5, 5]
        assert one.is_finished

    def test_while_it_waits_nothing_is_written(self, tmp_path: Path, clock: Clock) -> None:
        here = replay(tmp_path, *self.ROWS, speedup=1)
        one = here.start()
        run(one)
        before = here.manifests()
        for _ in range(20):
            clock.now_s += 0.01
            assert not one.step()
        assert here.manifests() == before

    def test_a_restart_goes_on_at_the_same_pace(self, tmp_path: Path, clock: Clock) -> None:
        here = replay(tmp_path, *self.ROWS, speedup=1, lateness_us=S)
        run(here.start())
        assert here.rows() == [0]
        clock.now_s += 1_000
        one = here.start()
        run(one)
        assert here.rows() == [0]
        clock.now_s += 1.5
        run(one)
        assert here.rows() == [0, 1]

    def test_rows_without_a_time_do_not_stop_it(self, tmp_path: Path, clock: Clock) -> None:
        here = replay(tmp_path, ",0", ",1", *self.ROWS, ",9", speedup=1, lateness_us=S)
        one = here.start()
        for _ in range(12):
            run(one)
            clock.now_s += 1
        assert here.rows() == [0, 1, 2, 3, 4]
        assert here.letters.counts() == {"malformed": 0, "late": 3}
        assert one.is_finished

    def test_rejects_of_a_piece_that_waits_are_counted_once(
        self, tmp_path: Path, clock: Clock
    ) -> None:
        here = replay(tmp_path, "10,0", "x,1", "50,2", "y,3", "60,4", speedup=1)
        for _ in range(8):
            one = here.start()
            for _ in range(10):
                clock.now_s += 5
                run(one)
        assert here.rows() == [0, 2, 4]
        assert here.letters.counts() == {"malformed": 2, "late": 0}

    @pytest.mark.parametrize("content", [None, "when,n\n1,1\n"])
    def test_a_recording_that_cannot_be_read_is_an_error(
        self, tmp_path: Path, content: str | None
    ) -> None:
        here = replay(tmp_path)
        path = tmp_path / "in" / "recorded.csv"
        path.unlink() if content is None else path.write_text(content)
        with pytest.raises(InputError, match=r"no file|has no column ts"):
            here.start().step()


class TestIdling:
    def idle(self, root: Path, lateness_us: int, timeout_us: int) -> Place:
        here = place(root, lateness_us=lateness_us)
        here.stream = replace(here.stream, idle_timeout_us=timeout_us)
        here.put("a.csv", "100,0")
        return here

    def marks(self, here: Place) -> list[float]:
        return [(one.watermark_us or 0) / S for one in here.manifests()]

    def test_time_moves_on_after_the_timeout(self, tmp_path: Path, clock: Clock) -> None:
        here = self.idle(tmp_path, 2 * S, 10 * S)
        one = here.start()
        run(one)
        assert self.marks(here) == [98]
        clock.now_s += 9.9
        assert not one.step()
        clock.now_s += 0.2
        assert one.step()
        assert not one.step()
        assert self.marks(here) == [98, 108]
        clock.now_s += 10
        run(one)
        assert self.marks(here) == [98, 108, 118]

    def test_a_long_lateness_is_added_once_not_every_time(
        self, tmp_path: Path, clock: Clock
    ) -> None:
        """Else rows that come again after a pause would all be late."""
        here = self.idle(tmp_path, 3_600 * S, 10 * S)
        one = here.start()
        for _ in range(10):
            run(one)
            clock.now_s += 10
        run(one)
        # As if a row a full lateness ahead had come: what there is can close, no more.
        assert self.marks(here) == [100 - 3_600, 100]
        here.put("b.csv", "200,1")
        run(one)
        assert here.rows() == [0, 1]

    def test_restarting_an_idle_stream_moves_nothing(self, tmp_path: Path, clock: Clock) -> None:
        here = self.idle(tmp_path, 3_600 * S, 10 * S)
        for _ in range(5):
            one = here.start()
            run(one)
            clock.now_s += 11
            run(one)
        assert self.marks(here) == [100 - 3_600, 100]

    def test_rows_behind_the_time_that_passed_are_late(self, tmp_path: Path, clock: Clock) -> None:
        here = self.idle(tmp_path, 2 * S, 10 * S)
        one = here.start()
        run(one)
        clock.now_s += 10
        run(one)
        here.put("b.csv", "107,1", "108,2")
        run(one)
        assert here.rows() == [0, 2]
        assert here.letters.counts()["late"] == 1

    def test_a_row_ends_the_pause(self, tmp_path: Path, clock: Clock) -> None:
        here = self.idle(tmp_path, 0, 10 * S)
        one = here.start()
        run(one)
        clock.now_s += 9
        here.put("b.csv", "101,1")
        run(one)
        clock.now_s += 9
        run(one)
        assert self.marks(here) == [100, 101]

    def test_a_stream_that_never_had_a_row_has_no_time_to_move(
        self, tmp_path: Path, clock: Clock
    ) -> None:
        here = self.idle(tmp_path, 0, 10 * S)
        (tmp_path / "in" / "a.csv").unlink()
        one = here.start()
        clock.now_s += 100
        assert not one.step()
        assert here.manifests() == []


# A file is a list of rows: event times close together, some bad, some too short.
lines = st.one_of(
    st.integers(0, 12).map(str),
    st.sampled_from(["x", ""]),
    st.just("short"),
)
contents = st.lists(st.lists(lines, max_size=12), min_size=1, max_size=4)


def rows_of(content: list[str], first: int) -> list[str]:
    return ["1" if one == "short" else f"{one},{first + at}" for at, one in enumerate(content)]


def fill(here: Place, files_of_rows: list[list[str]]) -> None:
    for at, content in enumerate(files_of_rows):
        here.put(f"{at}.csv", *rows_of(content, 100 * at))


def outcome(here: Place) -> tuple[list[int], list[str], dict[str, int]]:
    return here.rows(), here.set_aside(), here.letters.counts()


many = settings(database=None, deadline=None, max_examples=40)


@many
@given(
    files_of_rows=contents,
    rows_per_commit=st.integers(1, 9),
    block_bytes=st.sampled_from([32, 64, 1024]),
    steps=st.lists(st.integers(1, 4), min_size=1, max_size=5),
    is_replay=st.booleans(),
)
def test_restarts_change_nothing(
    files_of_rows: list[list[str]],
    rows_per_commit: int,
    block_bytes: int,
    steps: list[int],
    is_replay: bool,
) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(ingest, "_ROWS_PER_COMMIT", rows_per_commit)
        patch.setattr(files, "_BLOCK_BYTES", block_bytes)
        places = []
        for name in ("straight", "restarted"):
            (Path(folder) / name).mkdir()
            here = place(Path(folder) / name, lateness_us=3 * S, finished=True)
            fill(here, files_of_rows)
            if is_replay:
                source = ReplaySource(here.root / "in" / "0.csv", "csv")
                here.stream = replace(here.stream, source=source)
            places.append(here)
        straight, restarted = places
        run(straight.start())
        for turn in range(10_000):
            one = restarted.start()
            if one.is_finished:
                break
            for _ in range(steps[turn % len(steps)]):
                one.step()
        assert one.is_finished
        assert outcome(restarted) == outcome(straight)


@many
@given(files_of_rows=contents, deaths=st.lists(st.integers(1, 25), max_size=12), data=st.data())
def test_dying_anywhere_changes_nothing(
    files_of_rows: list[list[str]], deaths: list[int], data: st.DataObject
) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(ingest, "_ROWS_PER_COMMIT", data.draw(st.integers(1, 9)))
        (Path(folder) / "straight").mkdir()
        (Path(folder) / "dying").mkdir()
        straight = place(Path(folder) / "straight", lateness_us=3 * S, finished=True)
        dying = place(Path(folder) / "dying", lateness_us=3 * S, finished=True)
        fill(straight, files_of_rows)
        run(straight.start())
        # Half of the files come only later, so a batch tried again may be another batch.
        early = data.draw(st.integers(0, len(files_of_rows)))
        fill(dying, files_of_rows[:early])
        dying.stream = replace(dying.stream, source=replace(dying.stream.source, finished=False))
        for death in deaths:
            _live_until(dying, death, after=data.draw(st.booleans()))
        fill(dying, files_of_rows)
        dying.stream = straight.stream
        dying.stream = replace(
            dying.stream, source=replace(straight.stream.source, path=dying.root / "in")
        )
        for death in deaths:
            _live_until(dying, death, after=data.draw(st.booleans()))
        run(dying.start())
        assert outcome(dying) == outcome(straight)


def _live_until(here: Place, death: int, after: bool) -> bool:
    """Runs until nothing more happens, or death; whether it survived."""
    try:
        with dying_at(death, after=after):
            run(here.start())
    except Died:
        return False
    return True


@pytest.mark.parametrize("step", ["write_table", "fsync", "link"])
@pytest.mark.parametrize("restart", [False, True])
def test_a_full_disk_makes_nothing_visible_and_may_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, restart: bool
) -> None:
    here = place(tmp_path, lateness_us=0)
    here.put("a.csv", "1,0", "0,1", "x,2", "2,3")
    one = here.start()
    with monkeypatch.context() as patch:
        patch.setattr(pq if step == "write_table" else os, step, full)
        with pytest.raises(OSError, match="No space left"):
            one.step()
    assert here.manifests() == []
    assert here.letters.counts()["malformed"] <= 1
    here.put("b.csv", "3,4", "y,5")
    run(here.start() if restart else one)
    assert here.rows() == [0, 3, 4]
    assert here.letters.counts() == {"malformed": 2, "late": 1}


def test_half_a_file_is_not_left_on_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(rows: pa.Table, path: Path, **options: object) -> None:
        path.write_bytes(b"PAR1 and then")
        full()

    here = place(tmp_path)
    here.put("a.csv", "1,0")
    monkeypatch.setattr(pq, "write_table", half)
    with pytest.raises(OSError, match="No space left"):
        here.start().step()
    assert names(here.channel.data) == []


def test_large_batches_are_several_files_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel_files, "_ROWS_PER_FILE", 10)
    here = place(tmp_path)
    here.put("a.csv", *(f"{at},{at}" for at in range(100)))
    run(here.start())
    (manifest,) = here.manifests()
    assert [file.rows for file in manifest.files] == [25, 25, 25, 25]
    assert here.rows() == list(range(100))


def test_progress_is_kept_with_the_batch(tmp_path: Path) -> None:
    here = place(tmp_path, lateness_us=S)
    here.put("a.csv", "10,0", "12,1")
    one = here.start()
    run(one)
    wanted = FileProgress(files=1, high_water_us=12 * S, latest_us=12 * S)
    entrance = Entrance(here.stream, Writer(here.channel, 5), here.letters)
    assert entrance.restored(FileProgress) == wanted
    assert here.manifests()[-1].writer_state == vars(wanted)


class TestThread:
    def test_runs_to_the_end(self, tmp_path: Path) -> None:
        here = place(tmp_path, finished=True)
        here.put("a.csv", "0,0", "1,1")
        thread = IngestThread(here.start(), "readings")
        thread.start()
        thread.join(timeout=30)
        assert thread.name == "ingest-readings"
        assert thread.failure is None
        assert here.rows() == [0, 1]

    def test_waits_for_more_and_stops_when_told(self, tmp_path: Path) -> None:
        here = place(tmp_path)
        thread = IngestThread(here.start(), "readings", poll_s=0.001)
        thread.start()
        here.put("a.csv", "0,0")
        while not here.rows():
            assert thread.is_alive()
        thread.stop()
        assert not thread.is_alive()
        assert thread.failure is None

    def test_keeps_what_stopped_it(self, tmp_path: Path) -> None:
        here = place(tmp_path)
        (tmp_path / "in").rmdir()
        thread = IngestThread(here.start(), "readings")
        thread.start()
        thread.join(timeout=30)
        assert isinstance(thread.failure, InputError)
