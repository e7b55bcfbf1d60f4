"""Time at its edges: rows at the watermark itself, streams that fall silent."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.feeds.arrow import arrow_schema
from penstock.lang.deployment import parse_deployment
from penstock.model.schema import Schema
from penstock.spark.engine import Engine
from penstock.spark.node import NodeOptions
from penstock.spark.state import StateFolder
from waiting import until

from answers.oracle import (
    Oracle,
    check_answers,
    check_same,
    collected,
    deployed,
    in_memory,
    rows_of,
    run,
)

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
SCHEMA = Schema.parse("ts timestamp, k string, v bigint")

EDGES = f"""
streams:
  rows: {{source: {{replay: rows.json}}, schema: "{SCHEMA}", event_time: ts, lateness: 5s}}
queries:
  paired: |
    SELECT a.ts, a.v, b.v AS other FROM rows a JOIN rows b
      ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 2 SECONDS
  perhaps_paired: |
    SELECT a.ts, a.v, b.v AS other FROM rows a LEFT JOIN rows b
      ON a.k = b.k AND b.ts > a.ts AND b.ts <= a.ts + INTERVAL 2 SECONDS
  sessions: |
    SELECT k, session_window.start AS since, session_window.end AS until, count(*) AS n
    FROM rows GROUP BY k, session_window(ts, '5 seconds')
  native_sessions:
    sql: |
      SELECT k, session_window.start AS since, session_window.end AS until, count(*) AS n
      FROM rows GROUP BY k, session_window(ts, '5 seconds')
    engine: native
  by_window: |
    SELECT window.start AS since, count(*) AS n, max_by(v, ts) AS last, min_by(v, ts) AS first
    FROM rows WHERE k <> 'y' GROUP BY window(ts, '5 seconds')
"""
SESSIONS = """
    SELECT k, min(ts), max(ts) + INTERVAL 5 SECOND, count(*) FROM (
      SELECT *, sum(CASE WHEN gap <= INTERVAL 5 SECOND THEN 0 ELSE 1 END) OVER
        (PARTITION BY k ORDER BY ts) AS session
      FROM (SELECT *, ts - lag(ts) OVER (PARTITION BY k ORDER BY ts) AS gap FROM rows))
    GROUP BY k, session
    """
ANSWERS = {
    "paired": """
        SELECT a.ts, a.v, b.v FROM rows a, rows b
        WHERE a.k = b.k AND epoch_us(b.ts) - epoch_us(a.ts) BETWEEN 0 AND 2000000
        """,
    "perhaps_paired": """
        SELECT a.ts, a.v, b.v FROM rows a LEFT JOIN rows b
          ON a.k = b.k AND epoch_us(b.ts) - epoch_us(a.ts) BETWEEN 1 AND 2000000
        """,
    "sessions": SESSIONS,
    "native_sessions": SESSIONS,
    "by_window": """
        SELECT time_bucket(INTERVAL 5 SECOND, ts), count(*), arg_max(v, ts), arg_min(v, ts)
        FROM rows WHERE k <> 'y' GROUP BY 1
        """,
}
# Seconds after noon and a key, in the order of arrival. After the first 15 the watermark is 10,
# and stays there for some batches; then comes a row at 10, and one just before that is late.
ARRIVALS = [
    *[(5, "x"), (8, "x"), (9.5, "w"), (15, "y"), (15, "y"), (15, "y"), (10, "x"), (10.5, "w")],
    *[
        (9.999999, "x"),
        (20, "y"),
        (20, "y"),
        (20, "y"),
        (15, "x"),
        (20.5, "z"),
        (40, "y"),
        (36, "x"),
    ],
]


def write_rows(arrivals: list[tuple[float, str]], path: Path, first: int = 0) -> pa.Table:
    return write_moments([(NOON + timedelta(seconds=at), k) for at, k in arrivals], path, first)


def write_moments(arrivals: list[tuple[datetime, str]], path: Path, first: int = 0) -> pa.Table:
    rows = [{"ts": ts, "k": k, "v": v} for v, (ts, k) in enumerate(arrivals, first)]
    lines = "".join(json.dumps(row, default=datetime.isoformat) + "\n" for row in rows)
    path.write_text(lines, encoding="utf-8")
    return pa.Table.from_pylist(rows, arrow_schema(SCHEMA))


def test_rows_at_the_watermark_count(session: SparkSession, tmp_path: Path) -> None:
    """Every row is a batch of its own, so that what has been closed is really gone."""
    oracle = Oracle()
    oracle.arrivals("rows", write_rows(ARRIVALS, tmp_path / "rows.json"), "ts", 5_000_000)
    assert oracle.late["rows"] == 1
    network = deployed(EDGES, tmp_path)
    outcome = run(session, network, tmp_path / "state", max_rows_per_batch=1)
    assert outcome.late("rows") == 1
    assert min(outcome.batches.values()) >= len(ARRIVALS) - 1
    check_answers(outcome, oracle, ANSWERS)


BOUNDS = f"""
streams:
  rows: {{source: {{replay: rows.json}}, schema: "{SCHEMA}", event_time: ts, lateness: 1h}}
