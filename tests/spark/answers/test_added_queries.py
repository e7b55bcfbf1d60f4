"""Queries added to a deployment that has run: all their rows, as if they had been there."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from penstock.model.network import Network
from penstock.place.growing import grown
from penstock.spark.engine import Engine
from penstock.spark.generations import generations, remember
from penstock.spark.node import NodeOptions
from penstock.spark.sinks.memory_sink import CollectedSink
from penstock.spark.state import StateFolder
from waiting import until

from answers.oracle import Oracle, check_same, collected, deployed, run, small_pieces
from answers.random_pipelines import Pipeline
from answers.random_queries import duck_query, penstock_query
from answers.test_late_starts import LATENESS_US, SCHEMA, arriving
from answers.test_random_pipelines import (
    DEPLOYMENT,
    query_text,
    random_streams,
    telling,
    write_json,
)
from answers.test_random_pipelines import SCHEMA as RANDOM_SCHEMA

FIRST = """
streams:
  a: {source: {replay: a.json}, schema: "SCHEMA", event_time: ts, lateness: 4s}
queries:
  tens: |
    SELECT window.end AS until, k, sum(v) AS v FROM a GROUP BY k, window(ts, '10 seconds')
"""
ADDED = """
  halves: SELECT window.start AS since, count(*) AS n FROM a GROUP BY window(ts, '30 seconds')
  over_tens: |
    SELECT window.start AS since, sum(v) AS v FROM tens GROUP BY window(until, '40 seconds')
"""
ANSWERS = {
    "halves": """
        SELECT time_bucket(INTERVAL 30 SECONDS, ts) AS s, count(*) FROM a GROUP BY 1
        """,
    "over_tens": """
        SELECT time_bucket(INTERVAL 40 SECONDS, until, TIMESTAMP '1970-01-01') AS s, sum(v) FROM (
          SELECT time_bucket(INTERVAL 10 SECONDS, ts) + INTERVAL 10 SECONDS AS until, v FROM a)
        GROUP BY 1
        """,
}


def with_history(network: Network, state: Path) -> Network:
    """The network as a run on this state has it."""
    state.mkdir(exist_ok=True)
    known = generations(state, [query.name for query in network.queries])
    remember(state, known)
    return grown(network, known)


def test_to_one_that_has_finished(session: SparkSession, tmp_path: Path) -> None:
    rows, state = arriving(), tmp_path / "state"
    write_json(rows, tmp_path / "a.json")
    oracle = Oracle()
    oracle.arrivals("a", rows, "ts", LATENESS_US)
    text = FIRST.replace("SCHEMA", str(SCHEMA))
    first = with_history(deployed(text, tmp_path), state)
    assert run(session, first, state, max_rows_per_batch=50).rows("tens")
    second = with_history(deployed(text + ADDED, tmp_path), state)
    outcome = run(session, second, state, max_rows_per_batch=50)
    for query, sql in ANSWERS.items():
        check_same(outcome.rows(query), oracle.rows(sql), query)
    # What has finished before gives nothing twice, and once all is out nothing comes again.
    assert not outcome.tables.get("tens")
    third = with_history(deployed(text + ADDED, tmp_path), state)
    assert third == second
    assert not run(session, third, state).tables


def cut_short(session: SparkSession, network: Network, state: Path) -> dict[str, CollectedSink]:
    """Runs a deployment until something has come out of it, and stops it."""
    with small_pieces(15):
        engine = Engine(session, network, StateFolder(state), NodeOptions(20, 30))
        try:
            engine.start()
            until(lambda: len(collected(engine)) > 0, 120, "a first batch", engine.check)
        finally:
            engine.stop()
    return engine.collected


@pytest.mark.parametrize("seed", [11])
def test_random_pipelines_added_to_one_that_was_stopped(
    seed: int, session: SparkSession, tmp_path: Path
) -> None:
    random, state = Random(seed), tmp_path / "state"
    oracle = random_streams(random, tmp_path)
    made: dict[str, Pipeline] = {f"q{at}": telling(random, oracle) for at in range(5)}
    texts = [query_text(name, penstock_query(one)) for name, one in made.items()]
    streams = DEPLOYMENT.format(schema=RANDOM_SCHEMA)
    first = with_history(deployed(streams + "".join(texts[:2]), tmp_path), state)
    before = cut_short(session, first, state)
    second = with_history(deployed(streams + "".join(texts), tmp_path), state)
    outcome = run(session, second, state, max_rows_per_batch=30, before=before)
    for name, one in made.items():
        given = outcome.rows(name) if name in outcome.tables else []
        check_same(given, oracle.rows(duck_query(one)), f"seed {seed}, {name}: {one}")
