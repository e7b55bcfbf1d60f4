"""Closed forms of queueing theory, within confidence intervals over independent runs."""

import math

import numpy as np
import pytest

from penstock.model.abstract import AbstractNetwork
from penstock.sim.arrivals import Steady
from penstock.sim.physics import Physics
from penstock.sim.simulation import Simulation
from sim.networks import chains

RUNS = 10
# Ten runs: about one true hypothesis in ten thousand is rejected.
STUDENT_T = 6.0


def _latencies(
    network: AbstractNetwork, rate_per_s: float, service: str, assignment: list[int]
) -> tuple[np.ndarray, float]:
    """The mean latencies of independent runs, and the mean utilisation of the first node."""
    means, used = [], []
    for seed in range(RUNS):
        simulation = Simulation(
            network,
            {stream.name: Steady(rate_per_s) for stream in network.inputs},
            assignment,
            seed,
            Physics(service=service),
        )
        simulation.advance(20)
        simulation.forget()
        simulation.statistics()
        simulation.advance(170)
        means.append(simulation.latencies().mean_s)
        used.append(simulation.statistics().utilisation[0])
    return np.array(means), float(np.mean(used))


def _agrees(found: np.ndarray, expected: float) -> None:
    error = STUDENT_T * found.std(ddof=1) / math.sqrt(len(found))
    assert abs(found.mean() - expected) <= error
    assert error < 0.2 * expected, "too uncertain to say anything"


@pytest.mark.parametrize("load", [0.3, 0.8])
def test_m_m_1(load: float) -> None:
    found, used = _latencies(chains(1, 1, 1), 1_000 * load, "exponential", [0])
    _agrees(found, 0.001 / (1 - load))
    assert used == pytest.approx(load, rel=0.04)


@pytest.mark.parametrize("load", [0.3, 0.8])
def test_m_d_1(load: float) -> None:
    found, _ = _latencies(chains(1, 1, 1), 1_000 * load, "constant", [0])
    _agrees(found, 0.001 * (1 + load / (2 * (1 - load))))


def test_tandem_of_exponential_servers_is_a_sum_of_independent_queues() -> None:
    found, _ = _latencies(chains(3, 1, 3), 600, "exponential", [0, 1, 2])
    _agrees(found, 3 * 0.001 / (1 - 0.6))


def test_poisson_streams_that_share_a_node_make_one_poisson_stream() -> None:
    found, used = _latencies(chains(1, 4, 1), 175, "exponential", [0, 0, 0, 0])
    _agrees(found, 0.001 / (1 - 0.7))
    assert used == pytest.approx(0.7, rel=0.04)


def test_round_robin_of_single_tuples_waits_as_long_on_average_as_first_come() -> None:
    """With equal service times the order within a queue does not change the mean."""
    network = chains(1, 4, 1)
    means = []
    for discipline in ("fcfs", "round-robin"):
        simulation = Simulation(
            network,
            {one.name: Steady(200) for one in network.inputs},
            [0] * 4,
            seed=3,
            physics=Physics(discipline=discipline),
        )
        simulation.advance(100)
        simulation.drain()
        means.append(simulation.latencies().mean_s)
    assert means[0] == pytest.approx(means[1], rel=1e-6)
