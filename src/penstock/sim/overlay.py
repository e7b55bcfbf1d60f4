"""An overlay of nodes that compose queries: messages take time, get lost and come twice.

Events are ordered by (time, sequence), every random choice comes from one seed, so the same seed
gives the same run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf
from random import Random

from penstock.model.protocol import Tick
from penstock.share.discovery import Discovery, HashRing, component_key
from penstock.share.messages import (
    Admitted,
    Envelope,
    Find,
    Instruction,
    Located,
    Message,
    Refused,
    Register,
    Unregister,
)
from penstock.share.node_book import NodeBook
from penstock.share.protocol import CompositionProtocol
from penstock.share.turn import NodeComposition

Delay = Callable[[str, str], float]


@dataclass(frozen=True)
class Faults:
    """What may happen to a message: lost, doubled, or late by up to so many seconds."""

    loss: float = 0.0
    doubling: float = 0.0
    lateness_s: float = 0.0


@dataclass(frozen=True)
class RequestOutcome:
    """What became of a request, and when."""

    at_s: float
    took_s: float
    result: Admitted | Refused


Watcher = Callable[[float, str, Message | Tick, NodeComposition], None]


@dataclass
class Overlay:
    """Simulated nodes that run the composition protocol.

    ``delay_s`` is the time of a message between two nodes; discovery takes ``hop_s`` a hop.
    ``watch`` is called with every event before it is handled, and with the state it will meet.
    """

    books: Sequence[NodeBook]
    protocol: CompositionProtocol
    delay_s: Delay
    seed: int = 0
    faults: Faults = Faults()
    hop_s: float = 0.02
    watch: Watcher | None = None
    discovery: Discovery | None = None
    now_s: float = 0.0
    outcomes: dict[str, RequestOutcome] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    discovery_s: dict[str, float] = field(default_factory=dict)
    hops: int = 0

    def __post_init__(self) -> None:
        self.nodes: Mapping[str, NodeComposition] = {
            book.node: NodeComposition(book) for book in self.books
        }
        self.ring = self.discovery or HashRing([book.node for book in self.books])
        for book in self.books:
            for does in sorted(book.permanent):
                self.ring.register(component_key(does), book.node)
        self._rng = Random(self.seed)
        self._events: list[tuple[float, int, str, Message | Tick]] = []
        self._sequence = 0
        self._asked_s: dict[str, float] = {}
        self._ticks: dict[str, float] = {}

    def submit(self, at_s: float, node: str, message: Message) -> None:
        """Gives a node something from outside, such as a request, at a time."""
        request = getattr(message, "request", "")
        self._asked_s.setdefault(request, at_s)
        self._schedule(at_s, node, message)

    def run(self, until_s: float = inf) -> None:
        """Handles events up to a time, or until nothing is left to happen."""
        while self._events and self._events[0][0] <= until_s:
            self.now_s, _, node, message = heappop(self._events)
            if type(message) is Tick:
                self._ticks.pop(node, None)
            self._handle(node, message)
        if until_s < inf:
            self.now_s = until_s

    def _handle(self, node: str, message: Message | Tick) -> None:
        kind = type(message).__name__
        self.counts[kind] = self.counts.get(kind, 0) + 1
        state = self.nodes[node]
        if self.watch is not None:
            self.watch(self.now_s, node, message, state)
        _, messages, instructions = self.protocol.handle(state, message, self.now_s, self._rng)
        for instruction in instructions:
            self._carry_out(node, instruction)
        for envelope in messages:
            self._deliver(node, envelope)
        self._set_timer(node, state)

    def _carry_out(self, node: str, instruction: Instruction) -> None:
        match instruction:
            case Find(session, token, keys):
                found = {key: self.ring.find(key, node) for key in keys}
                hosts = {key: nodes for key, (nodes, _) in found.items()}
                hops = max(count for _, count in found.values())
                self.hops += sum(count for _, count in found.values())
                took_s = hops * self.hop_s
                self.discovery_s[session] = self.discovery_s.get(session, 0.0) + took_s
                self._schedule(self.now_s + took_s, node, Located(session, token, hosts))
            case Register(key):
                self.ring.register(key, node)
            case Unregister(key):
                self.ring.unregister(key, node)
            case Admitted(request) | Refused(request):
                asked_s = self._asked_s[request]
                self.outcomes[request] = RequestOutcome(
                    self.now_s, self.now_s - asked_s, instruction
                )

    def _deliver(self, sender: str, envelope: Envelope) -> None:
        """Sends a message on its way; what a node tells itself is always heard, at once."""
        if envelope.to == sender:
            self._schedule(self.now_s, sender, envelope.message)
            return
        copies = 1 + (self.faults.doubling > 0 and self._rng.random() < self.faults.doubling)
        for _ in range(copies):
            if self.faults.loss and self._rng.random() < self.faults.loss:
                continue
            late_s = self._rng.random() * self.faults.lateness_s if self.faults.lateness_s else 0.0
            at_s = self.now_s + self.delay_s(sender, envelope.to) + late_s
            self._schedule(at_s, envelope.to, envelope.message)

    def _set_timer(self, node: str, state: NodeComposition) -> None:
        due_s = self.protocol.wake_at_s(state)
        if due_s < self._ticks.get(node, inf):
            self._ticks[node] = due_s
            self._schedule(due_s, node, Tick())

    def _schedule(self, at_s: float, node: str, message: Message | Tick) -> None:
        self._sequence += 1
        heappush(self._events, (at_s, self._sequence, node, message))
