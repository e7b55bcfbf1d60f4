"""Steadiness: when something counts as grown."""

from __future__ import annotations

from pathlib import Path

from penstock.bench.steadiness import _DEPLOYMENT, Holding, grown
from penstock.lang.deployment import parse_deployment


def test_the_second_quarter_is_compared_with_the_last() -> None:
    level = [Holding(100 << 20, 10, 1 << 20, 1 << 20) for _ in range(8)]
    rising = [Holding((100 + at) << 20, 10 * (at + 1), 1 << 20, 1 << 20) for at in range(8)]
    assert all(case.ok for case in grown(level))
    found = {case.case.split(",")[0]: case for case in grown(rising)}
    assert found["memory"].ok
    assert not found["open files"].ok
    assert found["open files"].value == 75
    assert found["open files"].baseline == 35


def test_the_workload_is_one() -> None:
    network = parse_deployment(_DEPLOYMENT, "steady", Path()).network
    assert [query.name for query in network.queries] == ["talkers", "answered"]
