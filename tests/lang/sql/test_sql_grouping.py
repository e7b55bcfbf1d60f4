"""GROUP BY, HAVING, aggregates and windows: the graphs they give."""

from __future__ import annotations

import pytest
from sql_samples import drawn, operators, told

from penstock.model.operators import Aggregate
from penstock.model.windows import SessionWindow, Window

HEAVY_HOMES = """
    SELECT home, district, window.start AS since, sum(kwh) AS kwh
    FROM readings GROUP BY home, district, window(ts, '6 hours', '30 minutes')
    HAVING sum(kwh) > 9
"""


def test_the_graph_a_person_would_draw() -> None:
    assert drawn(HEAVY_HOMES, "heavy_homes") == told("""
        heavy_homes_aggregate = aggregate(readings)
            sum(`kwh`) AS kwh by home, district, 6 hours every 30 minutes
        heavy_homes_filter = filter(heavy_homes_aggregate) (`kwh` > 9)
        heavy_homes = map(heavy_homes_filter) home, district, `window_start` AS since, kwh
        """)


def test_event_time_is_the_first_known_time_that_is_kept() -> None:
    grouped = "count(*) AS n FROM readings GROUP BY window(ts, '1 hour')"
    both = operators(f"SELECT window.start AS a, window.end AS b, {grouped}")[-1]
    start = operators(f"SELECT window.start AS a, {grouped}")[-1]
    neither = operators(f"SELECT {grouped}")[-1]
    assert [one.output.event_time for one in (both, start, neither)] == ["b", "a", None]


def test_no_map_if_the_aggregate_gives_just_that() -> None:
    text = """
        SELECT home, window.start AS window_start, window.end AS window_end, max(kwh) AS top
        FROM readings WHERE kwh > 0 GROUP BY home, window(ts, '1 hour')
    """
    assert drawn(text) == told("""
        q_filter = filter(readings) (`kwh` > 0)
        q = aggregate(q_filter) max(`kwh`) AS top by home, every 1 hour
        """)


def test_aggregates_inside_expressions_are_computed_once() -> None:
    text = """
        SELECT sum(kwh) / count(*) AS mean, round(sum(kwh), 1) AS kwh, sum(kwh) + 1 AS more
        FROM readings GROUP BY window(ts, '1 hour') HAVING count(*) > 2
    """
    assert drawn(text) == told("""
        q_aggregate = aggregate(readings)
            sum(`kwh`) AS sum_kwh, count(*) AS count, every 1 hour
        q_filter = filter(q_aggregate) (`count` > 2)
        q = map(q_filter)
            (`sum_kwh` / `count`) AS mean, round(`sum_kwh`, 1) AS kwh, (`sum_kwh` + 1) AS more
        """)


@pytest.mark.parametrize(
    "group", ["upper(home)", "h", "1", "UPPER(readings.home)", "(upper(home))"]
)
def test_expressions_aliases_and_numbers_as_keys(group: str) -> None:
    text = (
        f"SELECT upper(home) AS h, count(*) AS n FROM readings GROUP BY {group}, window(ts, '1 h')"
    )
    (aggregate, last) = operators(text)
    assert isinstance(aggregate, Aggregate)
    names = [name for name, _ in aggregate.keys]
    assert len(names) == 1 and last.details == (
        f"{names[0]}, n" if names == ["h"] else f"`{names[0]}` AS h, n"
    )


def test_keys_may_be_used_inside_expressions() -> None:
    text = """
        SELECT concat(upper(home), '!') AS h, hour(window.end) AS at
        FROM readings GROUP BY upper(home), window(ts, '1 hour') HAVING upper(home) <> 'A'
    """
    assert drawn(text) == told("""
        q_aggregate = aggregate(readings) by upper_home, every 1 hour
        q_filter = filter(q_aggregate) (`upper_home` <> 'A')
        q = map(q_filter) concat(`upper_home`, '!') AS h, hour(`window_end`) AS at
        """)


