"""A simulated tree of negotiating nodes, with a network and nodes that may fail.

Messages are delayed, lost, doubled and thereby overtake each other; nodes pause, crash and come
back. The same seed gives the same run to the byte. The nodes' part is the protocol that live nodes
run; the world keeps the record of owners, as a catalog does.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock.balance.hierarchy.instructions import (
    ChangeOwner,
    ChangeRecorded,
    DropPrepared,
    Instruction,
    Observed,
    Prepare,
    Refuse,
)
from penstock.balance.hierarchy.measures import SIZE_DIGITS, Capacity, as_heard, as_sent
from penstock.balance.hierarchy.messages import NegotiationMessage
from penstock.balance.hierarchy.negotiation import Hierarchy
from penstock.balance.hierarchy.ownership import Ownership
from penstock.balance.hierarchy.state import HeldOperator, LocalView, NegotiatingNode
from penstock.balance.hierarchy.transfers import PlacedOperators, size_of
from penstock.model.protocol import Tick
from penstock.model.tree_network import TreeNetwork
from penstock.sim.links import Links


@dataclass(frozen=True)
class Outage:
    """A node that does nothing for a while; after a crash it also has forgotten everything.

    With ``taken_over`` its parent gets its operators when it crashes.
    """

    node: str
    from_s: float
    until_s: float
    is_crash: bool = False
    taken_over: bool = False


@dataclass(frozen=True)
class SizeChange:
    """From ``at_s`` on an operator takes this much."""

    at_s: float
    operator: str
    size: float


class Watcher:
    """Is told what happens in a world; does nothing about it."""

    def on_message(self, now_s: float, message: NegotiationMessage) -> None:
        """A message was sent."""

    def on_step(self, now_s: float, step: ChangeOwner, asked_by: str, done: bool) -> None:
        """A change of owner was asked for."""

    def on_size(self, now_s: float, change: SizeChange, node: str) -> None:
        """An operator on ``node`` takes more or less from now on."""

    def on_outage(self, now_s: float, outage: Outage) -> None:
        """A node stops for a while."""

    def on_handled(self, now_s: float, before: NegotiatingNode, after: NegotiatingNode) -> None:
        """A node went from one state to another."""


@dataclass
class _SimulatedNode:
    state: NegotiatingNode
    rng: np.random.Generator
    wake_at_s: float = -1.0
    stopped_until_s: float = 0.0
    is_down: bool = False
    is_stale: bool = False
    prepared: dict[str, str] = field(default_factory=dict)


class TreeWorld:
    """Nodes, their network and the record of owners, in simulated time.

    Sizes are percent of a node of capacity 1, as all nodes are that ``capacities`` does not name.
    Operators that are ``fixed`` stay where they are.

    >>> from penstock.lang.abstract import parse_tree
    >>> world = TreeWorld(parse_tree('''
    ... nodes: {root: {}, v: {parent: root}, c: {parent: v}}
    ... inputs: {m: {node: c}}
    ... operators:
    ...   A: {inputs: [m], size: 10, node: v}
    ...   rest: {inputs: [m], size: 55, node: v}
    ...   p: {inputs: [rest], size: 59, node: root}
    ...   k: {inputs: [m], size: 40, node: c}
    ... ''', "figure-12.yaml"), Hierarchy(), seed=1)
    >>> world.advance(6)
    >>> world.utilisations()
    {'root': 59.0, 'v': 55.0, 'c': 50.0}
    """

    def __init__(
        self,
        network: TreeNetwork,
        protocol: Hierarchy,
        seed: int,
        links: Links | None = None,
        outages: Iterable[Outage] = (),
        changes: Iterable[SizeChange] = (),
        watcher: Watcher | None = None,
        traced: bool = False,
        capacities: Mapping[str, float] | None = None,
        fixed: Collection[str] = (),
    ) -> None:
        self.protocol = protocol
        self._capacities = capacities or {}
        self._fixed = frozenset(fixed)
        self.placed = PlacedOperators(network, protocol.settings.rule)
        self.ownership = Ownership(self.placed)
        self.sizes = {operator.name: operator.size for operator in network.operators}
        self.now_s = 0.0
        self.trace: list[str] = []
        self.messages = self.steps = self.moved = 0
        self._links = links or Links()
        self._watcher = watcher or Watcher()
        self._is_traced = traced
        self._queue: list[tuple[float, int, str, Any]] = []
        self._sequence = 0
        streams = np.random.default_rng(seed).spawn(len(network.nodes.parents) + 1)
        self._rng = streams[0]
        self._nodes: dict[str, _SimulatedNode] = {}
        for name, rng in zip(network.nodes.parents, streams[1:], strict=True):
            self._nodes[name] = _SimulatedNode(self._begin_node(name, rng, 0), rng)
            self._schedule(name)
        for outage in outages:
            self._push(outage.from_s, "stop", outage)
        for change in changes:
            self._push(change.at_s, "size", change)

    def advance(self, until_s: float) -> None:
        """Lets everything happen up to a moment, including what happens at it."""
        while self._queue and self._queue[0][0] <= until_s:
            self.now_s, _, kind, subject = heapq.heappop(self._queue)
            _ACTIONS[kind](self, subject)
        self.now_s = until_s

    def measure(self, sizes: Mapping[str, float]) -> None:
        """From now on operators take this much, and their nodes know it."""
        self.sizes |= sizes
        for node in self._nodes.values():
            node.is_stale = True

    def state(self, node: str) -> NegotiatingNode:
        """What a node knows; of one that is down, what it knew."""
        return self._nodes[node].state

    def is_up(self, node: str) -> bool:
        """Whether the node is neither paused nor down."""
        return self.now_s >= self._nodes[node].stopped_until_s

    def prepared(self, node: str) -> Mapping[str, str]:
        """The operators that a node is ready to take, and from whom."""
        return self._nodes[node].prepared

    def utilisation(self, node: str) -> float:
        """How full a node really is, in percent."""
        return size_of(self.placed.on(node), self._sizes_on(node))

    def _sizes_on(self, node: str) -> dict[str, float]:
        """What each operator on a node takes of it."""
        sizes = {operator: self.sizes[operator] for operator in self.placed.on(node)}
        capacity = self._capacities.get(node, 1.0)
        if capacity == 1:
            return sizes
        return {name: round(size / capacity, SIZE_DIGITS) for name, size in sizes.items()}

    def _capacity(self, node: str) -> Capacity:
        own = self._capacities.get(node, 1.0)
        return Capacity(own, own)

    def utilisations(self) -> dict[str, float]:
        """The same of all nodes."""
        return {node: self.utilisation(node) for node in self._nodes}

    # What happens.

    def _push(self, at_s: float, kind: str, subject: Any) -> None:
        self._sequence += 1
        heapq.heappush(self._queue, (at_s, self._sequence, kind, subject))

    def _on_delivery(self, message: NegotiationMessage) -> None:
        node = self._nodes[message.receiver]
        if self.now_s < node.stopped_until_s:
            if not node.is_down:
                self._push(node.stopped_until_s, "message", message)
            return
        own, peer = self._capacity(message.receiver), self._capacity(message.sender)
        what = self.protocol.settings.utilisation
        self._handle(message.receiver, as_heard(message, own, peer, what))

    def _on_wake(self, waking: tuple[str, float]) -> None:
        name, at_s = waking
        node = self._nodes[name]
        if node.wake_at_s != at_s:
            return
        if self.now_s < node.stopped_until_s:
            self._push(node.stopped_until_s, "wake", waking)
            return
        node.wake_at_s = -1.0
        self._handle(name, Tick())

    def _on_size(self, change: SizeChange) -> None:
        self.sizes[change.operator] = change.size
        on = self.placed.node_of(change.operator)
        self._nodes[on].is_stale = True
        self._watcher.on_size(self.now_s, change, on)
        self._note(f"size {change.operator} {change.size:g}")

    def _on_stop(self, outage: Outage) -> None:
        node = self._nodes[outage.node]
        node.stopped_until_s = max(node.stopped_until_s, outage.until_s)
        self._watcher.on_outage(self.now_s, outage)
        self._note(f"{'crash' if outage.is_crash else 'pause'} {outage.node}")
        if not outage.is_crash:
            return
        node.is_down = True
        node.wake_at_s = -1.0
        node.prepared = {}
        self._push(node.stopped_until_s, "begin", outage.node)
        parent = self.placed.nodes.parents[outage.node]
        if outage.taken_over and parent is not None:
            for operator in self.ownership.take_over(outage.node, parent):
                self._nodes[parent].prepared.pop(operator, None)
            self._nodes[parent].is_stale = True
            self._note(f"taken over by {parent}")

    def _on_begin(self, name: str) -> None:
        node = self._nodes[name]
        if not node.is_down:
            return
        if self.now_s < node.stopped_until_s:  # it was stopped again meanwhile
            self._push(node.stopped_until_s, "begin", name)
            return
        node.is_down = node.is_stale = False
        node.state = self._begin_node(name, node.rng, node.state.incarnation + 1)
        self._note(f"begin {name}")
        self._schedule(name)

    # A node and what it wants.

    def _begin_node(self, name: str, rng: np.random.Generator, incarnation: int) -> NegotiatingNode:
        neighbours = self.placed.nodes.neighbours(name)
        view = self._view(name)
        return self.protocol.begin(name, neighbours, view, self.now_s, rng, incarnation)

    def _view(self, name: str) -> LocalView:
        held = tuple(
            HeldOperator(operator, size, self.ownership.epoch(operator))
            for operator, size in self._sizes_on(name).items()
        )
        transfers = self.placed.transfers(name)
        if self._fixed:
            transfers = tuple(some for some in transfers if self._fixed.isdisjoint(some.operators))
        return LocalView(self.utilisation(name), held, transfers)

    def _handle(self, name: str, event: NegotiationMessage | Tick | ChangeRecorded) -> None:
        node = self._nodes[name]
        if node.is_stale:
            self._observe(name)
        before = node.state
        reaction = self.protocol.handle(before, event, self.now_s, node.rng)
        node.state = reaction.state
        self._watcher.on_handled(self.now_s, before, reaction.state)
        for message in reaction.messages:
            self._send(message)
        for instruction in reaction.instructions:
            self._enact(name, instruction)
        self._schedule(name)

    def _observe(self, name: str) -> None:
        """Shows a node what it has; one that is stopped sees it when it goes on."""
        node = self._nodes[name]
        node.is_stale = not self.is_up(name)
        if not node.is_stale:
            observed = Observed(self._view(name))
            node.state = self.protocol.handle(node.state, observed, self.now_s, node.rng).state

    def _schedule(self, name: str) -> None:
        node = self._nodes[name]
        wanted_s = self.protocol.wake_at_s(node.state)
        if node.wake_at_s < 0 or wanted_s < node.wake_at_s:
            node.wake_at_s = wanted_s
            self._push(wanted_s, "wake", (name, wanted_s))

    def _send(self, message: NegotiationMessage) -> None:
        own, peer = self._capacity(message.sender), self._capacity(message.receiver)
        message = as_sent(message, own, peer, self.protocol.settings.utilisation)
        self.messages += 1
        self._watcher.on_message(self.now_s, message)
        if self._is_traced:
            self._note(_describe(message))
        for delay_s in self._links.delays_s(self._rng):
            self._push(self.now_s + delay_s, "message", message)

    def _enact(self, name: str, instruction: Instruction) -> None:
        match instruction:
            case ChangeOwner():
                self._change(name, instruction)
            case Prepare(source=source, operators=operators):
                self._nodes[name].prepared |= dict.fromkeys(operators, source)
            case DropPrepared(operators=operators):
                for operator in operators:
                    self._nodes[name].prepared.pop(operator, None)
            case Refuse(reason=reason):
                self._note(f"refused: {reason}")

    def _change(self, name: str, step: ChangeOwner) -> None:
        done = self.now_s < step.until_s and self.ownership.change(step)
        self.steps += done
        operators = [operator for portion in step.portions for operator in portion.operators]
        self._note(f"{step.source} => {step.target} {' '.join(operators)} {done}")
        if done:
            self.moved += len(operators)
            for node in (step.source, step.target):
                self._observe(node)
            for operator in operators:
                self._nodes[step.target].prepared.pop(operator, None)
        self._watcher.on_step(self.now_s, step, name, done)
        portions = step.portions if done else ()
        self._handle(name, ChangeRecorded(step.negotiation, step.target, portions))

    def _note(self, text: str) -> None:
        if self._is_traced:
            self.trace.append(f"{self.now_s:.6f} {text}")


_ACTIONS: Mapping[str, Callable[[TreeWorld, Any], None]] = {
    "message": TreeWorld._on_delivery,
    "wake": TreeWorld._on_wake,
    "size": TreeWorld._on_size,
    "stop": TreeWorld._on_stop,
    "begin": TreeWorld._on_begin,
}


def _describe(message: NegotiationMessage) -> str:
    portions = "; ".join(
        f"{' '.join(portion.operators)} {portion.size:g}" for portion in message.transfers
    )
    return (
        f"{message.sender} -> {message.receiver} {message.type} {message.negotiation} "
        f"{message.urgent} {message.size:g} [{portions}]"
    )
