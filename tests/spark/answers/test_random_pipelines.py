"""Random pipelines over random streams give what DuckDB gives.

``PENSTOCK_EXAMPLES=200 pytest tests/spark/answers/test_random_pipelines.py`` tries 200 of them;
what fails is named by its seed and comes out the same when run again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.feeds.arrow import arrow_schema
from penstock.model.engines import EngineName
from penstock.model.schema import Schema

from answers.oracle import Oracle, check_same, deployed, run
from answers.random_pipelines import Pipeline, pipeline, session_pipeline
from answers.random_queries import duck_query, penstock_query

EXAMPLES = int(os.environ.get("PENSTOCK_EXAMPLES", "6"))
SEED = int(os.environ.get("PENSTOCK_SEED", "1"))
AT_ONCE = 6

# Where times begin, across the calendar: just before 1970, at a leap day and at ends of centuries.
# Windows after windows of the last ones still end in the year 9999.
AGES = [
    datetime.fromisoformat(one).replace(tzinfo=UTC)
    for one in (
        "1600-02-29T23:59:30",
        "1600-03-01T00:00:59.999",
        "1752-09-02T11:59:30",
        "1899-12-31T23:59:45",
        "1969-12-31T23:59:30",
        "1969-12-31T23:59:59.999999",
        "2026-03-01T11:59:30",
        "4000-02-28T23:59:59.5",
        "9999-12-31T23:40:30",
    )
]
AGES_AT_ONCE = 4
_BATCHES_AT_MOST = 60
SCHEMA = Schema.parse("ts timestamp, k string, g bigint, v bigint, x double")
LATENESS_S = {"a": 4, "b": 0, "e": 2}

DEPLOYMENT = """
streams:
  a: {{source: {{replay: a.json}}, schema: "{schema}", event_time: ts, lateness: 4s}}
  b: {{source: {{replay: b.json}}, schema: "{schema}", event_time: ts, lateness: 0s}}
  e: {{source: {{replay: e.json}}, schema: "{schema}", event_time: ts, lateness: 2s}}
tables:
  labels: {{file: labels.csv, schema: "key string, label string, weight bigint"}}
queries:
"""
LABELS = "key,label,weight\na,first,1\nb,second,\nb,again,5\nzz,nobody,7\n"


def random_rows(
    random: Random, count: int, disorder_s: float, ages: Sequence[datetime]
) -> pa.Table:
    """Rows about a second apart on a coarse grid, so that times coincide with one another, with
    the ends of windows and with the watermark; some off the grid, some without a time; and after
    some of them a gap of decades or centuries, up to the next age."""
    rows, now_ms, age = [], 0, ages[0]
    for at in range(count):
        if ages[at * len(ages) // count] != age:
            now_ms, age = 0, ages[at * len(ages) // count]
        now_ms += random.choice((0, 0, 250, 500, 1_000, 1_000, 3_000, 9_000))
        late_ms = random.choice((0, 0, 0, 250, 1_000, 4_000, int(disorder_s * 1_000)))
        moment = age + timedelta(milliseconds=now_ms - late_ms)
        moment += timedelta(microseconds=random.choice((0, 0, 0, 1, 999, 500_001)))
        rows.append(
            {
                "ts": None if random.random() < 0.02 else moment,
                "k": random.choice(("a", "a", "b", "bc", "é", "", None)),
                "g": random.choice((0, 1, 2, 3, None)),
                "v": random.choice((-7, 0, 1, 2, 5, 13, 100, None)),
                "x": random.choice((0.0, 0.25, -1.5, 8.75, 100.0, None)),
            }
        )
        if random.random() < 0.05:
            rows.append(rows[-1])
    return pa.Table.from_pylist(rows, arrow_schema(SCHEMA))


def write_json(rows: pa.Table, path: Path) -> None:
    lines = (json.dumps(row, default=datetime.isoformat) for row in rows.to_pylist())
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def telling(
    random: Random,
    oracle: Oracle,
    make: Callable[[Random, list[str]], Pipeline] = pipeline,
) -> Pipeline:
    """A pipeline with a result, or now and then one without."""
    while True:
        made = make(random, ["a", "a", "a", "b", "b", "e"])
        if random.random() < 0.1 or oracle.rows(duck_query(made)):
            return made


def query_text(name: str, sql: str, engine: EngineName | None = None) -> str:
    indented = sql.replace("\n", "\n      ")
    asked = f"    engine: {engine}\n" if engine else ""
    return f"  {name}:\n    sql: |\n      {indented}\n{asked}"


def random_streams(random: Random, folder: Path) -> Oracle:
    """Random streams and the table beside them in a folder, and an oracle that has them too."""
    oracle = Oracle()
    ages = sorted(random.sample(AGES, AGES_AT_ONCE))
    for name, count in (("a", 140), ("b", 100), ("e", 0)):
        rows = random_rows(random, count, disorder_s=11, ages=ages)
        write_json(rows, folder / f"{name}.json")
        oracle.arrivals(name, rows, "ts", LATENESS_S[name] * 1_000_000)
    (folder / "labels.csv").write_text(LABELS, encoding="utf-8")
    values = "('a', 'first', 1), ('b', 'second', NULL), ('b', 'again', 5), ('zz', 'nobody', 7)"
    oracle.execute(f"CREATE TABLE labels AS FROM (VALUES {values}) t(key, label, weight)")
    return oracle


@pytest.mark.parametrize("seed", range(SEED, SEED + -(-EXAMPLES // AT_ONCE)))
def test_random_pipelines(seed: int, session: SparkSession, tmp_path: Path) -> None:
    random = Random(seed)
    oracle = random_streams(random, tmp_path)
    made = {f"q{at}": telling(random, oracle) for at in range(AT_ONCE)}
    queries = "".join(query_text(name, penstock_query(one)) for name, one in made.items())
    # Sessions run both ways whatever the engine of the others is.
    sessions = telling(random, oracle, session_pipeline)
    queries += query_text("sessions", penstock_query(sessions))
    queries += query_text("native_sessions", penstock_query(sessions), "native")
    made |= {"sessions": sessions, "native_sessions": sessions}
    network = deployed(DEPLOYMENT.format(schema=SCHEMA) + queries, tmp_path)
    engine: EngineName | None = "native" if seed % 3 == 0 else None
    outcome = run(session, network, tmp_path / "state", max_rows_per_batch=30, chosen=engine)
    assert outcome.late("a") == oracle.late["a"] > 0
    assert outcome.set_aside["a"].get("untimed", 0) == oracle.untimed["a"]
    # Centuries without rows are no work.
    assert max(outcome.batches.values()) < _BATCHES_AT_MOST
    failures = []
    for name, one in made.items():
        sql, expected = penstock_query(one), duck_query(one)
        try:
            check_same(outcome.rows(name), oracle.rows(expected), name)
        except AssertionError as failure:
            failures.append(f"seed {seed}, {failure}\n{sql}\n--- DuckDB:\n{expected}")
    assert not failures, "\n\n".join(failures)
