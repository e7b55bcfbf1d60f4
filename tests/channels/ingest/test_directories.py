"""Bringing in files that arrive in a directory: once, in order, whole."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.channels.durable import create_once
from penstock.channels.manifest import END_OF_TIME_US
from penstock.errors import InputError, RunError

from channels.ingest.places import S, place, run

pytestmark = pytest.mark.core


def taken(root: Path, epoch: int) -> list[str]:
    """The names of the files that the owner with this epoch has accepted."""
    text = (root / "stream" / f"taken-{epoch}").read_text()
    return [json.loads(line)[0] for line in text.splitlines()]


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
        assert here.letters.counts() == {"malformed": 0, "late": 0, "skipped": 2}

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
        former = tmp_path / "stream" / "taken-1"
        former.write_text(former.read_text() + '"b.c')
        here.put("b.csv", "1,1")
        run(here.start())
        here.put("c.csv", "2,2")
        run(here.start())
        assert here.rows() == [0, 1, 2]
        assert here.reasons() == []
        assert taken(tmp_path, 3) == ["a.csv", "b.csv", "c.csv"]
        assert not former.exists(), "only the last owner's and its own are kept"

    def test_what_a_replaced_owner_still_accepts_counts_nowhere(self, tmp_path: Path) -> None:
        here = place(tmp_path)
        here.put("a.csv", "0,0")
        former = here.start()
        run(former)
        owner = here.start()
        here.put("b.csv", "1,1")
        run(owner)
        with pytest.raises(RunError, match="belongs to a newer writer"):
            former.step()
        assert taken(tmp_path, 1) == ["a.csv", "b.csv"]
        here.put("c.csv", "2,2")
        run(owner)
        run(here.start())
        assert here.rows() == [0, 1, 2]

    def test_a_batch_of_a_former_owner_in_our_place_is_gone_on_from(self, tmp_path: Path) -> None:
        """It was past the check when we came, and took less than we would have."""
        here = place(tmp_path)
        here.put("a.csv", "0,0")
        run(here.start())
        here.put("b.csv", "1,1")
        (tmp_path / "other").mkdir()
        other = place(tmp_path / "other")
        other.put("a.csv", "0,0")
        run(other.start())
        other.put("b.csv", "1,1")
        other.epoch = 0
        run(other.start())
        owner = here.start()
        here.put("c.csv", "2,2")
        late_entry = other.channel.manifest(1)
        assert late_entry is not None
        for file in late_entry.files:
            shutil.copy(other.channel.data / file.name, here.channel.data / file.name)
        assert create_once(here.channel.entry(1), replace(late_entry, epoch=1).to_json())
        run(owner)
        assert here.rows() == [0, 1, 2]

    def test_a_damaged_list_of_files_is_refused_by_name(self, tmp_path: Path) -> None:
        here = place(tmp_path)
        here.start()
        (tmp_path / "stream" / "taken-1").write_text("a.csv\n")
        with pytest.raises(RunError) as caught:
            here.start()
        assert str(caught.value) == (
            f"the list of accepted files {tmp_path}/stream/taken-2 is damaged. "
            "Restore the file from a backup, or start afresh with --fresh."
        )


class TestLateAndMalformedRows:
    def test_are_set_aside_once(self, tmp_path: Path) -> None:
        here = place(tmp_path, lateness_us=2 * S)
        here.put("a.csv", "10,0", "8,1", "7,2", "x,3", "11", ",5", "12,6")
        run(here.start())
        run(here.start())
        assert here.rows() == [0, 1, 6]
        assert here.letters.counts() == {"malformed": 2, "late": 1, "untimed": 1}
        assert here.reasons() == [
            "1 column instead of 2",
            "late",
            "no event time",
            "ts: 'x' is no timestamp",
        ]

    def test_a_late_letter_tells_the_row(self, tmp_path: Path) -> None:
        here = place(tmp_path)
        here.put("a.csv", "10,0", "9,1")
        run(here.start())
        (line,) = here.set_aside()
        assert json.loads(line) == {
            "reason": "late",
            "at": "1970-01-01T00:00:10.000000Z",
            "row": {"ts": "1970-01-01 00:00:09+00:00", "n": 1},
        }

    def test_the_watermark_follows_the_latest_row(
        self, tmp_path: Path, small_commits: None
    ) -> None:
        here = place(tmp_path, lateness_us=2 * S)
        here.put("a.csv", "10,0", "9,1", "8,2")
        here.put("b.csv", "9,3", "30,4", "29,5")
        run(here.start())
        assert [manifest.watermark_us for manifest in here.manifests()] == [8 * S, 28 * S]

    def test_without_a_lateness_nothing_is_late_and_nothing_promised(self, tmp_path: Path) -> None:
        here = place(tmp_path, lateness_us=None)
        here.put("a.csv", "10,0", "1,1")
        run(here.start())
        assert here.rows() == [0, 1]
        assert [manifest.watermark_us for manifest in here.manifests()] == [None]

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
