"""INSERT INTO: rows for a table of a database."""

from __future__ import annotations

from sql_samples import drawn, operators, told

from penstock.lang.sql import KnownNames, references
from penstock.model.schema import Schema, Shape
from penstock.model.sources import Database, Table


def test_by_name_in_any_order() -> None:
    text = """
        INSERT INTO totals SELECT count(*) AS n, sum(kwh) AS kwh, home
        FROM readings GROUP BY home, window(ts, '1 hour')
    """
    assert drawn(text) == told("""
        q_aggregate = aggregate(readings)
            count(*) AS n, sum(`kwh`) AS kwh by home, every 1 hour
        q_map = map(q_aggregate) home, kwh, n
        q = sql_write(q_map) into totals of sqlite:///ami.db
        """)


def test_by_position_with_types_that_fit() -> None:
    text = "INSERT INTO TABLE Totals (N, home) SELECT 5, home FROM readings"
    assert drawn(text) == told("""
        q_map = map(readings) TRY_CAST(5 AS bigint) AS n, home
        q = sql_write(q_map) into totals of sqlite:///ami.db
        """)


def test_the_name_in_the_database_counts() -> None:
    table = Table("out", Schema.parse("a int"), database=Database("sqlite:///x.db"), table="stored")
    catalog = KnownNames({"s": Shape(Schema.parse("a int"))}, {"out": table})
    assert drawn("INSERT INTO out SELECT a FROM s", "q", catalog) == (
        "q = sql_write(s) into stored of sqlite:///x.db"
    )


def test_subqueries_before_and_after() -> None:
    inside = "INSERT INTO totals (home) WITH a AS (SELECT home FROM readings) SELECT home FROM a"
    before = "WITH a AS (SELECT home FROM readings) INSERT INTO totals (home) SELECT home FROM a"
    assert operators(inside) == operators(before)
    assert references(inside) == references(before) == {"readings"}
