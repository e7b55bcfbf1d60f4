"""Streams with an event time of their own: late is late by that, however rows are cut."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from penstock.errors import InputError
from penstock.lang.deployment import parse_deployment
from penstock.spark.engine import Engine
from penstock.spark.node import NodeOptions
from penstock.spark.sources import channel_reader
from penstock.spark.state import StateFolder

from answers.late_starts import LateStarts
from answers.oracle import Oracle, check_same, deployed, rows_of, run, small_pieces
from answers.test_random_pipelines import write_json

LATENESS_US = 3_000_000
START = datetime(2026, 1, 1, tzinfo=UTC)
STREAMS = """
streams:
  raw: {source: {replay: raw.json}, schema: "ms bigint, k string, v bigint"}
  clean:
    sql: SELECT k, v, CASE WHEN ms > 0 THEN timestamp_millis(ms) END AS moment FROM raw WHERE v <> 7
    event_time: moment
    lateness: 3s
  swapped:
    from: raw
    python: "own_times_functions:with_time"
    schema: "v bigint, moment timestamp, k string"
    event_time: moment + INTERVAL 1 HOUR AS later
    lateness: 3s
"""
FUNCTIONS = """
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.compute as pc

def with_time(batch):
    positive = pc.if_else(pc.greater(batch["ms"], 0), batch["ms"], None)
    at = pc.cast(pc.multiply(positive, 1000), pa.timestamp("us", "UTC"))
    return pa.record_batch([batch["v"], at, batch["k"]], names=["v", "moment", "k"])
"""
QUERIES = """
queries:
  tens:
    sql: SELECT k, window.start AS s, count(*) AS n, sum(v) AS v FROM clean
         GROUP BY k, window(moment, '10 seconds')
    to: memory
  hours:
    sql: SELECT window.start AS s, count(*) AS n, sum(v) AS v FROM swapped
         GROUP BY window(later, '7 seconds')
    to: memory
  narrow: {from: clean, event_time: moment, lateness: 1s, to: memory}
  kept: {sql: "SELECT moment, k, v FROM clean", to: memory}
