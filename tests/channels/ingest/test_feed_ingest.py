"""Bringing a generator in: each position once, at its own pace, however it is interrupted."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws import tried
from penstock.channels import writer
from penstock.channels.channel import Channel
from penstock.channels.dead_letters import DeadLetters
from penstock.channels.ingest import feed_ingest
from penstock.channels.ingest.feed_ingest import FeedIngest
from penstock.channels.manifest import END_OF_TIME_US, Manifest
from penstock.channels.writer import Writer
from penstock.feeds.lateness import sift
from penstock.model.schema import Schema, Shape
from penstock.model.sources import GeneratorSource, Stream

pytestmark = pytest.mark.core

TIMES_S = [10, 12, 11, 30, 13, 31, 29, 32, 12, 40, 39, 41]
SCHEMA = Schema.parse("ts timestamp, n bigint")


class Recorded:
    """A small feed: one row a second of wall time, out of order."""

    schema = pa.schema([("ts", pa.timestamp("us", "UTC")), ("n", pa.int64())])
    event_time = "ts"
    size: int | None = len(TIMES_S)

    def due(self, elapsed_s: float) -> int:
        return min(int(elapsed_s), len(TIMES_S))

    def read(self, start: int, stop: int) -> pa.Table:
        times = pa.array([one * 1_000_000 for one in TIMES_S[start:stop]], pa.int64())
        numbers = pa.array(range(start, stop), pa.int64())
        return pa.table([times.cast(self.schema.types[0]), numbers], schema=self.schema)

    def high_water_us(self, position: int) -> int | None:
        return max(TIMES_S[:position], default=0) * 1_000_000 or None


class Endless(Recorded):
    size = None


class PastTheCalendar(Recorded):
    """Its last rows would lie in the year 10000."""

    def read(self, start: int, stop: int) -> pa.Table:
        rows = super().read(start, stop)
        moments = pa.array([_YEAR_10000_US - 35_000_000] * rows.num_rows, pa.int64())
        moved = pc.add(moments, rows["ts"].cast(pa.int64())).cast(self.schema.types[0])
        return rows.set_column(0, "ts", moved)


_YEAR_10000_US = 253_402_300_800_000_000
FEEDS = {"recorded": Recorded, "endless": Endless, "past": PastTheCalendar}


@pytest.fixture(autouse=True)
def feeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_ingest, "generator", lambda name, options: FEEDS[name]())


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now_s = [1_000.0]
    monkeypatch.setattr("penstock.channels.ingest.feed_ingest.time.time", lambda: now_s[0])
    return now_s


class Place:
    """A stream with its channel, brought in by one process after another."""

    def __init__(self, folder: Path, name: str = "recorded", **timing: int) -> None:
        self._folder = folder
        self.channel = Channel.open(folder / "channel")
        self.channel.register("reader")
        self.letters = DeadLetters(folder / "letters")
        shape = Shape.timed(SCHEMA, "ts", watermarked="lateness_us" in timing)
        self._stream = Stream("s", GeneratorSource(name, {}), shape, **timing)
        self._epoch = 0

    def start(self) -> FeedIngest:
        self._epoch += 1
        writer = Writer(self.channel, self._epoch)
        return FeedIngest(self._stream, writer, self._folder / "stream", self.letters)

    def manifests(self) -> list[Manifest]:
        return list(self.channel.newer(self.channel.oldest()))

    def numbers(self) -> list[int]:
        files = [file for manifest in self.manifests() for file in manifest.files]
        tables = [pq.read_table(self.channel.data / file.name) for file in files]
        return [n for table in tables for n in table["n"].to_pylist()]


def test_rows_come_in_as_they_fall_due(clock: list[float], tmp_path: Path) -> None:
    place = Place(tmp_path, "endless")
    ingest, seen = place.start(), []
    for elapsed_s in (0, 3, 3, 7.9, 100, 200):
        clock[0] = 1_000 + elapsed_s
        seen.append((ingest.step(), len(place.numbers())))
    assert seen == [(False, 0), (True, 3), (False, 3), (True, 7), (True, 12), (False, 12)]
    assert place.numbers() == list(range(12))


def test_rows_outside_of_the_calendar_are_set_aside(clock: list[float], tmp_path: Path) -> None:
    place = Place(tmp_path, "past", lateness_us=0)
    clock[0] += 100
    place.start().step()
    clock[0] += 100
    while not place.start().is_finished:
        place.start().step()
    inside = [n for n, at in enumerate(TIMES_S) if at < 35]
    assert len(place.numbers()) + place.letters.counts()["late"] == len(inside)
    letters = [
        json.loads(line)
        for path in sorted(place.letters.folder.glob("*.malformed-*.jsonl"))
        for line in path.read_text().splitlines()
    ]
    assert {letter["reason"] for letter in letters} == {"ts is outside of the years 1 to 9999"}
    shown = [json.loads(letter["row"]) for letter in letters]
    assert [one["n"] for one in shown] == [n for n, at in enumerate(TIMES_S) if at >= 35]
    assert shown[0]["ts"] == "+10000-01-01T00:00:05.000000Z"


def test_a_later_process_goes_on_by_the_same_clock(clock: list[float], tmp_path: Path) -> None:
    place = Place(tmp_path)
    clock[0] += 5
    assert not place.start().step()
    clock[0] += 5
    assert place.start().step()
    clock[0] += 3
    assert place.start().step()
    assert place.numbers() == list(range(8))


def test_a_clock_set_back_takes_nothing_back(clock: list[float], tmp_path: Path) -> None:
    place = Place(tmp_path)
    ingest = place.start()
    for elapsed_s, came in ((6, True), (2, False), (-100, False), (7, True)):
        clock[0] = 1_000 + elapsed_s
        assert ingest.step() is came
    assert place.numbers() == list(range(7))


def test_the_end_is_told_with_the_last_rows(clock: list[float], tmp_path: Path) -> None:
    place = Place(tmp_path, lateness_us=2_000_000)
    ingest = place.start()
    clock[0] += 3
    ingest.step()
    clock[0] += 100
    assert ingest.step() and ingest.is_finished and not ingest.step()
    told = [(manifest.watermark_us, manifest.ended) for manifest in place.manifests()]
    assert told == [(10_000_000, False), (END_OF_TIME_US, True)]
    assert not place.start().step()


def test_batches_are_limited(
    clock: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_ingest, "_ROWS_PER_COMMIT", 5)
    place = Place(tmp_path)
    ingest = place.start()
    clock[0] += 100
    while ingest.step():
        pass
    assert [manifest.rows for manifest in place.manifests()] == [5, 5, 2]


def test_slow_readers_hold_it_back(
    clock: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_UNREAD_ROWS_AT_MOST", 4)
    place = Place(tmp_path, "endless")
    ingest = place.start()
    clock[0] += 5
    assert ingest.step()
    clock[0] += 1
    assert not ingest.step()
    place.channel.advance("reader", 1)
    assert ingest.step()
    # A later process knows what is unread as well.
    clock[0] += 5
    assert place.start().step()
    assert not place.start().step()


def test_small_batches_are_gathered_while_readers_are_behind(
    clock: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = [50.0]
    monkeypatch.setattr("penstock.channels.ingest.entrance.time.monotonic", lambda: now_s[0])
    place = Place(tmp_path, "endless")
    ingest = place.start()
    for _ in range(8):
        clock[0] += 1
        now_s[0] += 0.4
        ingest.step()
    assert [manifest.rows for manifest in place.manifests()] == [1, 1, 1, 3]
    place.channel.advance("reader", 4)
    ingest.step()
    assert [manifest.rows for manifest in place.manifests()] == [2]


def test_an_idle_stream_s_time_moves_on(
    clock: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = [50.0]
    monkeypatch.setattr("penstock.channels.ingest.entrance.time.monotonic", lambda: now_s[0])
    place = Place(tmp_path, "endless", lateness_us=0, idle_timeout_us=10_000_000)
    ingest = place.start()
    clock[0] += 2
    ingest.step()
    seen = []
    for _ in range(5):
        now_s[0] += 5
        ingest.step()
        seen.append(place.manifests()[-1].watermark_us)
    assert [None if one is None else one // 1_000_000 for one in seen] == [12, 22, 22, 32, 32]


@tried(20)
@given(edges=st.lists(st.integers(1, len(TIMES_S)), max_size=4), lateness_s=st.integers(0, 30))
def test_late_rows_are_the_same_however_it_is_cut(
    tmp_path_factory: pytest.TempPathFactory, edges: list[int], lateness_s: int
) -> None:
    lateness_us = lateness_s * 1_000_000
    whole = sift(Recorded().read(0, len(TIMES_S)), "ts", lateness_us, None)
    place = Place(tmp_path_factory.mktemp("feed"), lateness_us=lateness_us)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feed_ingest, "generator", lambda name, options: Recorded())
        for elapsed_s in [0, *sorted(edges), len(TIMES_S)]:
            patch.setattr(
                "penstock.channels.ingest.feed_ingest.time.time", lambda at=elapsed_s: 1_000.0 + at
            )
            place.start().step()
    assert place.numbers() == whole.kept["n"].to_pylist()
    assert place.letters.counts()["late"] == whole.late.num_rows
