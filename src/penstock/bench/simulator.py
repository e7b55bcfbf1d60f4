"""The simulator against the same model in SimPy, and its events per second.

Times are processor time: one thread works, and neighbours on the machine do not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from penstock.bench.report import BenchCase, Report, compared, limited
from penstock.bench.simpy_peer import simpy_run
from penstock.model.abstract import AbstractInput, AbstractNetwork, AbstractNode, AbstractOperator
from penstock.sim.arrivals import Arrivals, Recorded, Steady
from penstock.sim.physics import Physics
from penstock.sim.simulation import Simulation

Say = Callable[[str], None]
_AGREE = 1e-6


def simulator(quick: bool, say: Say) -> Report:
    """Speed on the balancing studies' network and on one queue; memory over simulated time."""
    say("compiling")
    _run(_chains(2, 2), {f"I{c}": Steady(10) for c in range(2)}, 1.0)
    return Report(
        "simulator",
        (
            *_against_simpy(3.0 if quick else 10.0, say),
            *_events_per_s(50.0 if quick else 300.0, say),
            _memory(200.0 if quick else 2_000.0, say),
        ),
    )


def _chains(nodes: int, chains: int) -> AbstractNetwork:
    """Chains of ten operators of 1 ms, dealt out to nodes one by one."""
    return AbstractNetwork(
        tuple(AbstractInput(f"I{c}") for c in range(chains)),
        tuple(
            AbstractOperator(f"o{c}_{k}", (f"o{c}_{k - 1}" if k else f"I{c}",), 0.001)
            for c in range(chains)
            for k in range(10)
        ),
        tuple(AbstractNode(f"n{i}") for i in range(nodes)),
    )


def _run(
    network: AbstractNetwork, arrivals: dict[str, Arrivals], until_s: float
) -> tuple[Simulation, float]:
    where = np.arange(len(network.operators)) % len(network.nodes)
    physics = Physics(selectivity="expected")
    simulation = Simulation(network, arrivals, where, seed=1, physics=physics)
    began = time.process_time()
    simulation.advance(until_s)
    return simulation, time.process_time() - began


def _against_simpy(until_s: float, say: Say) -> list[BenchCase]:
    network = _chains(20, 20)
    rng = np.random.default_rng(4)
    times = {input_.name: _poisson(70.0, until_s, rng) for input_ in network.inputs}
    arrivals: dict[str, Arrivals] = {name: Recorded.of(array) for name, array in times.items()}
    where = (np.arange(200) % 20).tolist()
    ours, theirs = [], []
    for turn in range(3):
        say(f"20 nodes, 200 operators, turn {turn + 1} of 3")
        simulation, took_s = _run(network, arrivals, until_s)
        ours.append(took_s)
        began = time.process_time()
        peer = simpy_run(network, {k: v.tolist() for k, v in times.items()}, where, until_s)
        theirs.append(time.process_time() - began)
    latencies = simulation.latencies()
    off = abs(latencies.sum_s - peer.latency_s) / peer.latency_s
    same = latencies.count == peer.results and off < _AGREE
    events = simulation.events
    return [
        compared("20 nodes, 200 operators, against SimPy", events / min(ours), "events/s",
                 events / min(theirs), at_least=20),
        BenchCase("the same results as SimPy", float(same), "", ok=same),
    ]  # fmt: skip


def _poisson(rate: float, until_s: float, rng: np.random.Generator) -> np.ndarray:
    gaps = rng.exponential(1 / rate, round(2 * rate * until_s) + 10)
    times = np.cumsum(gaps)
    return times[times < until_s]


def _events_per_s(until_s: float, say: Say) -> list[BenchCase]:
    cases = []
    for name, network, rate, longer in (
        ("one queue", _single(), 700.0, 20.0),
        ("20 nodes, 200 operators", _chains(20, 20), 70.0, 1.0),
        ("1,000 nodes, 10,000 operators", _chains(1_000, 1_000), 70.0, 0.05),
    ):
        say(f"events a second, {name}")
        arrivals: dict[str, Arrivals] = {input_.name: Steady(rate) for input_ in network.inputs}
        best = 0.0
        for _ in range(3):
            simulation, took_s = _run(network, arrivals, until_s * longer)
            best = max(best, simulation.events / took_s)
        cases.append(limited(f"events a second, {name}", best / 1e6, "million per CPU second"))
    return cases


def _single() -> AbstractNetwork:
    return AbstractNetwork(
        (AbstractInput("I0"),), (AbstractOperator("o", ("I0",), 0.001),), (AbstractNode("n"),)
    )


def _memory(until_s: float, say: Say) -> BenchCase:
    """How much more memory a hundred times the simulated time takes."""
    say("memory over simulated time")
    network = _chains(5, 5)
    arrivals: dict[str, Arrivals] = {input_.name: Steady(70.0) for input_ in network.inputs}
    short, _ = _run(network, arrivals, until_s / 100)
    long, _ = _run(network, arrivals, until_s)
    return compared("memory after 100 times as long", long.memory_bytes, "bytes",
                    short.memory_bytes, at_most=1.05)  # fmt: skip
