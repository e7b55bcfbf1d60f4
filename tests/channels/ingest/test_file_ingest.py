"""Bringing files in: once, in order, whatever happens in between."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws import tried
from penstock.channels import files as channel_files
from penstock.channels.ingest import file_ingest as ingest
from penstock.channels.ingest.entrance import Entrance
from penstock.channels.ingest.file_ingest import FileProgress
from penstock.channels.ingest.thread import IngestThread
from penstock.channels.writer import Writer
from penstock.errors import InputError
from penstock.feeds import files
from penstock.model.sources import ReplaySource

from channels.disk import full, names
from channels.ingest.places import Place, S, live_until, place, run

pytestmark = pytest.mark.core


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


many = tried(25)


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
            live_until(dying, death, after=data.draw(st.booleans()))
        fill(dying, files_of_rows)
        dying.stream = straight.stream
        dying.stream = replace(
            dying.stream, source=replace(straight.stream.source, path=dying.root / "in")
        )
        for death in deaths:
            live_until(dying, death, after=data.draw(st.booleans()))
        run(dying.start())
        assert outcome(dying) == outcome(straight)


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
    def half(path: Path, body: pa.Buffer) -> None:
        with path.open("wb") as file:
            file.write(memoryview(body)[:9])
        full()

    here = place(tmp_path)
    here.put("a.csv", "1,0")
    monkeypatch.setattr(Path, "write_bytes", half)
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
    wanted = FileProgress(files=1, high_water_us=12 * S, latest_us=12 * S, admitted=2)
    entrance = Entrance(here.stream, Writer(here.channel, 5), here.letters)
    assert entrance.restored(FileProgress) == wanted
    assert here.manifests()[-1].writer_state == {**vars(wanted), "jumps": []}


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
