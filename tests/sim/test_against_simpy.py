"""The same model in SimPy gives the same results, tuple by tuple."""

import numpy as np
import pytest

from penstock.bench.simpy_peer import simpy_run
from penstock.sim.arrivals import Recorded
from penstock.sim.physics import Physics
from penstock.sim.simulation import Simulation
from sim.networks import random_network


@pytest.mark.parametrize("seed", range(12))
def test_random_networks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    network = random_network(rng)
    times = {
        stream.name: np.cumsum(rng.exponential(0.02, size=400)) + 0.1 for stream in network.inputs
    }
    assignment = rng.integers(0, len(network.nodes), len(network.operators))
    simulation = Simulation(
        network,
        {name: Recorded.of(found) for name, found in times.items()},
        assignment,
        seed=seed,
        physics=Physics(selectivity="expected"),
    )
    simulation.advance(5.0)
    peer = simpy_run(
        network, {k: v.tolist() for k, v in times.items()}, assignment.tolist(), until_s=5.0
    )
    latencies = simulation.latencies()
    assert latencies.count == peer.results
    assert latencies.sum_s == pytest.approx(peer.latency_s, rel=1e-9)
