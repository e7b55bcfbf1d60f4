"""Rows that are made again are those that were brought in, judged as they were then."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from textwrap import dedent

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws import tried
from penstock.channels.channel import Channel
from penstock.channels.ingest import again, feed_ingest, file_ingest
from penstock.channels.ingest.again import Rereading, check_rereadable, reread_of
from penstock.channels.ingest.feed_ingest import FeedIngest
from penstock.channels.ingest.kafka_ingest import KafkaProgress
from penstock.channels.manifest import END_OF_TIME_US, Manifest
from penstock.channels.writer import Writer
from penstock.errors import InputError, RunError
from penstock.lang.deployment import parse_deployment
from penstock.model.beginnings import Reread
from penstock.model.sources import GeneratorSource, Stream

from channels.ingest.places import SHAPE, Clock, Place, S, place, replay, run

pytestmark = pytest.mark.core


@dataclass(frozen=True)
class Recorded:
    """A generator of these rows, all due at once."""

    rows: pa.Table

    @property
    def size(self) -> int:
        return int(self.rows.num_rows)

    def due(self, elapsed_s: float) -> int:
        return self.size

    def read(self, start: int, stop: int) -> pa.Table:
        return self.rows.slice(start, stop - start)


class Repeat:
    """Makes again what was brought in at some place up to now."""

    def __init__(self, here: Place, root: Path) -> None:
        self.here, self.root = here, root
        last = here.channel.last()
        assert last is not None
        self.last, self.known = last, reread_of("readings", last)
        check_rereadable(here.stream, here.root / "stream", self.known)
        self.channel = Channel.open(root / "readings.2")
        self.epoch = 0

    def start(self) -> Rereading:
        self.epoch += 1
        writer = Writer(self.channel, self.epoch)
        return Rereading(self.here.stream, self.known, writer, self.here.root / "stream")

    def run(self) -> list[int]:
        """The numbers of all rows made again, in order."""
        ingest = self.start()
        while not ingest.is_finished:
            ingest.step()
        files = [file for manifest in self.channel.newer(0) for file in manifest.files]
        return [
            n
            for file in files
            for n in pq.read_table(self.channel.data / file.name)["n"].to_pylist()
        ]

    def told(self) -> int | None:
        """The time that is told at the end."""
        last = self.channel.last()
        assert last is not None and last.ended
        return last.watermark_us


def check_same(here: Place, root: Path) -> None:
    made = Repeat(here, root)
    letters = here.set_aside()
    assert made.run() == here.rows()
    assert made.told() == made.last.watermark_us
    assert here.set_aside() == letters, "what was set aside is not set aside twice"


# What happens to a stream: a file arrives with rows at these times, or nothing for so many seconds.
HAPPENING = st.lists(
    st.one_of(st.lists(st.integers(0, 40), min_size=1, max_size=5), st.integers(1, 30)), max_size=7
)


@tried(60)
@given(happening=HAPPENING, lateness_s=st.integers(0, 9), batch=st.integers(1, 3))
def test_files_and_silence(
    tmp_path_factory: pytest.TempPathFactory,
    happening: list[list[int] | int],
    lateness_s: int,
    batch: int,
) -> None:
    root, clock = tmp_path_factory.mktemp("again"), Clock()
    here = place(root, lateness_s * S)
    here.stream = replace(here.stream, idle_timeout_us=4 * S)
    with pytest.MonkeyPatch.context() as patch:
        for module in (file_ingest, "penstock.channels.ingest.entrance"):
            name = module if isinstance(module, str) else module.__name__
            patch.setattr(f"{name}.time.monotonic", clock.monotonic)
        patch.setattr(file_ingest, "_ROWS_PER_COMMIT", batch)
        patch.setattr(again, "_ROWS_PER_COMMIT", batch)
        ingest, number = here.start(), 0
        for at, one in enumerate(happening):
            if isinstance(one, int):
                clock.now_s += one
            else:
                here.put(f"{at}.csv", *(f"{ts},{number + k}" for k, ts in enumerate(one)))
                number += len(one)
            run(ingest)
        if here.channel.last() is not None:
            check_same(here, root)


def test_silence_counts_only_where_the_next_row_is_earlier(tmp_path: Path, clock: Clock) -> None:
    here = place(tmp_path, 2 * S)
    here.stream = replace(here.stream, idle_timeout_us=4 * S)
    ingest = here.start()
    for name, rows in (("a", ["10,0"]), ("b", ["30,1"]), ("c", ["33,2", "45,3"])):
        here.put(f"{name}.csv", *rows)
        run(ingest)
        clock.now_s += 9
        run(ingest)
    known = reread_of("readings", here.manifests()[-1])
    # 8 s after 10 is before 30, so nobody noticed; 8 s after 30 made 33 late.
    assert known.jumps == ((2, 0, 38 * S), (3, 0, 53 * S))
    assert here.rows() == [0, 1, 3]
    check_same(here, tmp_path)


def test_a_recording_in_the_middle_of_it(tmp_path: Path, clock: Clock) -> None:
    here = replay(tmp_path, "10,0", "11,1", "15,2", "9,3", "20,4", "40,5", speedup=1, lateness_us=S)
    ingest = here.start()
    for _ in range(12):
        clock.now_s += 1
        run(ingest)
    assert here.rows() == [0, 1, 2, 4]
    check_same(here, tmp_path)
    clock.now_s += 100
    run(ingest)
    (tmp_path / "more").mkdir()
    check_same(here, tmp_path / "more")
    assert here.manifests()[-1].watermark_us == END_OF_TIME_US


def test_a_generator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = pa.array([3, 9, 4, 8, 12, 11, 30, 2] * 6, pa.timestamp("us", "UTC"))
    rows = pa.table({"ts": times, "n": pa.array(range(48), pa.int32())})
    for module in (again, feed_ingest):
        monkeypatch.setattr(module, "generator", lambda *_: Recorded(rows))
        monkeypatch.setattr(module, "_ROWS_PER_COMMIT", 7)
    here = Place(tmp_path, Stream("readings", GeneratorSource("made up"), SHAPE, 5))
    ingest = FeedIngest(here.stream, Writer(here.channel, 1), tmp_path / "stream", here.letters)
    while not ingest.is_finished:
        ingest.step()
    check_same(here, tmp_path)


def test_times_and_names_as_the_source_has_them(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    text = """
        streams:
          readings:
            source: {directory: in, format: csv}
            schema: "ts timestamp, n int"
            columns: {"Read at": ts}
            time_format: "dd.MM.yyyy HH:mm"
            event_time: ts
            lateness: 1h
        queries:
          all_of_it: SELECT ts, n FROM readings
        """
    (stream,) = parse_deployment(dedent(text), "d.yaml", tmp_path).network.streams
    here = Place(tmp_path, stream)
    rows = "Read at,n\n01.03.2026 12:00,0\n01.03.2026 10:59,1\n01.03.2026 11:00,2\n"
    (tmp_path / "in" / "a.csv").write_text(rows)
    run(here.start())
    assert here.rows() == [0, 2]
    check_same(here, tmp_path)


def test_one_that_was_stopped_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(again, "read_pieces", file_ingest.read_pieces)
    here = place(tmp_path, 5 * S)
    for number in range(4):
        here.put(f"{number}.csv", f"{10 + 3 * number},{2 * number}", f"{8},{2 * number + 1}")
    run(here.start())
    made = Repeat(here, tmp_path)
    assert made.start().step()
    assert made.start().step()
    assert made.run() == here.rows()


def test_what_is_gone_or_has_changed_is_told(tmp_path: Path) -> None:
    here = place(tmp_path)
    paths = [here.put(f"{name}.csv", f"{at},0") for at, name in enumerate("abc")]
    run(here.start())
    known = reread_of("readings", here.manifests()[-1])
    folder = tmp_path / "stream"
    check_rereadable(here.stream, folder, known)
    paths[1].write_text("ts,n\n5,5\n6,6\n")
    paths[2].unlink()
    with pytest.raises(InputError, match=r"from its start: c\.csv is gone\. Begin it with --from"):
        check_rereadable(here.stream, folder, known)
    here.put("c.csv", "2,0")
    with pytest.raises(InputError, match=r"b\.csv, c\.csv have changed since"):
        check_rereadable(here.stream, folder, known)


def test_topics_of_kafka_cannot_be_read_again() -> None:
    last = Manifest(0, 1, 0, writer_state=asdict(KafkaProgress(offsets={0: 7})))
    told = "readings cannot be read again from its start: it comes from Kafka, .* with --from now"
    with pytest.raises(InputError, match=told):
        reread_of("readings", last)


def test_other_rows_than_before_are_noticed(tmp_path: Path) -> None:
    here = place(tmp_path)
    here.put("a.csv", "1,0", "9,1")
    run(here.start())
    made = Repeat(here, tmp_path)
    here.put("a.csv", "1,0", "7,1")
    with pytest.raises(RunError, match="readings was read again and has other rows than before"):
        made.run()


def test_as_a_record() -> None:
    known = Reread("readings", 2, 5, 7, True, ((1, 2, 3),))
    assert Reread.from_record({**vars(known), "jumps": [[1, 2, 3]]}) == known
