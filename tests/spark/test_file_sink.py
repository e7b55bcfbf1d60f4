"""Results as files: where they cannot be written."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.model.sources import FileSink
from penstock.spark.sinks.file_sink import DirectorySink

pytestmark = pytest.mark.core


def sink(folder: Path) -> DirectorySink:
    return DirectorySink(FileSink(folder, "csv"), "q-1", 1, lambda: None)


def test_a_place_that_is_no_directory_is_refused_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(InputError) as error:
            sink(folder)
        assert str(error.value) == (
            f"results cannot be written to {folder}: {tmp_path}/file is no directory. "
            "Correct the path, or let the user who runs Penstock write there."
        )


def test_so_is_one_that_may_not_be_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(InputError, match="may not be written to"):
        sink(tmp_path / "out")


def test_one_that_is_not_there_yet_is_made_later(tmp_path: Path) -> None:
    sink(tmp_path / "a" / "b")
    assert not (tmp_path / "a").exists()


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no file system that takes nothing")
def test_so_is_one_that_cannot_be_made() -> None:
    with pytest.raises(InputError, match=r"results cannot be written to /proc/out: .*/proc"):
        sink(Path("/proc/out"))
