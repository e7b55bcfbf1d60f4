"""Sessions by both engines: every kind of key, every aggregate, the same digits however cut."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.feeds.arrow import arrow_schema
from penstock.kernels.engine_choice import choose_engine
from penstock.model.engines import ENGINES
from penstock.model.schema import Schema
from penstock.place.fuse import fuse

from answers.oracle import Oracle, check_same, deployed, run

SCHEMA = Schema.parse("ts timestamp, k string, t string, v bigint, y double, u bigint")
STREAM = f"""
streams:
  rows: {{source: {{replay: rows.json}}, schema: "{SCHEMA}", event_time: ts, lateness: 4s}}
queries:
"""
# What is grouped by, and how it is shown: NaN equals nothing, not even itself.
KEYS = {
    "nothing": {},
    "text": {"k": "k"},
    "double": {"x": "CASE WHEN x > 1e308 THEN 1e308 ELSE x END"},
    "boolean": {"b": "b"},
    "time": {"date_trunc('minute', ts)": "date_trunc('minute', ts)"},
    "pair": {"k": "k", "x": "CASE WHEN x > 1e308 THEN 1e308 ELSE x END"},
}
# Each aggregate, and how DuckDB writes it if not alike. No two rows have the same u.
AGGREGATES = {
    "count(*)": "",
    "count(v)": "",
    "count_if(v > 2)": "count(*) FILTER (v > 2)",
    "sum(v)": "",
    "sum(y)": "",
    "avg(v)": "",
    "avg(y)": "",
    "min(y)": "",
    "max(k)": "",
    "min_by(v, u)": "arg_min_null(v, u)",
    "max_by(k, u)": "arg_max_null(k, u)",
    "stddev(y)": "",
    "variance(v)": "",
}
ROWS = "SELECT ts, k, v, y, u, CAST(t AS double) AS x, t = '0.0' AS b FROM rows"


def penstock_query(keys: dict[str, str]) -> str:
    items = ["session_window.start AS since", "session_window.end AS until", *keys.values()]
    items += AGGREGATES
    named = [items[0], items[1], *(f"{item} AS c{at}" for at, item in enumerate(items[2:]))]
    groups = ", ".join([*keys, "session_window(ts, '3 seconds')"])
    return f"WITH s AS ({ROWS}) SELECT {', '.join(named)} FROM s GROUP BY {groups}"


def duck_query(keys: dict[str, str]) -> str:
    by = "PARTITION BY " + ", ".join(keys) if keys else ""
    near = f"ts - lag(ts) OVER ({by} ORDER BY ts) <= INTERVAL 3 SECOND"
    marked = f"SELECT *, CASE WHEN {near} THEN 0 ELSE 1 END AS first FROM ({ROWS})"
    numbered = f"SELECT *, sum(first) OVER ({by} ORDER BY ts) AS number FROM ({marked})"
    items = ["min(ts)", "max(ts) + INTERVAL 3 SECOND", *keys.values()]
    items += [theirs or ours for ours, theirs in AGGREGATES.items()]
    groups = ", ".join([*keys, "number"])
    return f"SELECT {', '.join(items)} FROM ({numbered}) GROUP BY {groups}"


def random_rows(random: Random, count: int) -> pa.Table:
    """Rows that wander back and forth within the lateness, and now and then beyond it."""
    now, rows = datetime(1969, 12, 31, 23, 58, tzinfo=UTC), []
    for at in range(count):
        now += timedelta(seconds=random.choice((0, 0.25, 0.5, 1, 3, 3.000001, 9)))
        late = timedelta(seconds=random.choice((0, 0, 0, 1, 3.5, 4, 7)))
        rows.append(
            {
                "ts": now - late,
                "k": random.choice(("a", "é", "", None)),
                "t": random.choice(("NaN", "0.0", "-0.0", "1.5", None)),
                "v": random.choice((None, 0, 1, 2, 3, 100)),
                "y": random.choice((None, random.random() * 10 ** random.randrange(-9, 9))),
                "u": at,
            }
        )
    return pa.Table.from_pylist(rows, arrow_schema(SCHEMA))


@pytest.fixture
def oracle(tmp_path: Path) -> Oracle:
    rows = random_rows(Random(3), 240)
    lines = (json.dumps(row, default=datetime.isoformat) for row in rows.to_pylist())
    (tmp_path / "rows.json").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    made = Oracle()
    made.arrivals("rows", rows, "ts", 4_000_000)
    assert made.late["rows"] > 0
    return made


def test_both_engines_give_what_duckdb_gives(
    session: SparkSession, oracle: Oracle, tmp_path: Path
) -> None:
    asked = {f"{name}_{engine}": keys for name, keys in KEYS.items() for engine in ENGINES}
    lines = (
        f'  {name}: {{sql: "{penstock_query(keys)}", engine: {name.rpartition("_")[2]}}}\n'
        for name, keys in asked.items()
    )
    network = deployed(STREAM + "".join(lines), tmp_path)
    for fragment in fuse(network):
        assert choose_engine(network, fragment).engine == fragment.name.rpartition("_")[2]
    outcome = run(session, network, tmp_path / "state", max_rows_per_batch=80)
    assert outcome.late("rows") == oracle.late["rows"]
    for name, keys in asked.items():
        check_same(outcome.rows(name), oracle.rows(duck_query(keys)), name)


def test_sums_of_doubles_have_the_same_digits_however_batches_are_cut(
    session: SparkSession, oracle: Oracle, tmp_path: Path
) -> None:
    network = deployed(f'{STREAM}  sessions: "{penstock_query(KEYS["text"])}"\n', tmp_path)
    given = []
    for rows_at_once in (7, 240):
        folder = tmp_path / f"by_{rows_at_once}"
        outcome = run(session, network, folder, max_rows_per_batch=rows_at_once)
        given.append(sorted(map(repr, outcome.tables["sessions"].to_pylist())))
    assert given[0] == given[1]
    assert len(given[0]) == len(oracle.rows(duck_query(KEYS["text"])))
