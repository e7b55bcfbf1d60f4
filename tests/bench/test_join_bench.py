"""Joins are compared only where all sides have done the same."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.bench.join import cases, compared_cases
from penstock.bench.join_kernel import JoinCase

CASE = JoinCase(5_000, 60, 0.7, 10_000, 100_000)


def answer(seconds: float, **more: Any) -> dict[str, Any]:
    told = {"batches": 10, "pairs": 7, "digest": 99, "held_rows": 10, "held_bytes": 600}
    return {**told, "seconds": seconds, "peak_bytes": 1 << 30, "batch_ms": [5.0] * 9, **more}


def test_rows_counted_are_input_rows() -> None:
    answers = {"ours": answer(1), "memory": answer(7), "rocksdb": answer(10)}
    found = {
        case.case.removeprefix(f"{CASE.name}: "): case for case in compared_cases(CASE, answers)
    }
    memory, rocksdb = found["over Spark in memory"], found["over Spark with RocksDB"]
    assert (memory.value, memory.ratio, memory.goal, memory.ok) == (100_000, 7, ">= 6", True)
    assert (rocksdb.ratio, rocksdb.goal, rocksdb.ok) == (10, ">= 12", False)
    assert found["over Spark in memory, held"].value == 60
    assert found["batches, last third over second"].value == 1


@pytest.mark.parametrize("other", [{"batches": 9}, {"pairs": 6}, {"digest": 98}])
def test_unequal_work_is_no_comparison(other: dict[str, int]) -> None:
    answers = {"ours": answer(1), "memory": answer(70, **other), "rocksdb": answer(110)}
    assert not all(case.ok for case in compared_cases(CASE, answers))


def test_every_window_is_joined_in_large_and_in_small_batches() -> None:
    found = cases(quick=False)
    assert len(found) == 10 and {case.batch_rows for case in found} == {100_000, 10_000}
    assert len({case.name for case in found}) == 10
    assert len(cases(quick=True)) == 1