queries:
  sessions: |
    SELECT k, session_window.start AS since, session_window.end AS until, count(*) AS n
    FROM rows GROUP BY k, session_window(ts, '5 seconds')
  native_sessions:
    sql: |
      SELECT k, session_window.start AS since, session_window.end AS until, count(*) AS n
      FROM rows GROUP BY k, session_window(ts, '5 seconds')
    engine: native
  windows: |
    SELECT window.start AS since, count(*) AS n FROM rows GROUP BY window(ts, '5 seconds')
"""


def test_a_session_goes_on_with_a_row_at_its_end(session: SparkSession, tmp_path: Path) -> None:
    """As the manual says: a row exactly the gap after the last belongs to it, a later one not."""
    write_rows([(0, "x"), (5, "x"), (10.000001, "x")], tmp_path / "rows.json")
    outcome = run(session, deployed(BOUNDS, tmp_path), tmp_path / "state", max_rows_per_batch=1)
    noon = NOON.replace(tzinfo=None)

    def after(seconds: float) -> datetime:
        return noon + timedelta(seconds=seconds)

    sessions = [("x", after(0), after(10), 2), ("x", after(10.000001), after(15.000001), 1)]
    for query in ("sessions", "native_sessions"):
        check_same(outcome.rows(query), sessions, query)
    check_same(outcome.rows("windows"), [(after(0), 1), (after(5), 1), (after(10), 1)], "windows")


# Moments across the calendar, and seconds after each: at 1970 and before it, at the ends of what
# Python can hold, centuries apart, on the ends of windows and a microsecond beside them.
AGES = (
    "0001-01-01T00:00:00",
    "1600-02-29T23:59:50",
    "1969-12-31T23:59:50",
    "1970-01-01T00:00:10",
    "2026-05-01T12:00:00",
    "9999-12-31T23:59:40",
)
SECONDS = (0, 0.000001, 1.5, 4.999999, 5, 9.999999, 10, 3.25, 12, 19.999999, 14.5)


def test_all_times_of_the_calendar_count(session: SparkSession, tmp_path: Path) -> None:
    """Gaps of centuries make no windows of their own."""
    arrivals = [
        (datetime.fromisoformat(f"{age}Z") + timedelta(seconds=seconds), "xyz"[at % 3])
        for age in AGES
        for at, seconds in enumerate(SECONDS)
    ]
    oracle = Oracle()
    oracle.arrivals("rows", write_moments(arrivals, tmp_path / "rows.json"), "ts", 5_000_000)
    assert oracle.late["rows"] == 2 * len(AGES)
    outcome = run(session, deployed(EDGES, tmp_path), tmp_path / "state", max_rows_per_batch=7)
    assert outcome.late("rows") == oracle.late["rows"]
    check_answers(outcome, oracle, ANSWERS)


IDLE = f"""
streams:
  rows:
    source: {{directory: in, format: json, pattern: "*.json"}}
    schema: "{SCHEMA}"
    event_time: ts
    lateness: 1s
    idle_timeout: 500ms
queries:
  counts:
    sql: SELECT k, window.start AS since, count(*) AS n FROM rows GROUP BY k, window(ts, '2 seconds')
    to: memory
  visits:
    sql: |
      SELECT k, session_window.start AS since, count(*) AS n
      FROM rows GROUP BY k, session_window(ts, '1 second')
    to: memory
"""


def test_an_idle_stream_closes_its_windows(session: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    network = deployed(IDLE, tmp_path)
    engine = Engine(session, network, StateFolder(tmp_path / "state"), NodeOptions(100))
    try:
        engine.start()
        write_rows([(1, "a"), (3, "a"), (3.5, "a")], tmp_path / "in" / "1.json")
        until(lambda: counts(engine) == [2, 2], 120, engine.status, engine.check)
        # Time has moved on without rows: what comes now from before is late, the rest is not.
        later = [(3, "a"), (600, "a"), (601, "a")]
        write_rows(later, tmp_path / "in" / "2.json")
        until(lambda: counts(engine) == [3, 3], 120, engine.status, engine.check)
    finally:
        engine.stop()
    noon = NOON.replace(tzinfo=None)
    expected = [("a", noon + timedelta(seconds=at), n) for at, n in ((0, 1), (2, 2), (600, 2))]
    check_same(rows_of(collected(engine)["counts"]), expected, "counts")
    expected = [("a", noon + timedelta(seconds=at), n) for at, n in ((1, 1), (3, 2), (600, 2))]
    check_same(rows_of(collected(engine)["visits"]), expected, "visits")
    assert engine.set_aside()["rows"]["late"] == 1


def counts(engine: Engine) -> list[int]:
    """How many windows and sessions have ended."""
    tables = collected(engine)
    return [tables[name].num_rows if name in tables else 0 for name in ("counts", "visits")]


ENDS = f"""
streams:
  rows: {{source: {{replay: rows.json}}, schema: "{SCHEMA}", event_time: ts, lateness: 5s}}
