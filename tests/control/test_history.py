"""Series of what was measured: by time, whichever node measured it."""

from __future__ import annotations

from control.made_up import node
from control.toys import TroubledCatalog
from penstock.control.history import history
from penstock.model.measurements import FragmentStatus, NodeSample


def sample(at_s: float, busy_ms: int) -> NodeSample:
    status = FragmentStatus(
        "q", 10, 5, 20.0, 3, 100.0, 0, None, False, busy_ms=busy_ms, latest_latency_s=0.5
    )
    return NodeSample(at_s, 0.5, 0.5, 1 << 20, fragments={"q": status})


def test_a_fragment_that_was_moved_has_one_series(catalog: TroubledCatalog) -> None:
    for name in "ab":
        catalog.join(node(name))
    catalog.sample("b", sample(12.0, 100))
    catalog.sample("b", sample(14.0, 1_100))
    catalog.sample("a", sample(8.0, 5_000))
    catalog.sample("a", sample(10.0, 7_000))
    found = history(catalog, 10)
    assert found.nodes["a"].at_s == [8.0, 10.0]
    series = found.fragments["q"]
    assert series.at_s == [8.0, 10.0, 12.0, 14.0]
    assert series.busy == [None, 1.0, None, 0.5], "where it was started anew nothing is known"
    assert series.rows_in_per_s == [20.0] * 4


def test_only_the_latest(catalog: TroubledCatalog) -> None:
    catalog.join(node("a"))
    for at_s in range(5):
        catalog.sample("a", sample(float(at_s), 0))
    assert history(catalog, 2).nodes["a"].at_s == [3.0, 4.0]
