"""Comparisons that are only ok where both sides have done the same."""

from pathlib import Path

import pytest

from penstock.bench.overhead import throughput_cases
from penstock.bench.peers.workload import Workload

LOAD = Workload(Path("nowhere"), 1_000, 4)


def answer(seconds: float, batches: int, rows_out: int) -> dict[str, float]:
    return {"seconds": seconds, "batches": batches, "rows_out": rows_out, "batch_ms": 1.0}


def test_a_join_is_counted_by_what_it_gives() -> None:
    speed, batches, rows = throughput_cases("stream join", answer(2, 4, 60), answer(4, 4, 60), LOAD)
    assert (speed.value, speed.unit, speed.ratio) == (30.0, "joined rows/s", 2.0)
    assert batches.ok and rows.ok and batches.goal == rows.goal == "= 1"


@pytest.mark.parametrize(("batches", "rows_out"), [(3, 60), (4, 59)])
def test_unequal_work_is_no_comparison(batches: int, rows_out: int) -> None:
    cases = throughput_cases("stream join", answer(1, batches, rows_out), answer(4, 4, 60), LOAD)
    assert not all(case.ok for case in cases)


def test_everything_else_is_counted_by_what_it_reads() -> None:
    speed, *_ = throughput_cases("filter and map", answer(2, 4, 9), answer(4, 4, 9), LOAD)
    assert speed.value == LOAD.rows("bids") / 2


def test_only_aggregates_may_give_more_than_stock_spark() -> None:
    for pipeline, is_ok in (("sliding aggregate", True), ("strings", False)):
        *_, rows = throughput_cases(pipeline, answer(2, 4, 9), answer(4, 4, 8), LOAD)
        assert rows.ok == is_ok
    *_, fewer = throughput_cases("sliding aggregate", answer(2, 4, 7), answer(4, 4, 8), LOAD)
    assert not fewer.ok
