"""JOIN: where conditions go, which columns are kept, what becomes the time bound."""

from __future__ import annotations

import pytest
from sql_samples import drawn, operators, told

from penstock.lang.sql import KnownNames
from penstock.model.operators import WindowJoin
from penstock.model.windows import TimeBound

HOUR = 3_600_000_000


def join_of(text: str) -> WindowJoin:
    return next(operator for operator in operators(text) if isinstance(operator, WindowJoin))


def test_suspicious_homes() -> None:
    heavy = operators(
        "SELECT home, district, window.start AS since, sum(kwh) AS kwh FROM readings "
        "GROUP BY home, district, window(ts, '6 hours', '30 minutes')"
    )
    load = operators(
        "SELECT district, window.end AS at, avg(kwh) AS kwh FROM readings "
        "GROUP BY district, window(ts, '1 hour')"
    )
    catalog = KnownNames({"heavy_homes": heavy[-1].output, "district_load": load[-1].output})
    text = """
        SELECT h.home, h.kwh, d.kwh AS district_kwh
        FROM heavy_homes h JOIN district_load d
          ON h.district = d.district AND d.at BETWEEN h.since AND h.since + INTERVAL 6 HOURS
        WHERE h.kwh > 20 * d.kwh
    """
    assert drawn(text, "suspicious", catalog) == told("""
        suspicious_map = map(district_load)
            `district` AS right_district, at, `kwh` AS right_kwh
        suspicious_join = join(heavy_homes, suspicious_map)
            inner on district = right_district, right in left +0 seconds .. +6 hours
        suspicious = map(suspicious_join) home, kwh, `right_kwh` AS district_kwh
        """)
    (join,) = (
        operator for operator in operators(text, "s", catalog) if isinstance(operator, WindowJoin)
    )
    assert str(join.condition).count("right_kwh") == 1


