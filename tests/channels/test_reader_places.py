"""How far readers have come: looked up again where it has changed, and nowhere else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.channels import reader_places as module
from penstock.channels.durable import move_number
from penstock.channels.reader_places import ReaderPlaces
from penstock.errors import RunError

pytestmark = pytest.mark.core
LONG_AGO_NS = 10**18


def put(folder: Path, reader: str, place: int, written_ns: int | None = None) -> None:
    move_number(folder / reader, place)
    if written_ns is not None:
        os.utime(folder / reader, ns=(written_ns, written_ns))


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []
    read = module.read_number

    def noted(path: Path) -> int | None:
        names.append(path.name)
        return read(path)

    monkeypatch.setattr(module, "read_number", noted)
    return names


def test_the_slowest_counts(tmp_path: Path) -> None:
    places = ReaderPlaces(tmp_path)
    assert places.first_needed() is None
    put(tmp_path, "quick", 12)
    put(tmp_path, "slow", 3)
    (tmp_path / ".half").write_text("")
    assert places.first_needed() == 3
    put(tmp_path, "slow", 20)
    assert places.first_needed() == 12
    (tmp_path / "quick").unlink()
    assert places.first_needed() == 20


def test_only_what_has_changed_is_read_again(tmp_path: Path, opened: list[str]) -> None:
    places = ReaderPlaces(tmp_path)
    for reader in ("a", "b"):
        put(tmp_path, reader, 1, LONG_AGO_NS)
    assert [places.first_needed() for _ in range(3)] == [1, 1, 1]
    assert sorted(opened) == ["a", "b"]
    put(tmp_path, "a", 5, LONG_AGO_NS + 1)
    assert places.first_needed() == 1
    assert sorted(opened) == ["a", "a", "b"]


def test_what_was_written_just_now_may_have_been_written_again(
    tmp_path: Path, opened: list[str]
) -> None:
    places = ReaderPlaces(tmp_path)
    put(tmp_path, "a", 1)
    just_now_ns = (tmp_path / "a").stat().st_mtime_ns
    assert places.first_needed() == 1
    put(tmp_path, "a", 2, just_now_ns)
    assert places.first_needed() == 2
    assert opened == ["a", "a"]


def test_damage_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("7 deadbeef")
    with pytest.raises(RunError, match=r"the file .*a is damaged"):
        ReaderPlaces(tmp_path).first_needed()
