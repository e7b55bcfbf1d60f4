"""Studies on real nodes: what can be told of them without any."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from penstock.lang.deployment import parse_deployment
from penstock.place.fuse import fuse
from penstock.place.rhythm import round_us
from penstock.studies import live_bursts, prediction, traffic
from penstock.studies.live_system import Delivered, Look, Watched


@pytest.mark.parametrize("strategy", traffic.STRATEGIES)
def test_traffic_is_one_fragment_a_query(strategy: str) -> None:
    network = parse_deployment(traffic.deployment(strategy, 2.0), "traffic", Path()).network
    fragments = fuse(network)
    assert sorted(one.name for one in fragments) == sorted(traffic.query_names())
    assert {round_us(network, one, 1) for one in fragments} == {traffic.ROUND_S * 1e6}


def test_bursts_are_recorded_at_their_rates(tmp_path: Path) -> None:
    known = live_bursts.rates(60)
    assert np.mean(known["first"]) != np.mean(known["second"])
    count = live_bursts.recorded(tmp_path / "first.parquet", [300, 20, 1], seed=1)
    times = pq.read_table(tmp_path / "first.parquet")["ts"].cast("int64").to_numpy()
    assert count == len(times) == 321
    assert np.bincount((times - times[0]) // 1_000_000).tolist() == [300, 20, 1]
    assert (np.diff(times) >= 0).all()


def test_bursts_are_one_fragment_a_query(tmp_path: Path) -> None:
    text = live_bursts.deployment(tmp_path, tmp_path / "out", "correlation")
    found = parse_deployment(text, "bursts", tmp_path)
    assert sorted(one.name for one in fuse(found.network)) == sorted(live_bursts.query_names())
    assert found.balance["policy"] == "correlation"


def watched() -> Watched:
    looks = tuple(
        Look(at_s, {"n1": at_s / 10}, {"q": {"cpu_ms": 100 * at_s, "backlog_rows": 7}})
        for at_s in (1.0, 2.0, 4.0)
    )
    delivered = (Delivered("q", 1.5, 0.5, 3), Delivered("q", 3.0, 0.2, 1))
    return Watched(0.0, looks, delivered, {"q": "n1"}, ({"id": 1, "created_s": 3.0},))


def test_what_was_seen_is_summed_up() -> None:
    seen = watched()
    assert seen.grown_per_s("q", "cpu_ms") == pytest.approx(100)
    assert seen.grown_per_s("q", "rows_in") == 0.0
    assert seen.mean_utilisation("n1") == pytest.approx(0.7 / 3)
    assert seen.latencies_s() == [0.2, 0.5]
    assert seen.backlog_rows() == [7, 7, 7]


def test_what_was_seen_since() -> None:
    later = watched().since(2.0)
    assert [one.at_s for one in later.looks] == [2.0, 4.0]
    assert later.latencies_s() == [0.2]
    assert len(later.moves) == 1


def test_costs_are_the_line_through_two_runs() -> None:
    def point(load: float, rate_per_s: float) -> prediction.Point:
        return prediction.Point({"q": "n1"}, {"q": load}, {"q": rate_per_s}, {"n1": load}, 1.0)

    cost = prediction.fitted(point(0.3, 1_000), point(0.5, 2_000))["q"]
    assert (cost.fixed, cost.per_rate) == (pytest.approx(0.1), pytest.approx(0.0002))
    assert cost.load(3_000) == pytest.approx(0.7)
    falling = prediction.fitted(point(0.5, 1_000), point(0.3, 2_000))["q"]
    assert falling == prediction.Cost(0.5, 0.0), "no part is below zero"


def test_the_simulator_uses_what_was_measured() -> None:
    costs = {"p": prediction.Cost(0.1, 0.0001), "q": prediction.Cost(0.2, 0.0001)}
    used, latency_s = prediction.simulated(costs, {"p": "n1", "q": "n2"}, 2_000, ["n1", "n2"])
    assert used == {"n1": pytest.approx(0.3, abs=0.02), "n2": pytest.approx(0.4, abs=0.02)}
    assert latency_s > traffic.ROUND_S + 0.3 * traffic.ROUND_S
