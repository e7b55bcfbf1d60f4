"""Tables of owners and releases on disk: one of several who change a table succeeds."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from penstock.channels.group_files import GroupFiles
from penstock.errors import RunError
from penstock.model.group_table import GroupTable
from penstock.model.parts import JoinSpread

SPREAD = JoinSpread(3, 6)


def test_the_first_table_needs_no_file(tmp_path: Path) -> None:
    assert GroupFiles(tmp_path / "none").owners(SPREAD) == GroupTable.first(SPREAD)


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    files = GroupFiles(tmp_path)
    table = files.owners(SPREAD).moved([0, 3], 2)
    assert files.propose(table)
    assert files.owners(SPREAD) == table
    table = table.settled([0], {0: 0.4}).closing(3)
    assert not files.propose(GroupTable.first(SPREAD).moved([1], 1))
    assert files.propose(table)
    assert files.owners(SPREAD) == table
    assert files.owners(SPREAD).pauses == {0: 0.4}


def test_of_many_who_change_it_at_once_one_succeeds(tmp_path: Path) -> None:
    files = GroupFiles(tmp_path)
    for group in range(6):
        table = files.owners(SPREAD)
        others = [part for part in (1, 2, 3) if part != table.owners[group]] * 4
        with ThreadPoolExecutor(8) as pool:
            done = list(pool.map(lambda to: files.propose(table.moved([group], to)), others))  # noqa: B023
        assert done.count(True) == 1
    assert files.owners(SPREAD).number == 6


def test_old_tables_go(tmp_path: Path) -> None:
    files = GroupFiles(tmp_path)
    for _ in range(100):
        now = files.owners(SPREAD)
        assert files.propose(now.moved([0], 2 if now.owners[0] != 2 else 3).settled([0]))
    assert len(list(tmp_path.glob("owners-*"))) < 70


def test_a_damaged_table_is_named(tmp_path: Path) -> None:
    files = GroupFiles(tmp_path)
    assert files.propose(files.owners(SPREAD).moved([0], 2))
    (path,) = tmp_path.glob("owners-*")
    path.write_text(path.read_text().replace("2", "3", 1))
    with pytest.raises(RunError, match=path.name):
        files.owners(SPREAD)


def test_a_release_lies_there_until_it_is_forgotten(tmp_path: Path) -> None:
    files = GroupFiles(tmp_path)
    assert files.given(2) == []
    files.give(2, "00000001-1-0", {"epoch": 1})
    files.give(2, "00000001-1-0", {"epoch": 1})
    assert files.given(2) == [{"epoch": 1}]
    files.forget(2, "00000001-1-0")
    files.forget(2, "00000001-1-0")
    assert files.given(2) == []
