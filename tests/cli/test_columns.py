"""Columns that fit."""

import pytest

from penstock.cli.columns import TextColumn, fitted, natural_width, padded, shortened, table

NAME = TextColumn("name", ("anna", "bertold"), right=False)
AGE = TextColumn("age", ("7", "77"), rank=1)
NOTE = TextColumn("note", ("knows it", ""), rank=2, right=False)


def test_side_by_side_when_there_is_room() -> None:
    lines = [line.plain for line in table([NAME, AGE, NOTE], 40)]
    assert lines == [" name     age  note", " anna       7  knows it", " bertold   77"]


def test_the_highest_rank_leaves_first() -> None:
    assert [one.title for one in fitted([NAME, AGE, NOTE], 15)] == ["name", "age"]
    assert [one.title for one in fitted([NAME, AGE, NOTE], 8)] == ["name"]


def test_what_must_stay_is_shortened() -> None:
    assert [line.plain for line in table([NAME], 5)] == [" name", " anna", " ber…"]


@pytest.mark.parametrize("width", range(2, 30))
def test_no_line_is_longer_than_the_width(width: int) -> None:
    assert all(line.cell_len <= width for line in table([NAME, AGE, NOTE], width))


def test_nothing_gives_nothing() -> None:
    assert table([], 10) == []
    assert natural_width([]) == 0


def test_wide_characters_count_twice() -> None:
    assert padded("東京都", 5) == "東京…"
    assert shortened("東京", 4) == "東京"
