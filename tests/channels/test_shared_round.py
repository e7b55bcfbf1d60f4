"""Small batches of many channels in one file: found, committed once, fenced, freed, damaged."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws import tried
from penstock.channels import shared_round
from penstock.channels.channel import Channel
from penstock.channels.files import write_files
from penstock.channels.manifest import Manifest
from penstock.channels.shared_round import (
    SharedBatch,
    link_once,
    pack_rows,
    read_entry,
    read_shared_rows,
    write_shared,
)
from penstock.channels.writer import Writer
from penstock.errors import RunError
from penstock.spark.sources.channel_reader import check_file

from channels.disk import Died, dying_at

pytestmark = pytest.mark.core
NAMES = ("peaks", "heavy_homes", "readings")


def rows(*values: int) -> pa.Table:
    return pa.table({"x": pa.array(values, pa.int64())})


@pytest.fixture
def channels(tmp_path: Path) -> list[Channel]:
    return [Channel.open(tmp_path / name) for name in NAMES]


def commit_all(
    writers: list[Writer], path: Path, batch_id: int, ended: bool = False
) -> list[Manifest]:
    """One round: every channel gets as many rows as it has places in the list before it."""
    composed = [
        writer.compose(batch_id, rows(*range(at)), 10 * batch_id, ended, 5.0, {"x": at})
        for at, writer in enumerate(writers)
    ]
    write_shared(path, composed)
    made = [writer.commit_shared(path, one) for writer, one in zip(writers, composed, strict=True)]
    path.unlink()
    return made


def values(channel: Channel, sequence: int) -> list[int]:
    manifest = channel.manifest(sequence)
    assert manifest is not None
    return [
        value
        for file in manifest.files
        for value in channel.rows_of(file, ["x"]).column("x").to_pylist()
    ]


class TestFile:
    @given(st.dictionaries(st.text(min_size=1), st.lists(st.integers(-9, 9)), min_size=1))
    @tried(20)
    def test_each_finds_its_own(
        self, tmp_path_factory: pytest.TempPathFactory, given_rows: dict[str, list[int]]
    ) -> None:
        path = tmp_path_factory.mktemp("shared") / "round"
        bodies = {name: pack_rows(rows(*found)) for name, found in given_rows.items()}
        write_shared(path, [SharedBatch(name, f"of {name}", bodies[name]) for name in bodies])
        for name, found in given_rows.items():
            assert read_entry(path, name) == (f"of {name}", True)
            check = shared_round.checksum(memoryview(bodies[name]))
            assert read_shared_rows(path, name, check).column("x").to_pylist() == found

    def test_names_that_look_alike_are_told_apart(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(shared_round, "_number", lambda channel: 7)
        names = ("a", "b", "c")
        write_shared(
            tmp_path / "round", [SharedBatch(name, name, pa.py_buffer(b"")) for name in names]
        )
        assert [read_entry(tmp_path / "round", name) for name in names] == [
            (name, True) for name in names
        ]

    def test_one_that_is_not_in_it(self, tmp_path: Path) -> None:
        write_shared(tmp_path / "round", [SharedBatch("a", "", pack_rows(rows()))])
        with pytest.raises(RunError, match=r"round is damaged \(it holds nothing of b\)"):
            read_entry(tmp_path / "round", "b")

    def test_no_file_and_another_kind(self, tmp_path: Path) -> None:
        assert read_entry(tmp_path / "none", "a") is None
        (tmp_path / "plain").write_text("{}")
        assert read_entry(tmp_path / "plain", "a") == ("{}", False)

    def test_the_first_link_counts(self, tmp_path: Path) -> None:
        (tmp_path / "one").write_text("1")
        (tmp_path / "two").write_text("2")
        assert link_once(tmp_path / "one", tmp_path / "entry")
        assert not link_once(tmp_path / "two", tmp_path / "entry")
        assert (tmp_path / "entry").read_text() == "1"


class TestCommit:
    def test_every_channel_has_its_rows_and_what_was_told(
        self, channels: list[Channel], tmp_path: Path
    ) -> None:
        writers = [Writer(channel, 3) for channel in channels]
        commit_all(writers, tmp_path / "round", 4)
        made = commit_all(writers, tmp_path / "round", 6, ended=True)
        for at, channel in enumerate(channels):
            assert [values(channel, sequence) for sequence in (0, 1)] == [list(range(at))] * 2
            assert channel.last() == made[at]
            told = (made[at].sequence, made[at].epoch, made[at].batch_id, made[at].rows)
            assert told == (1, 3, 6, at)
            assert (made[at].watermark_us, made[at].ended, made[at].arrived_s) == (60, True, 5.0)
            assert made[at].latest == {"x": at}

    def test_batches_of_both_kinds_follow_each_other(
        self, channels: list[Channel], tmp_path: Path
    ) -> None:
        writers = [Writer(channel, 1) for channel in channels]
        commit_all(writers, tmp_path / "round", 0)
        writers[2].commit(1, write_files(rows(7, 8), writers[2], 1))
        again = [*writers[:2], Writer(channels[2], 2)]
        commit_all(again, tmp_path / "round", 2)
        assert [values(channels[2], sequence) for sequence in range(3)] == [[0, 1], [7, 8], [0, 1]]
        assert sum(writer.rows for writer in channels[2].kept()) == 6

    def test_a_former_owner_is_refused(self, channels: list[Channel], tmp_path: Path) -> None:
        former = Writer(channels[0], 1)
        composed = former.compose(0, rows(1), None, False, None, {})
        write_shared(tmp_path / "round", [composed])
        Writer(channels[0], 2)
        with pytest.raises(RunError, match="belongs to a newer writer"):
            former.commit_shared(tmp_path / "round", composed)
        assert channels[0].last() is None

    def test_the_same_batch_of_a_former_owner_counts_as_done(
        self, channels: list[Channel], tmp_path: Path
    ) -> None:
        former, present = Writer(channels[0], 1), Writer(channels[0], 2)
        composed = [
            writer.compose(0, rows(1), None, False, None, {}) for writer in (former, present)
        ]
        for at, one in enumerate(composed):
            write_shared(tmp_path / f"round-{at}", [one])
        link_once(tmp_path / "round-0", channels[0].entry(0))
        assert present.commit_shared(tmp_path / "round-1", composed[1]).epoch == 1
        assert values(channels[0], 0) == [1]

    def test_what_is_freed_frees_the_file_with_its_last_channel(
        self, channels: list[Channel], tmp_path: Path
    ) -> None:
        writers = [Writer(channel, 1) for channel in channels]
        commit_all(writers, tmp_path / "round", 0)
        commit_all(writers, tmp_path / "round", 1)
        held = channels[0].entry(0)
        assert held.stat().st_nlink == 3
        for channel in channels[1:]:
            channel.free(range(2), 1)
        assert held.stat().st_nlink == 1
        assert values(channels[2], 1) == [0, 1]


@pytest.mark.parametrize("after", [False, True])
def test_killed_at_any_step_the_next_owner_makes_up_for_it(tmp_path: Path, after: bool) -> None:
    step, struck = 0, True
    while struck:
        step += 1
        channels = [Channel.open(tmp_path / f"{step}" / name) for name in NAMES]
        former = [Writer(channel, 1) for channel in channels]
        commit_all(former, tmp_path / "round", 0)
        with dying_at(step, after=after), suppress(Died):
            commit_all(former, tmp_path / f"round-{step}", 1)
            struck = False
        present = [Writer(channel, 2) for channel in channels]
        for at, writer in enumerate(present):
            writer.commit(1, write_files(rows(*range(at)), writer, 1), 10)
        commit_all(present, tmp_path / "round", 2)
        for at, channel in enumerate(channels):
            assert [manifest.batch_id for manifest in channel.newer(0)] == [0, 1, 2]
            assert [values(channel, sequence) for sequence in range(3)] == [list(range(at))] * 3
    assert step > len(NAMES), "every link was a step"


class TestParquet:
    def test_those_who_need_it_get_it_once(self, channels: list[Channel], tmp_path: Path) -> None:
        writers = [Writer(channel, 1) for channel in channels]
        (*_, made) = commit_all(writers, tmp_path / "round", 0)
        path = check_file(channels[2], made.files[0])
        assert pq.read_table(path).column("x").to_pylist() == [0, 1]
        written_ns = path.stat().st_mtime_ns
        assert check_file(channels[2], made.files[0]) == path
        assert path.stat().st_mtime_ns == written_ns
        assert [one.name for one in channels[2].data.iterdir()] == [path.name]

    def test_it_goes_with_the_batch_and_stays_while_that_is_kept(
        self, channels: list[Channel], tmp_path: Path
    ) -> None:
        writers = [Writer(channel, 1) for channel in channels]
        (*_, made) = commit_all(writers, tmp_path / "round", 0)
        path = channels[2].path_of(made.files[0])
        channels[2].tidy(2, 9)
        assert path.exists()
        commit_all(writers, tmp_path / "round", 1)
        channels[2].free(range(2), 1)
        assert not path.exists()


@pytest.mark.parametrize("part", ["front", "index", "manifest", "rows", "end"])
def test_damage_is_noticed_and_named(channels: list[Channel], tmp_path: Path, part: str) -> None:
    writers = [Writer(channel, 1) for channel in channels]
    commit_all(writers, tmp_path / "round", 0)
    entry = channels[2].entry(0)
    body = bytearray(entry.read_bytes())
    at = {
        "front": len(shared_round._MAGIC) + 1,
        "index": len(shared_round._MAGIC) + shared_round._FRONT.size + 3,
        "manifest": body.index(b"batch_id") + 2,
        "rows": body.rindex((1).to_bytes(8, "little")),
        "end": len(body) - 1,
    }[part]
    if part == "manifest":
        # Every channel's, so that it is ours that is hit.
        body = body.replace(b"batch_id", b"botch_id")
    else:
        body[at] ^= 0x40
    entry.write_bytes(body[:-1] if part == "end" else body)
    with pytest.raises(RunError, match=r"00000000\.json is damaged"):
        values(channels[2], 0)
        # Where its rows are not the last in the file, its end is another's.
        values(channels[0], 0)
        values(channels[1], 0)
