"""Time at its edges: rows at the watermark itself, streams that fall silent."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.feeds.arrow import arrow_schema
from penstock.model.schema import Schema
from penstock.spark.engine import Engine
from penstock.spark.node import NodeOptions
from penstock.spark.state import StateFolder
from waiting import until

from answers.oracle import Oracle, check_answers, check_same, collected, deployed, rows_of, run

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
  by_window: |
    SELECT window.start AS since, count(*) AS n, max_by(v, ts) AS last, min_by(v, ts) AS first
    FROM rows WHERE k <> 'y' GROUP BY window(ts, '5 seconds')
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
    "sessions": """
        SELECT k, min(ts), max(ts) + INTERVAL 5 SECOND, count(*) FROM (
          SELECT *, sum(CASE WHEN gap <= INTERVAL 5 SECOND THEN 0 ELSE 1 END) OVER
            (PARTITION BY k ORDER BY ts) AS session
          FROM (SELECT *, ts - lag(ts) OVER (PARTITION BY k ORDER BY ts) AS gap FROM rows))
        GROUP BY k, session
        """,
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
    rows = [
        {"ts": NOON + timedelta(seconds=at), "k": k, "v": v}
        for v, (at, k) in enumerate(arrivals, first)
    ]
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
"""


def test_an_idle_stream_closes_its_windows(session: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    network = deployed(IDLE, tmp_path)
    engine = Engine(session, network, StateFolder(tmp_path / "state"), NodeOptions(100))
    try:
        engine.start()
        write_rows([(1, "a"), (3, "a"), (3.5, "a")], tmp_path / "in" / "1.json")
        until(lambda: count(engine) == 2, 120, engine.status, engine.check)
        # Time has moved on without rows: what comes now from before is late, the rest is not.
        later = [(3, "a"), (600, "a"), (601, "a")]
        write_rows(later, tmp_path / "in" / "2.json")
        until(lambda: count(engine) == 3, 120, engine.status, engine.check)
    finally:
        engine.stop()
    noon = NOON.replace(tzinfo=None)
    expected = [("a", noon + timedelta(seconds=at), n) for at, n in ((0, 1), (2, 2), (600, 2))]
    check_same(rows_of(collected(engine)["counts"]), expected, "counts")
    assert engine.set_aside()["rows"]["late"] == 1


def count(engine: Engine) -> int:
    tables = collected(engine)
    return int(tables["counts"].num_rows) if "counts" in tables else 0
