"""What the balancing studies share: the source's workloads, and runs of one policy on one of them.

Twenty nodes, independent chains of ten operators of 1 ms with selectivities U(0.8, 1.2), input
rates U(0.8, 1.2) scaled to a system load level (table 6.2 of the source).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from penstock.balance.deciding import decide
from penstock.balance.plan import balance_of
from penstock.balance.situation import Situation
from penstock.load.arrays import Floats, Ints
from penstock.model.abstract import AbstractInput, AbstractNetwork, AbstractNode, AbstractOperator
from penstock.sim.arrivals import Alternating, Arrivals, OnOff
from penstock.sim.balancing import BalancedSystem, Balancing
from penstock.sim.measuring import input_coefficients
from penstock.sim.moving import HandOverTimes
from penstock.sim.physics import Physics
from penstock.sim.simulation import Simulation
from penstock.studies.figures import Figure
from penstock.studies.report import Value
from penstock.studies.seeds import rng_of

SEEDS = 5
CHAIN = 10
COST_S = 0.001
MOVE = HandOverTimes(base_s=0.2, operator_s=0.0, state_s=0.0)
_RHYTHMS = 5


@dataclass(frozen=True)
class Setup:
    """One workload; the numbers are those of the source unless a study varies them."""

    level: float
    seed: int
    nodes: int = 20
    per_node: int = 10
    window_s: float = 10.0
    samples: int = 10
    period_s: float = 10.0
    ratio: float = 4.0
    workload: str = "alternating"

    @property
    def chains(self) -> int:
        return max(1, self.nodes * self.per_node // CHAIN)

    @property
    def rng(self) -> np.random.Generator:
        """The same for all load levels, so that only the rates differ between them."""
        return rng_of("balancing", self.seed, self.nodes, self.per_node)

    def balancing(self, policy: str) -> Balancing:
        return Balancing(
            policy=policy, window_s=self.window_s, samples=self.samples, measure="inputs"
        )


@dataclass(frozen=True)
class BalancingWorkload:
    """A network, how its inputs arrive, and two ways to begin."""

    network: AbstractNetwork
    arrivals: Mapping[str, Arrivals]
    connected: Ints
    scattered: Ints


def workload_of(setup: Setup) -> BalancingWorkload:
    """The workload of a setup, the same whenever it is asked for."""
    rng = setup.rng
    network = _network(setup, rng)
    rates = _rates(setup, network, rng)
    arrivals = _alternating if setup.workload == "alternating" else _bursting
    chain = np.repeat(np.arange(setup.chains), CHAIN)
    return BalancingWorkload(
        network,
        arrivals(setup, network, rates, rng),
        chain % setup.nodes,
        rng.integers(0, setup.nodes, setup.chains * CHAIN),
    )


def _network(setup: Setup, rng: np.random.Generator) -> AbstractNetwork:
    passed = rng.uniform(0.8, 1.2, (setup.chains, CHAIN))
    operators = tuple(
        AbstractOperator(
            f"o{c}_{k}", (f"o{c}_{k - 1}" if k else f"I{c}",), COST_S, float(passed[c, k])
        )
        for c in range(setup.chains)
        for k in range(CHAIN)
    )
    return AbstractNetwork(
        tuple(AbstractInput(f"I{c}") for c in range(setup.chains)),
        operators,
        tuple(AbstractNode(f"n{i}") for i in range(setup.nodes)),
    )


def _rates(setup: Setup, network: AbstractNetwork, rng: np.random.Generator) -> Floats:
    """Random rates, scaled so that all nodes together are loaded to the level."""
    drawn = rng.uniform(0.8, 1.2, setup.chains)
    load = float((input_coefficients(network) @ drawn).sum())
    scaled: Floats = drawn * setup.level * setup.nodes / load
    return scaled


def _alternating(
    setup: Setup, network: AbstractNetwork, rates: Floats, rng: np.random.Generator
) -> dict[str, Arrivals]:
    offsets = rng.uniform(0, setup.period_s, len(rates))
    return {
        stream.name: Alternating(float(rate), setup.ratio, setup.period_s, float(offset))
        for stream, rate, offset in zip(network.inputs, rates, offsets, strict=True)
    }


def _bursting(
    setup: Setup, network: AbstractNetwork, rates: Floats, rng: np.random.Generator
) -> dict[str, Arrivals]:
    """A few independent rhythms; the others are the opposite of one, or the same but shifted."""
    found: dict[str, Arrivals] = {}
    for number, (stream, rate) in enumerate(zip(network.inputs, rates, strict=True)):
        rhythm, is_opposite = int(rng.integers(_RHYTHMS)), bool(rng.integers(2))
        shift_s = 0.0 if is_opposite else float(rng.uniform(0, 20))
        found[stream.name] = (
            OnOff(float(rate), rhythm=number)
            if number < _RHYTHMS
            else OnOff(float(rate), rhythm=rhythm, opposite=is_opposite, offset_s=shift_s)
        )
    return found


def simulated(setup: Setup, workload: BalancingWorkload, start: Ints) -> Simulation:
    """The workload on nodes, from a given start."""
    return Simulation(
        workload.network,
        workload.arrivals,
        start,
        seed=setup.seed,
        physics=Physics(hand_over=MOVE),
    )


def warmed_up(setup: Setup, workload: BalancingWorkload, start: Ints) -> Situation:
    """What is known after the first statistics window."""
    system = BalancedSystem(simulated(setup, workload, start), setup.balancing("off"), setup.seed)
    system.advance(setup.window_s)
    return system.situation


def global_plan(setup: Setup, workload: BalancingWorkload, policy: str) -> Situation:
    """The situation after one global plan from the statistics of a warm-up."""
    situation = warmed_up(setup, workload, workload.scattered)
    plan = decide(policy, situation, rng_of(policy, setup.seed))
    return Situation(situation.series, plan.assignment, situation.capacities, situation.movable)


def run_of(
    setup: Setup, start: Ints, policy: str, warm_s: float, measured_s: float
) -> dict[str, Value]:
    """Lets a policy work from a start; what came of it after ``warm_s``, to the last tuple."""
    workload = workload_of(setup)
    simulation = simulated(setup, workload, start)
    system = BalancedSystem(simulation, setup.balancing(policy), setup.seed)
    system.advance(warm_s)
    simulation.forget()
    system.advance(warm_s + measured_s)
    return {**outcome(system), **drained(simulation)}


def outcome(system: BalancedSystem) -> dict[str, Value]:
    """How balanced a system is now, and what was moved for it."""
    found = balance_of(system.situation)
    return {
        "deviation": found.mean_deviation,
        "least_deviation": found.least_deviation,
        "correlation": found.mean_correlation,
        "moved_load": system.moved_load,
        "moves": system.simulation.moves,
    }


def drained(simulation: Simulation) -> dict[str, Value]:
    """Latencies once all that had arrived is processed."""
    simulation.drain()
    latencies = simulation.latencies()
    return {
        "latency_ratio": latencies.ratio,
        "p99_ms": 1_000 * latencies.percentile_s(99),
        "results": latencies.count,
    }


def at_every_level(
    names: Iterable[str], levels: Iterable[float], seeds: int
) -> list[tuple[str, float, int]]:
    """The points of a study that compares these at growing load, level by level."""
    names = tuple(names)
    return [(name, level, seed) for level in levels for seed in range(seeds) for name in names]


def latency_figure(table: str, by: str, title: str, x_label: str = "system load level") -> Figure:
    """Latency over the level of load, a line for every value of ``by``."""
    return Figure(
        table, table, "level", "latency_ratio", by=by, log_y=True, title=title, x_label=x_label,
        y_label="latency ratio",
    )  # fmt: skip
