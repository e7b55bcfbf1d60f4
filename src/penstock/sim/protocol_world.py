"""Simulated nodes that run any protocol over links that delay, lose and double messages.

Events are ordered by (time, sequence) and every choice comes from one seed: the same seed gives the
same run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from typing import Any, Generic, TypeVar

import numpy as np

from penstock.model.protocol import Protocol, Tick
from penstock.sim.links import Links

State = TypeVar("State")


class ProtocolWorld(Generic[State]):
    """Runs ``protocol`` on nodes that begin in the given states.

    ``arrival`` turns a message into its receiver and what the receiver is told.
    """

    def __init__(
        self,
        protocol: Protocol[State, Any, Any, Any, np.random.Generator],
        states: Mapping[str, State],
        arrival: Callable[[Any], tuple[str, Any]],
        links: Links | None = None,
        seed: int = 0,
    ) -> None:
        self.now_s = 0.0
        self.states = dict(states)
        self.messages = 0
        self.instructions: list[tuple[float, str, Any]] = []
        self._protocol = protocol
        self._arrival = arrival
        self._links = links or Links()
        self._rng = np.random.default_rng(seed)
        self._events: list[tuple[float, int, str, Any]] = []
        self._sequence = 0
        for node in self.states:
            self.give(0.0, node, Tick())

    def give(self, at_s: float, node: str, event: Any) -> None:
        """Lets something happen to a node at a time."""
        self._sequence += 1
        heappush(self._events, (at_s, self._sequence, node, event))

    def run(self, until_s: float) -> None:
        """Handles all that happens up to a time; logarithmic in what is under way for each."""
        while self._events and self._events[0][0] <= until_s:
            self.now_s, _, node, event = heappop(self._events)
            self._handle(node, event)
        self.now_s = until_s

    def _handle(self, node: str, event: Any) -> None:
        reaction = self._protocol.handle(self.states[node], event, self.now_s, self._rng)
        self.states[node] = reaction.state
        self.instructions += [(self.now_s, node, wanted) for wanted in reaction.instructions]
        for message in reaction.messages:
            self.messages += 1
            to, told = self._arrival(message)
            for delay_s in self._links.delays_s(self._rng):
                self.give(self.now_s + delay_s, to, told)
        if isinstance(event, Tick):
            self.give(max(self.now_s, self._protocol.wake_at_s(reaction.state)), node, Tick())
