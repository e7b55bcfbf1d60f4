"""Reading a generator: each position once, however batches and tasks are cut."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.feeds.lateness import sift
from penstock.spark.dead_letters import DeadLetters
from penstock.spark.sources import feed_intake
from penstock.spark.sources.beats import END_OF_TIME_US
from penstock.spark.sources.feed_intake import FeedIntake
from penstock.spark.sources.intake import Offset, Slice
from penstock.spark.sources.spec import ReaderSpec

pytestmark = pytest.mark.core

TIMES_S = [10, 12, 11, 30, 13, 31, 29, 32, 12, 40, 39, 41]


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


@pytest.fixture
def feed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_intake, "generator", lambda name, options: FEEDS[name]())


FEEDS = {"recorded": Recorded, "endless": Endless}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now_s = [1_000.0]
    monkeypatch.setattr("penstock.spark.sources.feed_intake.time.time", lambda: now_s[0])
    return now_s


def opened(folder: Path, name: str = "recorded", **other: object) -> FeedIntake:
    origin = {
        "kind": "feed",
        "generator": name,
        "options": {},
        "started": str(folder / "streams" / "started"),
    }
    given: dict[str, object] = {"reader": "heavy", "dead_letters": str(folder / "letters")}
    return FeedIntake(
        ReaderSpec("s", "ts timestamp, n bigint", ("n",), None, origin, **(given | other))  # type: ignore[arg-type]
    )


def numbers(intake: FeedIntake, parts: list[Slice]) -> list[int]:
    return [n for part in parts for batch in intake.read(part) for n in batch["n"].to_pylist()]


def test_rows_are_read_as_they_fall_due(feed: None, clock: list[float], tmp_path: Path) -> None:
    intake = opened(tmp_path, "endless")
    at, seen = intake.first(), []
    assert at == {"at": 0}
    for elapsed_s in (0, 3, 3, 7.9, 100):
        clock[0] = 1_000 + elapsed_s
        end = intake.latest(at, None)
        seen.append(end["at"])
        assert numbers(intake, intake.slices(at, end)) == list(range(at["at"], end["at"]))  # type: ignore[call-overload]
        at = end
    assert seen == [0, 3, 3, 7, 12]
    assert intake.latest(at, None) == at


def test_the_clock_starts_once_for_all_readers_and_restarts(
    feed: None, clock: list[float], tmp_path: Path
) -> None:
    opened(tmp_path)
    clock[0] += 5
    assert opened(tmp_path, reader="other").latest({"at": 0}, None) == {"at": 5}


def test_a_clock_set_back_takes_nothing_back(
    feed: None, clock: list[float], tmp_path: Path
) -> None:
    intake = opened(tmp_path, lateness_us=0)
    clock[0] += 6
    at = intake.latest({"at": 0}, None)
    assert at == {"at": 6, "watermark_us": 31_000_000}
    clock[0] -= 4
    assert intake.latest(at, None) == at
    clock[0] -= 100
    assert intake.latest(at, None) == at


def test_batches_are_limited_by_rows(feed: None, clock: list[float], tmp_path: Path) -> None:
    intake = opened(tmp_path)
    clock[0] += 100
    assert intake.latest({"at": 0}, 5) == {"at": 5}
    assert intake.latest({"at": 5}, 5) == {"at": 10}
    end = intake.latest({"at": 10}, 5)
    assert end == {"at": 12, "ended": True, "watermark_us": END_OF_TIME_US}
    assert intake.latest(end, 5) == end


def test_the_offset_tells_the_watermark(feed: None, clock: list[float], tmp_path: Path) -> None:
    intake = opened(tmp_path, lateness_us=2_000_000)
    assert intake.latest({"at": 0}, None) == {"at": 0}
    clock[0] += 3
    assert intake.latest({"at": 0}, None) == {"at": 3, "watermark_us": 10_000_000}


def test_the_last_slice_tells_the_time(feed: None, clock: list[float], tmp_path: Path) -> None:
    parts = opened(tmp_path, parallelism=3).slices({"at": 0}, {"at": 30_000, "watermark_us": 7})
    assert [dict(part.body) for part in parts] == [
        {"start": 0, "stop": 10_000},
        {"start": 10_000, "stop": 20_000},
        {"start": 20_000, "stop": 30_000},
    ]
    assert [part.watermark_us for part in parts] == [None, None, 7]
    assert len(opened(tmp_path, parallelism=3).slices({"at": 0}, {"at": 40})) == 1


@settings(database=None, deadline=None, max_examples=50)
@given(
    edges=st.lists(st.integers(0, len(TIMES_S)), max_size=4),
    rows_at_once=st.integers(1, 12),
    lateness_s=st.integers(0, 30),
)
def test_late_rows_are_the_same_however_it_is_cut(
    tmp_path_factory: pytest.TempPathFactory, edges: list[int], rows_at_once: int, lateness_s: int
) -> None:
    lateness_us = lateness_s * 1_000_000
    whole = sift(Recorded().read(0, len(TIMES_S)), "ts", lateness_us, None)
    folder = tmp_path_factory.mktemp("feed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feed_intake, "generator", lambda name, options: Recorded())
        patch.setattr(feed_intake, "_ROWS_PER_ARROW_BATCH", rows_at_once)
        intake = opened(folder, lateness_us=lateness_us)
        cuts = [0, *sorted(edges), len(TIMES_S)]
        parts = [Slice({"start": low, "stop": high}) for low, high in pairwise(cuts)]
        assert numbers(intake, parts) == whole.kept["n"].to_pylist()
        # A task that fails is run again.
        numbers(intake, parts)
        numbers(opened(folder, lateness_us=lateness_us, reader="other"), parts[:1])
    assert DeadLetters(folder / "letters").counts()["late"] == whole.late.num_rows


def test_only_the_needed_columns_are_read(feed: None, clock: list[float], tmp_path: Path) -> None:
    intake = opened(tmp_path)
    (part,) = intake.slices({"at": 0}, {"at": 3})
    (batch,) = intake.read(part)
    assert batch.schema.names == ["n"]


def test_committing_is_nothing_to_a_generator(
    feed: None, clock: list[float], tmp_path: Path
) -> None:
    offset: Offset = {"at": 3}
    opened(tmp_path).commit(offset)
    assert offset == {"at": 3}


def test_real_generators_are_found_by_name(tmp_path: Path) -> None:
    origin = {
        "kind": "feed",
        "generator": "meters",
        "options": {"homes": 3, "days": 1},
        "started": str(tmp_path / "started"),
    }
    intake = FeedIntake(ReaderSpec("s", "ts timestamp, home string", ("home",), None, origin))
    end = intake.latest(intake.first(), 10)
    rows = [row for part in intake.slices(intake.first(), end) for row in intake.read(part)]
    assert sum(batch.num_rows for batch in rows) == end["at"]
