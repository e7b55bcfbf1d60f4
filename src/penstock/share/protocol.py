"""Composition as a protocol between nodes: every node composes, and every node answers.

``handle(state, event, now_s, rng) -> (state, messages, instructions)`` has no clock, no network and
no global random state. It changes the state it is given and gives it back. Messages may be lost,
late or doubled: answers are waited for a limited time, reservations expire, what must not be lost
is said again until it is acknowledged, and what was heard before is recognised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from heapq import heappop
from random import Random
from typing import Any, ClassVar

from penstock.model.protocol import Protocol, Reaction, Tick
from penstock.share import composer, probing, sessions
from penstock.share.answers import CompositionOptions
from penstock.share.messages import (
    Accepted,
    Arrived,
    Compose,
    Confirm,
    Confirmed,
    Declined,
    Envelope,
    Finish,
    Instruction,
    Located,
    Measured,
    Message,
    Probe,
    Released,
    ReleaseSession,
    Spent,
    Unconfirmed,
    request_of,
)
from penstock.share.turn import NodeComposition, Turn


@dataclass(frozen=True)
class CompositionProtocol(Protocol[NodeComposition, Message, Envelope, Instruction, Random]):
    """The rules by which nodes compose queries.

    >>> from penstock.model.composition import PlanOperator, QueryPlan
    >>> from penstock.share.node_book import NodeBook
    >>> state = NodeComposition(NodeBook("v1"))
    >>> plan = QueryPlan((PlanOperator("o1", need=0.1, tau_s=0.01),), limit_s=1.0)
    >>> handle = CompositionProtocol().handle
    >>> state, messages, instructions = handle(state, Compose("q1", plan), 0.0, Random(1))
    >>> messages, instructions
    ([], [Find(session='q1~0', token=2, keys=('stream o1()',))])
    """

    name: ClassVar[str] = "compose"
    options: CompositionOptions = field(default_factory=CompositionOptions)

    def handle(
        self,
        state: NodeComposition,
        event: Message | Envelope | Tick,
        now_s: float,
        rng: Random,
    ) -> Reaction[NodeComposition, Envelope, Instruction]:
        """The state after an event, what to send, and what to do."""
        turn = Turn(state, now_s, rng, self.options)
        state.book.expire(now_s)
        state.forget(now_s)
        while state.timers and state.timers[0][0] <= now_s:
            _, _, what, about = heappop(state.timers)
            _REMINDERS[what](turn, about)
        _HANDLERS[type(event)](turn, event)
        return Reaction(state, turn.messages, turn.instructions)

    def wake_at_s(self, state: NodeComposition) -> float:
        """When the next answer or reservation runs out."""
        return state.next_timer_s()


def _on_located(turn: Turn, found: Located) -> None:
    if found.token in turn.state.hops:
        probing.on_located(turn, found.token, found)
        return
    composing = turn.state.composing.get(request_of(found.session))
    if composing is not None:
        composer.on_streams_located(turn, composing, found)


_HANDLERS: Mapping[type[Any], Callable[[Turn, Any], None]] = {
    Compose: composer.on_compose,
    Located: _on_located,
    Probe: probing.on_probe,
    Accepted: probing.on_accepted,
    Declined: probing.on_declined,
    Arrived: composer.on_arrived,
    Spent: composer.on_spent,
    Confirm: sessions.on_confirm,
    Confirmed: composer.on_confirmed,
    Unconfirmed: composer.on_unconfirmed,
    ReleaseSession: sessions.on_release,
    Released: composer.on_released,
    Finish: composer.on_finish,
    Measured: sessions.on_measured,
    Tick: lambda turn, event: None,
}

_REMINDERS: Mapping[str, Callable[[Turn, Any], None]] = {
    "hop": lambda turn, about: probing.on_silence(turn, *about),
    "collect": lambda turn, about: composer.on_collected(turn, *about),
    "confirm": lambda turn, about: composer.on_unheard_confirms(turn, *about),
    "release": lambda turn, about: composer.say_releases(turn, about),
}
