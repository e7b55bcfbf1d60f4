"""The queries of the density benchmark are what they are meant to be: many, different, light."""

from penstock.bench.density import Used, _light_cases
from penstock.bench.density_load import chain, network, query
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
