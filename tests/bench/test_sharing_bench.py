"""The benchmark of sharing compares what it says: queries that overlap, and what they use."""

from __future__ import annotations

from pathlib import Path

from penstock.bench import sharing_load
from penstock.bench.registry import BENCHES
from penstock.bench.sharing import StageUse, cases
from penstock.kernels.window_plan import WindowPlan, plan_windows
from penstock.lang.deployment import parse_deployment
from penstock.model.canonical import canonical_streams
from penstock.place.fuse import fuse


def test_it_is_a_benchmark() -> None:
    assert "sharing" in BENCHES


def test_queries_overlap_in_five_aggregates_and_are_light(tmp_path: Path) -> None:
    text = sharing_load.stream(tmp_path) + sharing_load.deployment(range(20))
    network = parse_deployment(text, "sharing.yaml", tmp_path).network
    fragments = fuse(network)
    assert len(fragments) == 20
    assert all(isinstance(plan_windows(fragment), WindowPlan) for fragment in fragments)
    known = canonical_streams(network)
    aggregates = [operator.name for operator in network.operators if operator.kind == "aggregate"]
    assert len(aggregates) == 20 and len({known[name].signature for name in aggregates}) == 5
    results = {known[sharing_load.name_of(number)].signature for number in range(20)}
    assert len(results) == 20, "each has a condition of its own"


def stage(queries: int, cores: float, p99_s: float) -> StageUse:
    return StageUse(queries, cores, 2**30, 1.0, p99_s, 3 * queries)


def test_sides_are_compared_where_both_came_to() -> None:
    shared = {1: stage(1, 0.2, 1.0), 10: stage(10, 0.3, 1.0), 200: stage(200, 0.5, 2.0)}
    unshared = {1: stage(1, 0.2, 1.0), 10: stage(10, 0.6, 1.5), 50: stage(50, 1.5, 9.0)}
    found = {case.case: case for case in cases(shared, unshared)}
    assert found["10 queries, shared of unshared: CPU"].ratio == 0.5
    assert found["10 queries, shared of unshared: rows"].ratio == 2.0
    assert not any(name.startswith(("50", "200")) for name in found)
    most = found["queries within 4 s on two cores"]
    assert (most.value, most.baseline) == (200, 10)