@pytest.mark.parametrize(
    ("condition", "lower", "upper"),
    [
        ("b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 HOUR", 0, HOUR),
        ("a.ts BETWEEN b.ts - INTERVAL 1 HOUR AND b.ts", 0, HOUR),
        ("b.ts >= a.ts AND b.ts <= a.ts + INTERVAL '1' HOUR", 0, HOUR),
        ("b.ts > a.ts AND b.ts < a.ts + INTERVAL '1 hour'", 1, HOUR - 1),
        ("a.ts < b.ts AND a.ts + INTERVAL 1 HOUR > b.ts", 1, HOUR - 1),
        ("b.ts - a.ts <= INTERVAL 1 HOUR AND a.ts - b.ts <= INTERVAL 30 MINUTES", -HOUR // 2, HOUR),
        ("b.ts - INTERVAL 1 HOUR <= a.ts AND INTERVAL 1 HOUR + b.ts >= a.ts", -HOUR, HOUR),
        ("a.ts = b.ts", 0, 0),
        ("b.ts = a.ts + INTERVAL 1 HOUR", HOUR, HOUR),
        ("b.ts BETWEEN a.ts - INTERVAL 2 HOURS AND a.ts + INTERVAL 2 HOURS AND b.ts >= a.ts "
         "AND b.ts <= a.ts + INTERVAL 1 HOUR", 0, HOUR),
        ("b.ts BETWEEN a.ts + INTERVAL '-1' HOUR AND a.ts - -INTERVAL 1 HOUR", -HOUR, HOUR),
    ],
)  # fmt: skip
def test_bounds(condition: str, lower: int, upper: int) -> None:
    text = f"SELECT a.home FROM readings a JOIN bids b ON a.home = b.url AND {condition}"
    join = join_of(text)
    assert join.bound == TimeBound(lower, upper)
    assert join.condition is None and join.equal == (("home", "url"),)


def test_bounds_and_keys_may_stand_in_where() -> None:
    on = "SELECT a.home, b.price FROM readings a JOIN bids b ON a.ts = b.ts AND a.home = b.url"
    where = "SELECT a.home, b.price FROM readings a, bids b WHERE a.ts = b.ts AND a.home = b.url"
    assert drawn(on) == drawn(where)


def test_inner_conditions_go_to_the_side_they_are_about() -> None:
    text = """
        SELECT a.home, b.home AS other FROM readings a JOIN readings b
          ON a.district = b.district AND b.kwh > 1
          AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 MINUTES
        WHERE a.kwh > 3 AND a.home < b.home AND b.kwh < 2
    """
    assert drawn(text) == told("""
        q_filter = filter(readings) (`kwh` > 3)
        q_map = map(q_filter) ts, home, district
        q_filter_2 = filter(readings) ((`kwh` > 1) AND (`kwh` < 2))
        q_map_2 = map(q_filter_2)
            `ts` AS right_ts, `home` AS right_home, `district` AS right_district
        q_join = join(q_map, q_map_2)
            inner on district = right_district, right in left +0 seconds .. +5 minutes
        q = map(q_join) home, `right_home` AS other
        """)
    assert "right_home" in str(join_of(text).condition)


def test_left_join_keeps_its_conditions() -> None:
    text = """
        SELECT a.home, b.home AS other FROM readings a LEFT OUTER JOIN readings b
          ON a.home = b.home AND a.ts = b.ts AND b.kwh > 1 AND a.kwh > 5 AND a.kwh > b.kwh
        WHERE a.district = 'x' AND b.home IS NULL
    """
    assert drawn(text) == told("""
        q_filter = filter(readings) (`district` = 'x')
        q_map = map(q_filter) ts, home, kwh
        q_filter_2 = filter(readings) (`kwh` > 1)
        q_map_2 = map(q_filter_2) `ts` AS right_ts, `home` AS right_home, `kwh` AS right_kwh
        q_join = join(q_map, q_map_2)
            left on home = right_home, right in left +0 seconds .. +0 seconds
        q_filter_3 = filter(q_join) (`right_home` IS NULL)
        q = map(q_filter_3) home, `right_home` AS other
        """)
    condition = str(join_of(text).condition)
    assert "Literal(value=5)" in condition and "right_kwh" in condition


def test_expressions_may_be_compared() -> None:
    text = """
        SELECT a.kwh, b.price FROM readings a JOIN bids b
          ON upper(a.home) = b.url AND lower(b.channel) = a.district AND a.ts = b.ts
    """
    assert drawn(text) == told("""
        q_map = map(readings) ts, district, kwh, upper(`home`) AS key
        q_map_2 = map(bids) price, url, `ts` AS right_ts, lower(`channel`) AS right_key
        q_join = join(q_map, q_map_2)
            inner on key = url, district = right_key, right in left +0 seconds .. +0 seconds
        q = map(q_join) kwh, price
        """)


def test_other_times_are_ordinary_columns() -> None:
    text = """
        SELECT p.n, a.n AS m
        FROM (SELECT count(*) AS n, window.start AS s, window.end AS e FROM persons
              GROUP BY window(ts, '10 s')) p
        JOIN (SELECT count(*) AS n, window.start AS s, window.end AS e FROM auctions
              GROUP BY window(ts, '10 s')) a
          ON p.s = a.s AND p.e = a.e
    """
    join = join_of(text)
    assert join.equal == (("s", "right_s"),) and join.bound == TimeBound(0, 0)


def test_three_streams_may_all_be_bound_to_the_first() -> None:
    text = """
        SELECT a.home, c.url
        FROM readings a
        JOIN readings b ON a.home = b.home AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 HOUR
        JOIN bids c ON c.url = a.home AND c.ts BETWEEN a.ts AND a.ts + INTERVAL 2 HOURS
    """
    first, second = [operator for operator in operators(text) if isinstance(operator, WindowJoin)]
    assert first.output.event_time == "right_ts"  # b's, so a is up to an hour before it
    assert second.bound == TimeBound(-HOUR, 2 * HOUR)
    assert second.condition is not None and "right_ts_2" in str(second.condition)


def test_a_shared_subquery_is_joined_with_itself() -> None:
    text = """
        WITH large AS (SELECT * FROM readings WHERE kwh > 3)
        SELECT x.home, y.kwh FROM large x JOIN large y ON x.ts = y.ts AND x.home = y.home
    """
    assert drawn(text) == told("""
        q_large = filter(readings) (`kwh` > 3)
        q_map = map(q_large) ts, home
        q_map_2 = map(q_large) `ts` AS right_ts, `home` AS right_home, `kwh` AS right_kwh
        q_join = join(q_map, q_map_2)
            inner on home = right_home, right in left +0 seconds .. +0 seconds
        q = map(q_join) home, `right_kwh` AS kwh
        """)


def test_aliases_do_not_matter() -> None:
    text = "SELECT {0}.home, {1}.kwh FROM readings {0} JOIN readings {1} ON {0}.ts = {1}.ts"
    assert operators(text.format("a", "b")) == operators(text.format("left_one", "other"))


def test_tables_add_columns() -> None:
    text = """
        SELECT r.home, d.city, d.district AS same FROM readings r JOIN districts d
          ON r.district = d.district AND d.people > 5 WHERE r.kwh > 3
    """
    assert drawn(text) == told("""
        q_filter = filter(readings) (`kwh` > 3)
        q_table_join = table_join(q_filter)
            inner with districts on district = districts.district
        q_filter_2 = filter(q_table_join) (`people` > 5)
        q = map(q_filter_2) home, city, same
        """)
    join = operators(text)[1]
    assert dict(join.columns) == {  # type: ignore[attr-defined]
        "same": "district",
        "city": "city",
        "people": "people",
    }


def test_database_tables_are_looked_up() -> None:
    text = "SELECT r.home, l.top FROM readings r LEFT JOIN limits l ON lower(r.home) = l.home"
    assert drawn(text) == told("""
        q_map = map(readings) ts, home, lower(`home`) AS key
        q_sql_read = sql_read(q_map) left with limits on key = limits.home
        q = map(q_sql_read) home, top
        """)


def test_tables_and_streams_mix() -> None:
    text = """
        SELECT r.home, d.city, b.price FROM readings r
        JOIN districts d ON r.district = d.district
        JOIN bids b ON b.url = d.city AND b.ts = r.ts
    """
    assert [operator.kind for operator in operators(text)] == [
        "table_join",
        "map",
        "map",
        "join",
        "map",
    ]
