"""Small files: whole or not at all."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from penstock.channels import durable
from penstock.channels.durable import (
    create_once,
    move_number,
    read_number,
    read_text,
    write_number,
    write_text,
)
from penstock.errors import RunError

from channels.disk import Died, dying_at, full, names

pytestmark = pytest.mark.core


def test_text_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "a"
    assert read_text(path) is None
    write_text(path, "ä\n")
    assert read_text(path) == "ä\n"
    write_text(path, "b")
    assert read_text(path) == "b"
    assert names(tmp_path) == ["a"]


def test_only_the_first_creates(tmp_path: Path) -> None:
    path = tmp_path / "a"
    assert create_once(path, "first")
    assert not create_once(path, "second")
    assert read_text(path) == "first"
    assert names(tmp_path) == ["a"]


def test_of_many_that_create_at_once_one_succeeds(tmp_path: Path) -> None:
    ready, created = threading.Barrier(8), []

    def create(number: int) -> None:
        ready.wait()
        if create_once(tmp_path / "a", str(number)):
            created.append(number)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(created) == 1
    assert read_text(tmp_path / "a") == str(created[0])


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("write", [write_text, create_once])
def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path, write: object, after: bool) -> None:
    path = tmp_path / "a"
    for step in range(1, 10):
        path.unlink(missing_ok=True)
        try:
            with dying_at(step, after=after):
                write(path, "whole")  # type: ignore[operator]
        except Died:
            assert read_text(path) in (None, "whole")
        else:
            assert step > 2
            assert read_text(path) == "whole"
            return
    raise AssertionError("writing one file takes this many changes?")


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_text_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path = tmp_path / "a"
    write_text(path, "old")
    with monkeypatch.context() as patch:
        patch.setattr(os, step, full)
        with pytest.raises(OSError, match="No space left"):
            write_text(path, "new")
    assert read_text(path) == "old"
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("step", ["fsync", "link"])
def test_a_full_disk_creates_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match="No space left"):
        create_once(tmp_path / "a", "new")
    assert names(tmp_path) == []


def test_numbers(tmp_path: Path) -> None:
    path = tmp_path / "epoch"
    assert read_number(path) is None
    write_number(path, 7)
    assert read_number(path) == 7


def test_a_number_of_which_any_bit_has_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "epoch"
    write_number(path, 1_057)
    whole = path.read_bytes()
    for at in range(len(whole) * 8):
        changed = bytearray(whole)
        changed[at // 8] ^= 1 << at % 8
        path.write_bytes(changed)
        with pytest.raises(RunError, match=f"the file {path} is damaged"):
            read_number(path)
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(RunError, match=f"the file {path} is damaged"):
            read_number(path)


@pytest.mark.parametrize("text", ["", "seven", "7.5", "7"])
def test_a_damaged_number_is_refused_by_the_name_of_its_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "epoch"
    path.write_text(text)
    with pytest.raises(RunError) as caught:
        read_number(path)
    assert str(caught.value) == (
        f"the file {path} is damaged (it holds {text!r} instead of a sealed number). "
        "Restore the file from a backup, or start afresh with --fresh."
    )


class TestNumbersInPlace:
    def test_any_number_after_any_other(self, tmp_path: Path) -> None:
        path = tmp_path / "head"
        for number in (7, 123_456, 0, 10**19):
            move_number(path, number)
            assert read_number(path) == number
        write_number(path, 5)
        assert read_number(path) == 5

    def test_half_of_one_is_not_taken_for_a_number(self, tmp_path: Path) -> None:
        path = tmp_path / "head"
        move_number(path, 11)
        first = path.read_bytes()
        move_number(path, 22)
        second = path.read_bytes()
        for cut in range(1, len(first)):
            path.write_bytes(first[:cut] + second[cut:])
            if path.read_bytes() not in (first, second):
                with pytest.raises(RunError, match="instead of a sealed number"):
                    read_number(path)

    def test_one_seen_half_written_is_looked_at_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "head"
        move_number(path, 3)
        texts = ["00000000000000000002 de", path.read_text()]
        monkeypatch.setattr(durable, "read_text", lambda _: texts.pop(0))
        assert read_number(path) == 3
        assert texts == []
