"""Which names a query reads, and how its text is taken apart."""

from __future__ import annotations

import pytest

from penstock.errors import InputError
from penstock.lang.sql import references
from penstock.lang.sql.places import WrittenText
from penstock.lang.sql.syntax import is_plain_name


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT * FROM readings", {"readings"}),
        ("SELECT * FROM Readings r JOIN `bids` b ON r.x = b.x, c", {"Readings", "bids", "c"}),
        ("WITH a AS (SELECT * FROM s), b AS (SELECT * FROM a) SELECT * FROM B", {"s"}),
        ("WITH s AS (SELECT * FROM s) SELECT * FROM s", {"s"}),
        ("SELECT * FROM (WITH a AS (SELECT * FROM x) SELECT * FROM a) q JOIN a", {"x", "a"}),
        ("SELECT * FROM a UNION ALL (SELECT * FROM b UNION ALL SELECT * FROM c)", {"a", "b", "c"}),
        ("INSERT INTO t SELECT * FROM a", {"a"}),
        ("INSERT INTO t (x) SELECT x FROM a JOIN t ON a.x = t.x", {"a", "t"}),
    ],
)
def test_references(text: str, names: set[str]) -> None:
    assert references(text) == names


def test_syntax_errors_name_their_origin() -> None:
    with pytest.raises(InputError, match=r"ami\.yaml, query a, line 1:"):
        references("SELECT FROM WHERE", "ami.yaml, query a")


def test_names_that_need_quotes() -> None:
    plain = ["home", "start", "window", "ts", "key", "count", "at", "x1"]
    reserved = ["from", "end", "case", "if", "interval", "timestamp", "join", "true"]
    assert all(map(is_plain_name, plain))
    assert not any(map(is_plain_name, reserved))


def test_offsets_become_lines_and_columns() -> None:
    written = WrittenText("query", "ab\r\ncd\u2028ef")
    places = [(one.line, one.column) for one in map(written.at, (0, 1, 4, 5, 7, 8))]
    assert places == [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2)]
