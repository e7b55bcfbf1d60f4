"""Rows read are counted once: by a join with itself, across a move, without marks of time."""

from __future__ import annotations

from pathlib import Path

import pytest
from one_fragment import Place, await_that, with_small_batches
from pyspark.sql import SparkSession

from penstock.lang.deployment import parse_deployment

STREAM = """
streams:
  readings:
    source: {generate: meters, homes: 20, every: 30min, days: 1}
    lateness: 20min
queries:
"""
QUERIES = {
    "sums": "SELECT home, window.start AS since, count(*) AS n FROM readings "
    "GROUP BY home, window(ts, '2 hours')",
    "pairs": "SELECT l.ts, l.home, r.kwh FROM readings l JOIN readings r ON l.home = r.home "
    "AND r.ts BETWEEN l.ts AND l.ts + INTERVAL 30 MINUTES",
}
ROWS = 20 * 48


@pytest.mark.parametrize("query", QUERIES)
def test_once(session: SparkSession, tmp_path: Path, query: str) -> None:
    text = f'{STREAM}  sums: "{QUERIES[query]}"\n'
    place = Place(tmp_path, parse_deployment(text, "d.yaml", tmp_path).network)
    with_small_batches(place, session)
    assert sum(one.rows for one in place.state.channel("readings").kept()) == ROWS
    node = place.node(session)
    place.start(node, 2)
    await_that(lambda: node.batches("sums") >= 2, node)
    before = node.status("sums")
    assert 0 < before.rows_in <= ROWS
    node.release("sums", 10.0)
    other = place.node(session)
    place.start(other, 3)
    await_that(place.is_finished, other)
    after = other.status("sums")
    other.stop()
    assert after.rows_in == ROWS
    assert after.rows_in_before >= before.rows_in
    assert after.rows_in_here == ROWS - after.rows_in_before
