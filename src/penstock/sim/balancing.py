"""A simulated system that balances itself: measure, decide, move, one pair of nodes at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from penstock.balance.balancer import BalancingLoop
from penstock.balance.guards import Guards
from penstock.balance.plan import MovePlan, PlannedMove
from penstock.balance.planning_scope import PlanningScope
from penstock.balance.settings import BalanceSettings
from penstock.balance.situation import Situation, Thresholds
from penstock.balance.world import BalanceInstruction, CarryOut, Observation, Suggest, TellFailure
from penstock.errors import InputError
from penstock.load.arrays import Ints
from penstock.load.series import SeriesWindow
from penstock.model.abstract import AbstractNetwork
from penstock.model.settings import Settings
from penstock.sim.latency import Latencies
from penstock.sim.measuring import LoadMeter, system_columns, system_row
from penstock.sim.simulation import Statistics
from penstock.sim.timeline import Timeline

Decide = Callable[[Situation], MovePlan]


class SimulatedNodes(Protocol):
    """What is balanced: tuple by tuple (``Simulation``) or batch by batch (``MicroBatches``)."""

    network: AbstractNetwork
    moves: int

    @property
    def now_s(self) -> float: ...
    @property
    def events(self) -> int: ...
    @property
    def assignment(self) -> Ints: ...
    @property
    def waiting(self) -> int: ...
    def advance(self, until_s: float) -> None: ...
    def statistics(self) -> Statistics: ...
    def latencies(self) -> Latencies: ...
    def sink_latencies(self) -> dict[str, tuple[int, float]]: ...
    def suspend(self, operators: Sequence[int]) -> float: ...
    def resume(self, operator: int, node: int) -> None: ...


@dataclass(frozen=True)
class Balancing:
    """How a system is balanced.

    ``policy`` names one of ``balance.policies``; it decides every ``every_s``, from the last
    ``samples`` load samples, one every ``window_s / samples``. ``measure`` is how loads are
    measured (see :class:`~penstock.sim.measuring.LoadMeter`). With ``suggest`` plans are made and
    not carried out. ``scope`` is how much a decision looks at together, ``own`` are settings that
    only the policy has.
    """

    policy: str = "off"
    every_s: float = 1.0
    window_s: float = 10.0
    samples: int = 10
    thresholds: Thresholds = field(default_factory=Thresholds)
    guards: Guards = field(default_factory=Guards)
    measure: str = "offered"
    suggest: bool = False
    scope: PlanningScope = field(default_factory=PlanningScope)
    own: Settings = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not (self.every_s > 0 and self.window_s > 0 and self.samples >= 1):
            raise InputError(
                f"balancing every {self.every_s:g} s from {self.samples} samples in "
                f"{self.window_s:g} s",
                hint="Give times above zero and at least one sample.",
            )

    @property
    def sample_s(self) -> float:
        return self.window_s / self.samples

    @property
    def settings(self) -> BalanceSettings:
        """The same as a running system has them."""
        return BalanceSettings(
            self.policy,
            self.every_s,
            self.samples,
            self.sample_s,
            self.suggest,
            thresholds=self.thresholds,
            guards=self.guards,
            scope=self.scope,
            own=self.own,
        )


class BalancedSystem:
    """A simulation with a balancer in the loop.

    Operators of one unit (a fragment, a table) are balanced and moved as one: in situations and
    moves, numbers are those of ``units``. A plan's moves are carried out pair by pair of nodes;
    until all are done the plan stands and no other is made. ``plans`` are the last plans that
    moved something.
    """

    def __init__(self, simulation: SimulatedNodes, balancing: Balancing, seed: int) -> None:
        self.simulation = simulation
        self.balancing = balancing
        self._settings = balancing.settings
        self.plans: deque[MovePlan] = deque(maxlen=100)
        self.moved_load = 0.0
        self.timeline = Timeline(system_columns(simulation.network))
        self._loop = BalancingLoop(self, np.random.default_rng([seed, 0xBA1A]))
        self._members = _units(simulation.network)
        self._names = list(self._members)
        self._meter = LoadMeter(simulation.network, balancing.measure)
        self._window = SeriesWindow(balancing.samples)
        self._batches: deque[tuple[PlannedMove, ...]] = deque()
        self._moving: tuple[PlannedMove, ...] = ()
        self._moved_at_s = np.inf
        self._sampled = 0
        self._begun_s = simulation.now_s
        self._decided = 0

    @property
    def situation(self) -> Situation:
        """What a decision would be made from now."""
        network, where = self.simulation.network, self.simulation.assignment
        bound = [operator.is_bound for operator in network.operators]
        return Situation.of(
            self._window.samples_of(self._names),
            [where[members[0]] for members in self._members.values()],
            [node.cpu for node in network.nodes],
            [not any(bound[number] for number in members) for members in self._members.values()],
        )

    @property
    def now_s(self) -> float:
        return self.simulation.now_s

    @property
    def units(self) -> list[str]:
        """What is moved as one, by name."""
        return self._names

    @property
    def is_moving(self) -> bool:
        return bool(self._moving or self._batches)

    def advance(self, until_s: float) -> None:
        """Lets time pass, with samples, decisions and moves at their times."""
        while True:
            sample_at_s = self._begun_s + (self._sampled + 1) * self.balancing.sample_s
            decide_at_s = self._begun_s + (self._decided + 1) * self.balancing.every_s
            at_s = min(sample_at_s, decide_at_s, self._moved_at_s)
            if at_s > until_s:
                break
            self.simulation.advance(at_s)
            if at_s == self._moved_at_s:
                self._finish_batch()
            if at_s == sample_at_s:
                self._sampled += 1
                self._sample()
            if at_s == decide_at_s:
                self._decided += 1
                if self._settings.policy != "off":
                    self._loop.look(self._settings)
        self.simulation.advance(until_s)

    def apply(self, choose: Decide) -> MovePlan:
        """Makes a plan now, by whatever means, and begins to carry it out."""
        plan = choose(self.situation)
        self._begin(plan)
        return plan

    def finish_moves(self) -> None:
        """Lets time pass until nothing moves any more, without deciding anything meanwhile."""
        while self.is_moving:
            self.simulation.advance(self._moved_at_s)
            self._finish_batch()
        # Samples that were due meanwhile are left out.
        self._begun_s = self.simulation.now_s
        self._sampled = self._decided = 0
        self.simulation.statistics()

    def _sample(self) -> None:
        statistics = self.simulation.statistics()
        loads = self._meter.loads(statistics)
        self._window.add({name: float(loads[all_].sum()) for name, all_ in self._members.items()})
        row = system_row(statistics, self.moved_load, self.simulation.moves)
        self.timeline.add(statistics.until_s, row)

    def observe(self, settings: BalanceSettings) -> Observation:
        """Units and where they are; without a situation until the window of loads is full."""
        if self.is_moving:
            return Observation(is_moving=True)
        nodes = [node.name for node in self.simulation.network.nodes]
        situation = self.situation if self._window.is_full else None
        return Observation(self._names, nodes, situation)

    def enact(self, instruction: BalanceInstruction) -> bool:
        """Does it: in simulated time nothing happens between a look and what follows from it."""
        match instruction:
            case CarryOut(plan):
                self._begin(plan)
            case Suggest(plan) if plan.moves:
                self.plans.append(plan)
            case TellFailure(_, error):
                raise error
        return True

    def _begin(self, plan: MovePlan) -> None:
        if plan.moves:
            self.plans.append(plan)
            self.moved_load += plan.moved_load
            self._batches.extend(plan.batches)
            if not self._moving:
                self._begin_batch()

    def _begin_batch(self) -> None:
        self._moving = self._batches.popleft()
        units = list(self._members.values())
        took_s = self.simulation.suspend(
            [operator for move in self._moving for operator in units[move.operator]]
        )
        self._moved_at_s = self.simulation.now_s + took_s

    def _finish_batch(self) -> None:
        units = list(self._members.values())
        for move in self._moving:
            for operator in units[move.operator]:
                self.simulation.resume(operator, move.target)
        self._moving = ()
        self._moved_at_s = np.inf
        if self._batches:
            self._begin_batch()


def _units(network: AbstractNetwork) -> dict[str, list[int]]:
    """The operators of every unit, in the order of the first of each."""
    found: dict[str, list[int]] = {}
    for number, operator in enumerate(network.operators):
        found.setdefault(operator.group, []).append(number)
    return found
