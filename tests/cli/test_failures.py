"""Errors at the terminal."""

from pathlib import Path

import pytest

from penstock.cli.failures import LOG_FOLDER, reported
from penstock.errors import InputError, Place, UnreachableError


def bug() -> Exception:
    try:
        return ZeroDivisionError(str(1 // 0))
    except ZeroDivisionError as error:
        return error


def test_our_errors_are_their_text(capsys: pytest.CaptureFixture[str]) -> None:
    place = Place("ami.yaml, query heavy", "SELECT hom", 1, 8, 3)
    assert reported(InputError("no column hom", hint="Did you mean home?", place=place)) == 1
    assert reported(UnreachableError("no Java")) == 3
    assert capsys.readouterr().err == (
        "ami.yaml, query heavy, line 1:\n    SELECT hom\n           ^^^\n"
        "no column hom. Did you mean home?\nno Java\n"
    )


def test_a_bug_is_one_line_and_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    token = LOG_FOLDER.set(tmp_path)
    try:
        assert reported(bug()) == 4
    finally:
        LOG_FOLDER.reset(token)
    (written,) = tmp_path.iterdir()
    assert capsys.readouterr().err == (
        "penstock failed: ZeroDivisionError: integer division or modulo by zero; this is a bug. "
        f"Please report it with {written}\n"
    )
    assert "Traceback (most recent call last)" in written.read_text()


def test_without_a_log_folder_it_goes_to_the_temporary_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert reported(bug()) == 4
    (written,) = tmp_path.iterdir()
    assert capsys.readouterr().err.rstrip().endswith(str(written))


def test_a_full_disk_does_not_hide_the_bug(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(error: BaseException) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("penstock.cli.failures._written", full)
    assert reported(bug()) == 4
    assert capsys.readouterr().err.rstrip().endswith("(no details: No space left on device)")
