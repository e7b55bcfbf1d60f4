"""Apportioning: what is known of a whole fragment is shared out, and no more than that."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.lang.deployment import parse_deployment
from penstock.load.apportion import OperatorShare, operator_shares
from penstock.load.costs import CostTable
from penstock.place.fuse import fuse

COSTS = CostTable({"reading": 2.0, "aggregate": 3.0, "join": 10.0}, "here", "2026-01-01")


def shares(
    sql: str, rows_in: float = 1_000, rows_out: float = 100, cpu_ms: float = 50.0
) -> dict[str, OperatorShare]:
    text = (
        "streams:\n"
        "  a: {source: {generate: meters, days: 1}, lateness: 1min}\n"
        "  b: {source: {generate: meters, days: 1}, lateness: 1min}\n"
        f'queries:\n  q: "{sql}"\n'
    )
    (fragment,) = fuse(parse_deployment(text, "test", Path()).network)
    found = operator_shares(fragment, rows_in, rows_out, cpu_ms, COSTS)
    return {one.kind: one for one in found}


def test_the_one_operator_that_decides_has_the_rows_of_the_whole() -> None:
    found = shares("SELECT home, kwh * 2 AS twice FROM a WHERE kwh > 3")
    assert (found["filter"].rows_in, found["filter"].rows_out) == (1_000, 100)
    assert found["filter"].selectivity == pytest.approx(0.1)
    assert (found["map"].rows_in, found["map"].selectivity) == (100, 1.0)
    assert found["map"].cost_us is None, "too cheap to have been measured"


def test_work_is_shared_out_by_what_kinds_cost() -> None:
    sql = (
        "SELECT home, window.end AS at, sum(kwh) AS kwh FROM a GROUP BY home, window(ts, '1 hour')"
    )
    found = shares(sql)
    # 50 ms for 1,000 rows that cost 2 to read and 3 to group: three fifths are the aggregate's.
    assert found["aggregate"].cost_us == pytest.approx(30.0)
    assert found["aggregate"].selectivity == pytest.approx(0.1)


def test_a_sliding_window_works_on_every_copy() -> None:
    sql = (
        "SELECT home, window.end AS at, sum(kwh) AS kwh FROM a "
        "GROUP BY home, window(ts, '1 hour', '15 minutes')"
    )
    assert shares(sql)["aggregate"].cost_us == pytest.approx(50.0 * 12 / 14)


def test_what_lies_between_two_that_decide_is_unknown() -> None:
    sql = (
        "SELECT home, window.end AS at, sum(kwh) AS kwh FROM a WHERE kwh > 3 "
        "GROUP BY home, window(ts, '1 hour')"
    )
    found = shares(sql)
    assert (found["filter"].rows_in, found["filter"].rows_out) == (1_000, None)
    assert (found["aggregate"].rows_in, found["aggregate"].cost_us) == (None, None)
    assert found["aggregate"].rows_out == 100


def test_a_join_reads_all_that_comes_in() -> None:
    sql = (
        "SELECT a.home, b.kwh FROM a JOIN b ON a.home = b.home "
        "AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 MINUTE"
    )
    found = shares(sql)
    assert found["join"].rows_in == 1_000
    assert found["join"].cost_us == pytest.approx(50.0 * 10 / 12)


def test_before_anything_was_read_nothing_is_known_of_costs() -> None:
    found = shares("SELECT home FROM a WHERE kwh > 3", rows_in=0, rows_out=0, cpu_ms=0.0)
    assert {one.cost_us for one in found.values()} == {None}
    assert found["filter"].selectivity is None
