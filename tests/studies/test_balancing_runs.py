"""The workloads of the balancing studies."""

import numpy as np
import pytest

from penstock.sim.arrivals import OnOff
from penstock.sim.measuring import input_coefficients
from penstock.studies import two_chains
from penstock.studies.balancing_runs import Setup, global_plan, run_of, workload_of


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_rates_make_the_load_level(level: float) -> None:
    work = workload_of(Setup(level, seed=1, nodes=4))
    rates = np.array([work.arrivals[stream.name].rate_per_s for stream in work.network.inputs])
    assert (input_coefficients(work.network) @ rates).sum() == pytest.approx(level * 4)


def test_load_levels_of_one_seed_differ_in_rates_alone() -> None:
    low, high = (workload_of(Setup(level, seed=2, nodes=4)) for level in (0.3, 0.6))
    assert low.network == high.network
    assert low.scattered.tolist() == high.scattered.tolist()
    for name, one in low.arrivals.items():
        assert high.arrivals[name].rate_per_s == pytest.approx(2 * one.rate_per_s)


def test_bursts_share_a_few_rhythms() -> None:
    arrivals = workload_of(Setup(0.5, seed=1, workload="bursts")).arrivals.values()
    assert all(isinstance(arrival, OnOff) for arrival in arrivals)
    assert {arrival.rhythm for arrival in arrivals if isinstance(arrival, OnOff)} == set(range(5))


def test_one_run_from_a_global_plan() -> None:
    setup = Setup(0.6, seed=1, nodes=3)
    start = global_plan(setup, workload_of(setup), "global").assignment
    found = run_of(setup, start, "off", warm_s=12, measured_s=20)
    assert found["moves"] == 0
    assert 1.0 < found["latency_ratio"] < 20.0  # type: ignore[operator]
    assert found == run_of(setup, start, "off", warm_s=12, measured_s=20)


def test_the_cut_plan_beats_the_connected_one() -> None:
    cut, connected = (two_chains.measure((plan, 0.7, 1)) for plan in ("cut", "connected"))
    assert cut["results"] == connected["results"]
    assert cut["latency_ratio"] < 0.8 * connected["latency_ratio"]  # type: ignore[operator]