queries:
  computed: |
    SELECT v, ts + INTERVAL 1 DAY AS after, ts - INTERVAL 1 DAY AS before,
      timestamp_seconds(v * 1e300) AS endless, CAST('12026-01-01' AS timestamp) AS far,
      CAST(CAST('-0026-01-01' AS timestamp) AS date) AS ancient, CAST(v AS timestamp) AS near
    FROM rows
  latest: |
    SELECT window.end AS until, max(ts + INTERVAL 1 DAY) AS after
    FROM rows GROUP BY window(ts, '1 minute')
  windows: {{to: {{files: csv, format: csv}}, sql: "{{ends}}"}}
  again: {{to: {{files: json, format: json}}, sql: "{{ends}}"}}
  stored: {{to: {{table: ends, database: "sqlite:///ends.db"}}, sql: "{{ends}}"}}
"""
WINDOW_ENDS = """
SELECT window.end AS until, min(ts) AS first, count(*) AS n FROM rows GROUP BY window(ts, '1 minute')
"""


def test_times_at_the_ends_of_the_calendar_reach_every_sink(
    session: SparkSession, tmp_path: Path
) -> None:
    ends = ("0001-01-01T00:00:00.000001Z", "1969-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.5Z")
    moments = [datetime.fromisoformat(end) for end in ends]
    write_moments([(moment, "a") for moment in moments], tmp_path / "rows.json")
    text = ENDS.replace("{ends}", " ".join(WINDOW_ENDS.split()))
    network = parse_deployment(text, "ends.yaml", tmp_path).network
    kept = {query.name: query for query in in_memory(network).queries}
    mixed = [
        kept[query.name] if query.name in ("computed", "latest") else query
        for query in network.queries
    ]
    outcome = run(session, replace(network, queries=tuple(mixed)), tmp_path / "state")
    day, v = timedelta(days=1), [datetime(1970, 1, 1) + timedelta(seconds=one) for one in range(3)]
    plain = [moment.replace(tzinfo=None) for moment in moments]
    nothing = (None, None)
    expected = [
        (0, plain[0] + day, None, v[0], *nothing, v[0]),
        (1, plain[1] + day, plain[1] - day, *nothing, None, v[1]),
        (2, None, plain[2] - day, *nothing, None, v[2]),
    ]
    check_same(outcome.rows("computed"), expected, "computed")
    year_10000_us = 253_402_300_800_000_000
    latest = [
        (datetime(1, 1, 1, 0, 1), plain[0] + day),
        (datetime(1970, 1, 1), plain[1] + day),
        (year_10000_us, None),
    ]
    check_same(outcome.rows("latest"), latest, "latest")
    lines = [
        line
        for path in (tmp_path / "csv").glob("*/*.csv")
        for line in path.read_text().splitlines()
        if not line.startswith("until")
    ]
    assert sorted(lines) == [
        "+10000-01-01T00:00:00.000000Z,9999-12-31T23:59:59.500000Z,1",
        "0001-01-01T00:01:00.000000Z,0001-01-01T00:00:00.000001Z,1",
        "1970-01-01T00:00:00.000000Z,1969-12-31T23:59:59.999999Z,1",
    ]
    records = [
        json.loads(line)
        for path in (tmp_path / "json").glob("*/*.json")
        for line in path.read_text().splitlines()
    ]
    assert sorted(
        f"{record['until']},{record['first']},{record['n']}" for record in records
    ) == sorted(lines)
    with sqlite3.connect(tmp_path / "ends.db") as database:
        stored = database.execute("SELECT until, first, n FROM ends ORDER BY first").fetchall()
    assert stored == [
        ("0001-01-01 00:01:00.000000", "0001-01-01 00:00:00.000001", 1),
        ("1970-01-01 00:00:00.000000", "1969-12-31 23:59:59.999999", 1),
        (None, "9999-12-31 23:59:59.500000", 1),
    ]
    database.close()