"""
ANSWERS = {
    "tens": "SELECT k, time_bucket(INTERVAL 10 SECONDS, moment), count(*), sum(v) FROM clean GROUP BY 1, 2",
    "hours": """
        SELECT make_timestamp(epoch_us(later) // 7000000 * 7000000), count(*), sum(v)
        FROM swapped GROUP BY 1""",
    "narrow": "SELECT k, v, moment FROM narrow",
    "kept": "SELECT moment, k, v FROM clean",
}


def arriving(count: int = 900) -> pa.Table:
    """Rows out of order by up to ten seconds, some without a time."""
    random = Random(4)
    start_ms = int(START.timestamp() * 1_000)
    times = [start_ms + at * 100 + random.randrange(-5_000, 5_000) for at in range(count)]
    return pa.table(
        {
            "ms": [-1 if at % 101 == 100 else ms for at, ms in enumerate(times)],
            "k": ["xyz"[at % 3] for at in range(count)],
            "v": [at % 11 for at in range(count)],
        }
    )


@pytest.fixture
def oracle(tmp_path: Path) -> Oracle:
    rows = arriving()
    write_json(rows, tmp_path / "raw.json")
    (tmp_path / "own_times_functions.py").write_text(FUNCTIONS)
    times = [
        None if ms < 0 else datetime(1970, 1, 1) + timedelta(milliseconds=ms)
        for ms in rows["ms"].to_pylist()
    ]
    timed = rows.append_column("moment", pa.array(times, pa.timestamp("us")))
    later = [None if time is None else time + timedelta(hours=1) for time in times]
    made = Oracle()
    kept = timed.filter(pa.array([v != 7 for v in rows["v"].to_pylist()]))
    made.arrivals("clean", kept, "moment", LATENESS_US)
    swapped = timed.append_column("later", pa.array(later, pa.timestamp("us")))
    made.arrivals("swapped", swapped, "later", LATENESS_US)
    clean = made.table("SELECT k, v, moment FROM clean ORDER BY arrival")
    made.arrivals("narrow", clean, "moment", 1_000_000)
    assert made.late["narrow"] > 50
    assert made.late["clean"] > 50 and made.untimed["clean"] > 3
    return made


def set_aside(oracle: Oracle) -> dict[str, dict[str, int]]:
    found = {"raw": {"malformed": 0, "late": 0}}
    for name in ("clean", "swapped", "narrow"):
        found[name] = {"malformed": 0, "late": oracle.late[name]}
        found[name] |= {"untimed": n} if (n := oracle.untimed[name]) else {}
    return found


@pytest.mark.parametrize("rows_at_once", [37, 5_000])
def test_as_duckdb_however_rows_are_cut(
    rows_at_once: int, session: SparkSession, oracle: Oracle, tmp_path: Path
) -> None:
    network = deployed(STREAMS + QUERIES, tmp_path)
    # Every file in a task of its own, as with large ones.
    with patch.object(channel_reader, "_SMALLEST_SPLIT", 1):
        outcome = run(session, network, tmp_path / "state", max_rows_per_batch=rows_at_once)
    for query, sql in ANSWERS.items():
        check_same(outcome.rows(query), oracle.rows(sql), query)
    assert outcome.set_aside == set_aside(oracle)


def test_stopped_and_gone_on(session: SparkSession, oracle: Oracle, tmp_path: Path) -> None:
    # In files every batch is there once; in memory one that is given again is there twice.
    queries = QUERIES.replace("to: memory", "to: {files: out}")
    network = parse_deployment(STREAMS + queries, "own.yaml", tmp_path).network
    state = StateFolder(tmp_path / "state")
    is_finished, lives = False, 0
    while not is_finished:
        with small_pieces(40):
            engine = Engine(session, network, state, NodeOptions(20, max_rows_per_batch=80))
            try:
                engine.start()
                is_finished = engine.wait(1.5 if lives < 2 else 240.0)
                engine.check()
            finally:
                engine.stop()
        lives += 1
    for query, sql in ANSWERS.items():
        written = [pq.read_table(path) for path in (tmp_path / "out").glob(f"batch={query}-*/*")]
        check_same(rows_of(pa.concat_tables(written)), oracle.rows(sql), query)
    assert engine.set_aside() == set_aside(oracle)


LATE = """
queries:
  late: SELECT k, window.start AS s, count(*) AS n, sum(v) AS v FROM clean
        GROUP BY k, window(moment, '10 seconds')
"""
AGAIN = """
streams:
  own: {from: raw, event_time: timestamp_millis(ms) AS moment, lateness: 3s}
queries:
  late: SELECT window.start AS s, count(*) AS n FROM own GROUP BY window(moment, '10 seconds')
"""


@pytest.fixture
def late(session: SparkSession, oracle: Oracle, tmp_path: Path) -> Iterator[LateStarts]:
    with LateStarts(session, tmp_path, rows_at_once=60) as made:
        made.run(made.submit(STREAMS + QUERIES.replace("    to: memory\n", "")))
        made.bring_in({"raw": 5})
        made.catch_up()
        yield made


def test_read_again_from_the_start(late: LateStarts, oracle: Oracle) -> None:
    added = late.submit(LATE, "start")
    assert {unit.name for unit in added} == {"raw.2", "clean_again_2", "late"}
    late.run(added)
    late.finish()
    check_same(rows_of(late.rows("late")), oracle.rows(ANSWERS["tens"]), "late")
    # What is late again was set aside once.
    assert late.state.dead_letters("clean").counts()["late"] == oracle.late["clean"]
    assert not late.state.dead_letters("clean_again_2").folder.exists()


def test_read_from_now_on(late: LateStarts, oracle: Oracle) -> None:
    late.run(late.submit(LATE))
    late.finish()
    since_us = late.begun["late"].since_us
    assert since_us is not None
    whole = f"SELECT * FROM ({ANSWERS['tens']}) t(k, s, n, v) WHERE epoch_us(s) > {since_us}"
    check_same(rows_of(late.rows("late")), oracle.rows(whole), "late")


def test_a_time_that_nobody_has_followed_begins_at_the_start(late: LateStarts) -> None:
    for start in ("now", "oldest"):
        with pytest.raises(InputError) as refused:
            late.submit(AGAIN, start)  # type: ignore[arg-type]
        assert str(refused.value) == (
            "own has an event time of its own, and how far that has come in raw is not known. "
            "Submit it with --from start."
        )