def test_having_knows_the_names_of_the_select_list() -> None:
    text = """
        SELECT home, sum(kwh) AS kwh, count(*) + 1 AS n
        FROM readings GROUP BY home, window(ts, '1 hour') HAVING kwh > 3 AND n > 2 AND home > 'a'
    """
    assert operators(text)[1].details == (
        "(((`kwh` > 3) AND ((`count` + 1) > 2)) AND (`home` > 'a'))"
    )


@pytest.mark.parametrize(
    ("written", "window"),
    [
        ("window(ts, '1 hour')", Window.of(3_600_000_000)),
        ("window(ts, '60 min', '20 min')", Window.of(3_600_000_000, 1_200_000_000)),
        ("WINDOW(ts, INTERVAL 1 HOUR)", Window.of(3_600_000_000)),
        ("session_window(ts, '5 s')", SessionWindow(5_000_000)),
    ],
)
def test_windows(written: str, window: object) -> None:
    aggregate = operators(f"SELECT count(*) AS n FROM readings GROUP BY {written}")[0]
    assert isinstance(aggregate, Aggregate) and aggregate.window == window


def test_a_window_may_be_written_out_in_the_select_list() -> None:
    text = "SELECT window(ts, '1 h').start AS s FROM readings GROUP BY window(ts, '1 h')"
    assert operators(text)[-1].details == "`window_start` AS s"
    text = (
        "SELECT session_window.end, count(*) AS n FROM readings GROUP BY session_window(ts, '1 h')"
    )
    assert operators(text)[-1].details == "`window_end` AS end, n"


@pytest.mark.parametrize(
    ("written", "call"),
    [
        ("count(*)", "count(*)"),
        ("count(1)", "count(*)"),
        ("COUNT(home)", "count(`home`)"),
        ("mean(kwh)", "avg(`kwh`)"),
        ("std(kwh)", "stddev(`kwh`)"),
        ("max_by(home, kwh)", "max_by(`home`, `kwh`)"),
        ("count(*) FILTER (WHERE kwh > 3)", "count_if((`kwh` > 3))"),
        (
            "sum(kwh) FILTER (WHERE home = 'a')",
            "sum(CASE WHEN (`home` = 'a') THEN `kwh` ELSE NULL END)",
        ),
    ],
)
def test_aggregates(written: str, call: str) -> None:
    aggregate = operators(f"SELECT {written} AS x FROM readings GROUP BY window(ts, '1 h')")[0]
    assert aggregate.details == f"{call} AS x, every 1 hour"


def test_grouping_the_result_of_grouping() -> None:
    text = """
        SELECT max(n) AS n, window.start AS day
        FROM (SELECT home, count(*) AS n, window.end AS at FROM readings
              GROUP BY home, window(ts, '1 hour')) AS hourly
        GROUP BY window(at, '1 day')
    """
    assert drawn(text) == told("""
        q_hourly_aggregate = aggregate(readings) count(*) AS n by home, every 1 hour
        q_hourly = map(q_hourly_aggregate) home, n, `window_end` AS at
        q_aggregate = aggregate(q_hourly) max(`n`) AS n, every 1 day
        q = map(q_aggregate) n, `window_start` AS day
        """)


def test_a_later_known_time_can_be_windowed_over() -> None:
    text = """
        SELECT count(*) AS n FROM (
          SELECT a.ts AS first, b.ts AS second FROM readings a JOIN readings b
          ON a.home = b.home AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 HOUR) AS pairs
        GROUP BY window(first, '1 hour')
    """
    join, narrowed = operators(text)[2:4]
    assert join.output.event_time == "right_ts"
    assert narrowed.details == "`ts` AS first" and narrowed.output.event_time == "first"


def test_aggregates_that_are_called_like_window_columns() -> None:
    text = """
        SELECT home AS a, count(*) AS window_end FROM readings
        GROUP BY home, window(ts, '1 hour')
    """
    assert operators(text)[-1].details == "a, `count` AS window_end"
