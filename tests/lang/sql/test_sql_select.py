"""SELECT, FROM, WHERE, WITH, UNION ALL: the graphs they give."""

from __future__ import annotations

import pytest
from sql_samples import CATALOG, drawn, operators, told

from penstock.lang.sql import KnownNames, parse_query
from penstock.model.schema import Schema, Shape


@pytest.mark.parametrize(
    ("text", "graph"),
    [
        ("SELECT * FROM readings", "q = map(readings) ts, home, district, kwh"),
        ("SELECT * FROM readings WHERE kwh > 3", "q = filter(readings) (`kwh` > 3)"),
        (
            "SELECT ts, KWH * 2 AS twice FROM Readings WHERE kwh > 3",
            """
            q_filter = filter(readings) (`kwh` > 3)
            q = map(q_filter) ts, (`kwh` * 2) AS twice
            """,
        ),
        ("SELECT r.* FROM readings r", "q = map(readings) ts, home, district, kwh"),
        ("SELECT * EXCEPT (ts, kwh) FROM readings", "q = map(readings) home, district"),
        (
            "SELECT *, kwh AS k FROM readings",
            "q = map(readings) ts, home, district, kwh, `kwh` AS k",
        ),
        ("FROM readings SELECT home", "q = map(readings) home"),
        ("(SELECT home FROM readings);", "q = map(readings) home"),
    ],
)
def test_simple(text: str, graph: str) -> None:
    assert drawn(text) == told(graph)


def test_result_has_the_spelling_of_the_schema() -> None:
    catalog = KnownNames({"S": Shape(Schema.parse("Home string"))})
    (only,) = operators("SELECT HOME FROM s", "q", catalog)
    assert only.output.schema.names == ("Home",)
    assert only.inputs[0].stream == "S"


def test_subqueries_that_change_nothing_leave_no_operator() -> None:
    assert drawn(
        "SELECT home FROM (SELECT * FROM (SELECT * FROM readings) a WHERE kwh > 1) b WHERE kwh < 9"
    ) == told("""
        q_filter = filter(readings) ((`kwh` > 1) AND (`kwh` < 9))
        q = map(q_filter) home
        """)


def test_maps_in_a_row_become_one() -> None:
    assert drawn("SELECT k + 1 AS x FROM (SELECT kwh * 2 AS k, home FROM readings) a") == (
        "q = map(readings) ((`kwh` * 2) + 1) AS x"
    )


def test_nothing_is_computed_twice() -> None:
    assert drawn("SELECT k + k AS x FROM (SELECT sqrt(kwh) AS k FROM readings) a") == told("""
        q_a = map(readings) sqrt(`kwh`) AS k
        q = map(q_a) (`k` + `k`) AS x
        """)


def test_common_table_expressions_are_shared() -> None:
    assert drawn("""
        WITH large AS (SELECT * FROM readings WHERE kwh > 3),
             small AS (SELECT home, ts FROM large WHERE kwh < 5)
        SELECT home, ts FROM large UNION ALL SELECT * FROM small
        """) == told("""
        q_large = filter(readings) (`kwh` > 3)
        q_map = map(q_large) home, ts
        q_small_filter = filter(q_large) (`kwh` < 5)
        q_small = map(q_small_filter) home, ts
        q = union(q_map, q_small)
        """)


def test_a_subquery_may_be_called_like_the_stream_it_reads() -> None:
    assert drawn(
        "WITH readings AS (SELECT * FROM readings WHERE kwh > 3) SELECT home FROM readings"
    ) == told("""
        q_readings = filter(readings) (`kwh` > 3)
        q = map(q_readings) home
        """)


def test_what_is_not_read_is_left_out() -> None:
    assert (
        drawn(
            "WITH a AS (SELECT home FROM bids) SELECT home FROM readings".replace(
                "home FROM bids", "url FROM bids"
            )
        )
        == "q = map(readings) home"
    )


def test_unions_are_flat() -> None:
    text = (
        "SELECT home FROM readings UNION ALL (SELECT url FROM bids UNION ALL SELECT b FROM untimed)"
    )
    assert drawn(text) == told("""
        q_map = map(readings) home
        q_map_2 = map(bids) url
        q_map_3 = map(untimed) b
        q = union(q_map, q_map_2, q_map_3)
        """)


def test_names_avoid_those_of_the_catalog() -> None:
    catalog = KnownNames({**CATALOG.shapes, "q_filter": CATALOG.shapes["readings"]})
    names = [
        operator.name
        for operator in operators("SELECT home FROM readings WHERE kwh > 1", "q", catalog)
    ]
    assert names == ["q_filter_2", "q"]


def test_every_operator_comes_after_what_it_reads() -> None:
    parsed = parse_query(
        "q",
        "SELECT a.home FROM readings a JOIN readings b ON a.home = b.home AND a.ts = b.ts "
        "WHERE b.kwh > 1",
        CATALOG,
    )
    known = set(CATALOG.shapes)
    for operator in parsed.operators:
        assert {one.stream for one in operator.inputs} <= known
        known.add(operator.name)
    assert parsed.stream == parsed.operators[-1].name == "q"
