"""The queries of the density benchmark are what they are meant to be: many, different, light."""

from pathlib import Path

import numpy as np
from pyarrow import csv

from penstock.bench.density import Used, _light_cases
from penstock.bench.density_load import chain, network, query, rows_until
from penstock.bench.peers.flink_density import arrive_as_csv, statements
from penstock.bench.registry import BENCHES
from penstock.kernels.window_plan import WindowPlan, plan_windows
from penstock.place.fuse import fuse


def test_density_is_a_benchmark() -> None:
    assert "density" in BENCHES


def test_all_queries_differ_and_are_light() -> None:
    assert len({query(number) for number in range(1_000)}) == 1_000
    plans = [plan_windows(fragment) for fragment in fuse(network(30))]
    assert len(plans) == 30
    assert all(isinstance(plan, WindowPlan) for plan in plans)


def test_the_chain_has_three_light_links() -> None:
    fragments = fuse(chain())
    assert [fragment.inputs for fragment in fragments] == [("readings",), ("sums",), ("means",)]
    assert all(isinstance(plan_windows(fragment), WindowPlan) for fragment in fragments)


def test_goals_belong_to_numbers_of_queries() -> None:
    used = Used(cores=0.3, memory_bytes=3 << 30, p50_s=1.0, p99_s=11.0, results=5)
    cases = {case.case: case.ok for case in (*_light_cases(24, used), *_light_cases(1_000, used))}
    assert cases == {
        "24 queries, light": False,
        "24 queries, memory": True,
        "24 queries, latency p50": True,
        "24 queries, latency p99": False,
        "1,000 queries, light": True,
        "1,000 queries, memory": False,
        "1,000 queries, latency p50": True,
        "1,000 queries, latency p99": False,
    }


def test_flink_gets_the_same_queries_and_keeps_their_results(tmp_path: Path) -> None:
    job = statements(200, tmp_path)
    tables, inserts = list(job["tables"]), list(job["inserts"])
    assert len(tables) == 201
    assert len(inserts) == 200
    assert inserts[1] == (
        "INSERT INTO o1 SELECT MOD(v, 13) AS `key`, window_end AS `at`, sum(v) AS `v`, "
        "count(*) AS `n` FROM TABLE(HOP(TABLE readings, DESCRIPTOR(ts), INTERVAL '2' SECOND, "
        "INTERVAL '10' SECOND)) WHERE v >= 1 GROUP BY MOD(v, 13), window_start, window_end"
    )
    assert "`v` BIGINT, `n` BIGINT" in tables[2]


def test_rows_for_flink_are_those_that_came(tmp_path: Path) -> None:
    rows = rows_until(10_000_000, 0.5, 20, np.random.default_rng(1))
    arrive_as_csv(rows, tmp_path / "1.csv")
    read = csv.read_csv(tmp_path / "1.csv", csv.ReadOptions(column_names=["us", "k", "v", "x"]))
    assert read["us"].to_pylist() == rows["ts"].cast("int64").to_pylist()
    assert read["x"].to_pylist() == rows["x"].to_pylist()
    assert [path.name for path in tmp_path.iterdir()] == ["1.csv"]
