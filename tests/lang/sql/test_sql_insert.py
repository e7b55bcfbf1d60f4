"""INSERT INTO: rows for a table of a database."""

from __future__ import annotations

from sql_samples import complaint, drawn, operators, told

from penstock.lang.sql import Catalog, references
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
    catalog = Catalog({"s": Shape(Schema.parse("a int"))}, {"out": table})
    assert drawn("INSERT INTO out SELECT a FROM s", "q", catalog) == (
        "q = sql_write(s) into stored of sqlite:///x.db"
    )


def test_subqueries_before_and_after() -> None:
    inside = "INSERT INTO totals (home) WITH a AS (SELECT home FROM readings) SELECT home FROM a"
    before = "WITH a AS (SELECT home FROM readings) INSERT INTO totals (home) SELECT home FROM a"
    assert operators(inside) == operators(before)
    assert references(inside) == references(before) == {"readings"}


def test_errors() -> None:
    assert complaint("INSERT INTO total SELECT home FROM readings") == told("""
            INSERT INTO total SELECT home FROM readings
                        ^^^^^
        no database table total; there are limits, totals. Did you mean totals?
        """)
    assert complaint("INSERT INTO districts SELECT home FROM readings") == told("""
            INSERT INTO districts SELECT home FROM readings
                        ^^^^^^^^^
        districts is not a table of a database; there are limits, totals
        """)
    assert complaint("INSERT INTO totals SELECT home, kwh FROM readings") == told("""
            INSERT INTO totals SELECT home, kwh FROM readings
                        ^^^^^^
        nothing is given for n of totals. Select it too, or list what is given: INSERT INTO totals (home, kwh).
        """)
    assert complaint("INSERT INTO totals SELECT home, kwh, 5 AS m FROM readings") == told("""
            INSERT INTO totals SELECT home, kwh, 5 AS m FROM readings
                        ^^^^^^
        no column m in totals; it has home, kwh, n. Rename it with AS, or list the columns.
        """)
    assert complaint("INSERT INTO totals (home, nn) SELECT home, 5 FROM readings") == told("""
            INSERT INTO totals (home, nn) SELECT home, 5 FROM readings
                                      ^^
        no column nn in totals; it has home, kwh, n. Did you mean n?
        """)
    assert complaint("INSERT INTO totals (home, n) SELECT home, kwh FROM readings") == told("""
            INSERT INTO totals (home, n) SELECT home, kwh FROM readings
                                      ^
        kwh is a double, and n of totals a bigint. Write CAST(kwh AS bigint).
        """)
    assert complaint("INSERT INTO totals (home, n) SELECT home FROM readings") == told("""
            INSERT INTO totals (home, n) SELECT home FROM readings
                                ^^^^
        2 columns are listed and 1 selected. Select one for each.
        """)
    assert complaint("INSERT OVERWRITE totals SELECT home FROM readings") == told("""
            INSERT OVERWRITE totals SELECT home FROM readings
                   ^^^^^^^^^
        OVERWRITE is not supported in a query on a stream. Results are added; write INSERT INTO.
        """)
    assert complaint("INSERT INTO totals VALUES (1)") == told("""
            INSERT INTO totals VALUES (1)
                               ^^^^^^
        VALUES is not supported in a query on a stream. Begin with SELECT.
        """)
    assert complaint("INSERT INTO totals") == told("""
            INSERT INTO totals
                        ^^^^^^
        INSERT INTO without SELECT. Add SELECT … FROM …
        """)
