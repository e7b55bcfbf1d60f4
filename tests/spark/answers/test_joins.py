"""Joins of streams: light and native, in whatever batches, give what DuckDB gives."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from answers.oracle import check_same, deployed, run
from answers.test_random_pipelines import DEPLOYMENT, SCHEMA, query_text, random_streams

BETWEEN = "r.ts BETWEEN l.ts - INTERVAL {} SECONDS AND l.ts + INTERVAL {} SECONDS"
JOINS = {
    "plain": f"SELECT l.ts, l.k, l.v, r.x FROM a l JOIN b r ON l.k = r.k AND {BETWEEN.format(3, 5)}",
    "composite": "SELECT l.ts, l.k, r.g, l.x AS lx, r.x AS rx FROM a l JOIN b r "
    f"ON l.k = r.k AND l.g = r.g AND {BETWEEN.format(20, 20)}",
    "after_only": f"SELECT l.ts, r.ts AS other, l.v FROM a l JOIN b r ON l.v = r.g AND {BETWEEN.format(0, 9)}",
    "residual": f"SELECT l.ts, l.v, r.v AS rv FROM a l JOIN b r ON l.k = r.k AND l.v < r.v AND {BETWEEN.format(8, 2)}",
    "alone": f"SELECT l.ts, l.k, l.v, r.v AS rv FROM a l LEFT JOIN b r ON l.k = r.k AND {BETWEEN.format(2, 4)}",
    "alone_unless": "SELECT l.ts, l.k, l.v, r.v AS rv FROM a l LEFT JOIN b r "
    f"ON l.k = r.k AND l.v <= r.v AND {BETWEEN.format(5, 0)}",
    "nobody": f"SELECT l.ts, l.k, r.v AS rv FROM a l LEFT JOIN e r ON l.k = r.k AND {BETWEEN.format(5, 5)}",
    "itself": f"SELECT l.ts, l.k, r.v AS rv FROM b l JOIN b r ON l.k = r.k AND {BETWEEN.format(1, 1)}",
    "mapped": "SELECT l.ts, l.w, upper(l.loud) || r.k AS both_, l.w + r.v AS s FROM "
    "(SELECT ts, k, concat(k, '!') AS loud, v + 1 AS w FROM a WHERE v > 0) l "
    "JOIN (SELECT ts, k, v FROM b WHERE length(k) < 2) r "
    f"ON l.k = r.k AND {BETWEEN.format(6, 6)} WHERE l.w <> 14",
    "by_numbers": f"SELECT l.ts, l.x, r.v AS rv FROM a l JOIN b r ON l.x = r.v AND {BETWEEN.format(9, 9)}",
}


@pytest.mark.parametrize("seed", [1])
def test_light_is_native_is_duckdb(seed: int, session: SparkSession, tmp_path: Path) -> None:
    random = Random(seed)
    oracle = random_streams(random, tmp_path)
    queries = "".join(query_text(name, sql) for name, sql in JOINS.items())
    queries += "".join(
        query_text(f"native_{name}", JOINS[name], "native") for name in ("plain", "alone")
    )
    network = deployed(DEPLOYMENT.format(schema=SCHEMA) + queries, tmp_path)
    outcome = run(session, network, tmp_path / "state", max_rows_per_batch=40)
    failures = []
    for name in (*JOINS, "native_plain", "native_alone"):
        expected = oracle.rows(JOINS[name.removeprefix("native_")])
        assert name == "nobody" or expected
        try:
            check_same(outcome.rows(name), expected, name)
        except AssertionError as failure:
            failures.append(f"{failure}")
    assert not failures, "\n\n".join(failures)
