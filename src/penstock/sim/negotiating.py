"""A simulated deployment on a tree of nodes that balance themselves by negotiation.

Fragments run batch by batch; what they take of their nodes is measured, and the nodes' part is the
protocol that live nodes run, in the world that lets trees negotiate.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from penstock.balance.hierarchy.instructions import ChangeOwner
from penstock.balance.hierarchy.measures import SIZE_DIGITS
from penstock.balance.hierarchy.negotiation import Hierarchy
from penstock.balance.hierarchy.settings import HierarchySettings
from penstock.load.arrays import Floats
from penstock.model.abstract import AbstractNetwork
from penstock.model.node_tree import NodeTree
from penstock.model.tree_network import TreeInput, TreeNetwork, TreeOperator
from penstock.place.tree_placing import TreeWiring
from penstock.sim.balancing import SimulatedNodes
from penstock.sim.measuring import system_columns, system_row
from penstock.sim.timeline import Timeline
from penstock.sim.tree_run import TreeFigures
from penstock.sim.tree_world import TreeWorld, Watcher

_SAMPLE_S = 1.0
_LEAST_WINDOW_S = 4.0


def wiring_of(network: AbstractNetwork, tree: NodeTree, attached: Mapping[str, str]) -> TreeWiring:
    """What flows where in a network whose inputs are attached to nodes of a tree."""
    reads = {
        operator.name: {name: name for name in operator.inputs} for operator in network.operators
    }
    return TreeWiring(tree, reads | {name: {} for name in attached}, attached)


def fixed_operators(network: AbstractNetwork) -> frozenset[str]:
    """The operators that stay where they are: bound, pinned, or tied to another."""
    members = Counter(operator.group for operator in network.operators)
    return frozenset(
        operator.name
        for operator in network.operators
        if operator.is_sticky or operator.node or members[operator.group] > 1
    )


@dataclass(frozen=True)
class SimulatedTransfer:
    """Fragments that changed hands together, and what they took of the node that gave them."""

    at_s: float
    operators: tuple[str, ...]
    source: str
    target: str
    size: float


class NegotiatedSystem:
    """A simulation on a tree whose nodes negotiate, or without settings for it do not.

    A node's utilisation is the mean processor time of the last seconds, as that of a live node. A
    fragment that changes hands stands still for as long as a hand-over takes.
    """

    def __init__(
        self,
        simulation: SimulatedNodes,
        wiring: TreeWiring,
        settings: HierarchySettings,
        seed: int,
        is_negotiating: bool,
    ) -> None:
        self.simulation = simulation
        self.transfers: list[SimulatedTransfer] = []
        self.timeline = Timeline(system_columns(simulation.network))
        self.moved_load = 0.0
        self._settings = settings
        self._nodes = [node.name for node in simulation.network.nodes]
        self._numbers = {
            operator.name: at for at, operator in enumerate(simulation.network.operators)
        }
        window_s = max(_LEAST_WINDOW_S, settings.period_s)
        self._busy: deque[Floats] = deque(maxlen=max(1, round(window_s / _SAMPLE_S)))
        self._used: deque[Floats] = deque(maxlen=self._busy.maxlen)
        self._sampled = 0
        self._rows: list[tuple[float, float, float, int, float]] = []
        self._arriving: dict[int, tuple[float, int]] = {}
        self._capacities = {node.name: node.cpu for node in simulation.network.nodes}
        self._world = TreeWorld(
            _tree_network(simulation, wiring),
            Hierarchy(settings),
            seed,
            watcher=_HandOvers(self),
            capacities=self._capacities,
            fixed=fixed_operators(simulation.network),
        )
        self._is_negotiating = is_negotiating

    def advance(self, until_s: float) -> None:
        """Lets everything happen up to a moment."""
        while (sample_s := (self._sampled + 1) * _SAMPLE_S) <= until_s:
            self._negotiate(sample_s)
            self._sampled += 1
            self._sample()
        self._negotiate(until_s)

    def _negotiate(self, until_s: float) -> None:
        if self._is_negotiating:
            self._world.advance(until_s)
        self._catch_up(until_s)

    def _catch_up(self, until_s: float) -> None:
        """Lets fragments work up to a moment; those that arrive meanwhile go on."""
        for operator, (at_s, node) in sorted(
            self._arriving.items(), key=lambda arriving: arriving[1]
        ):
            if at_s <= until_s:
                self.simulation.advance(at_s)
                self.simulation.resume(operator, node)
                del self._arriving[operator]
        self.simulation.advance(until_s)

    def hand_over(self, now_s: float, step: ChangeOwner) -> None:
        """Fragments have changed hands: their new node goes on with them."""
        self._catch_up(now_s)
        names = tuple(name for portion in step.portions for name in portion.operators)
        operators = [self._numbers[name] for name in names]
        took_s = self.simulation.suspend(operators)
        node = self._nodes.index(step.target)
        self._arriving |= dict.fromkeys(operators, (now_s + took_s, node))
        size = sum(portion.size for portion in step.portions)
        self.moved_load += size / 100 * self._capacities[step.source]
        self.transfers.append(SimulatedTransfer(now_s, names, step.source, step.target, size))

    def _sample(self) -> None:
        statistics = self.simulation.statistics()
        self._busy.append(statistics.busy)
        self._used.append(statistics.utilisation)
        row = system_row(statistics, self.moved_load, self.simulation.moves)
        self.timeline.add(statistics.until_s, row)
        if len(self._busy) == self._busy.maxlen:
            sizes = 100 * np.mean(self._busy, axis=0)
            self._world.measure(
                {name: round(float(sizes[at]), SIZE_DIGITS) for name, at in self._numbers.items()}
            )
        used = 100 * np.mean(self._used, axis=0)
        above = used[used > self._settings.upper] - self._settings.upper
        self._rows.append(
            (statistics.until_s, used.mean(), used.std(), len(above), float(above.sum()))
        )

    def figures(self) -> TreeFigures:
        """Mean, deviation and overload of the nodes over time, and what was done about it."""
        rows = np.array(self._rows).reshape(-1, 5)
        times_s, mean, deviation, overloaded, excess = rows.T.copy()
        return TreeFigures(
            times_s,
            mean,
            deviation,
            overloaded.astype(np.int64),
            excess,
            self._world.messages,
            self._world.steps,
            self._world.moved,
            self.simulation.assignment,
        )


class _HandOvers(Watcher):
    """Has the simulation carry out what the nodes have agreed."""

    def __init__(self, system: NegotiatedSystem) -> None:
        self._system = system

    def on_step(self, now_s: float, step: ChangeOwner, asked_by: str, done: bool) -> None:
        if done:
            self._system.hand_over(now_s, step)


def _tree_network(simulation: SimulatedNodes, wiring: TreeWiring) -> TreeNetwork:
    """The fragments where they are; nothing is known yet of what they take."""
    network = simulation.network
    nodes = [network.nodes[at].name for at in simulation.assignment]
    return TreeNetwork(
        wiring.nodes,
        tuple(TreeInput(name, node) for name, node in wiring.attached.items()),
        tuple(
            TreeOperator(operator.name, operator.inputs, 0.0, node)
            for operator, node in zip(network.operators, nodes, strict=True)
        ),
    )
