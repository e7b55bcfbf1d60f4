"""Nodes tell each other how loaded they are: a protocol, pure.

Every node says what it uses, and what it has heard of others, to a few others at a time; so word
of a node reaches all of them in a few rounds, however many there are, and a lost message costs a
round.
Nobody's clock is compared with another's: what is said carries its age.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from penstock.model.protocol import Protocol, Reaction, Tick


@dataclass(frozen=True)
class Load:
    """What a node uses: the share of its cores, and memory."""

    cpu: float
    memory_bytes: int


@dataclass(frozen=True)
class Word:
    """What is known of a node's load; ``count`` grows with every one it says in one life."""

    life: str
    count: int
    load: Load
    age_s: float


@dataclass(frozen=True)
class TellLoads:
    """A message: to whom, and what is said, by node."""

    to: str
    words: Mapping[str, Word]


@dataclass(frozen=True)
class LoadsHeard:
    """A message has come."""

    words: Mapping[str, Word]


@dataclass(frozen=True)
class LoadMeasured:
    """The node has measured itself; ``others`` are the nodes that can be told."""

    load: Load
    life: str
    others: tuple[str, ...]


@dataclass(frozen=True)
class GossipState:
    """What a node has heard, and when by its own clock: ``heard`` maps nodes to (word, when)."""

    node: str
    others: tuple[str, ...] = ()
    own: Word | None = None
    heard: Mapping[str, tuple[Word, float]] = field(default_factory=dict)
    measured_s: float = 0.0
    tell_at_s: float = 0.0


GossipEvent = LoadMeasured | LoadsHeard


@dataclass(frozen=True)
class LoadGossip(Protocol[GossipState, GossipEvent, TellLoads, None, np.random.Generator]):
    """Tells ``told_at_once`` others every ``every_s``; forgets what is older than ``kept_s``.

    >>> gossip, rng = LoadGossip(), np.random.default_rng(1)
    >>> measured = LoadMeasured(Load(0.5, 1 << 20), "a-1", ("b",))
    >>> state = gossip.handle(GossipState("a"), measured, 10.0, rng).state
    >>> state, (message,), _ = gossip.handle(state, Tick(), 10.5, rng)
    >>> message.to, message.words["a"].load.cpu, message.words["a"].age_s
    ('b', 0.5, 0.5)
    >>> heard = gossip.handle(GossipState("b"), LoadsHeard(message.words), 77.0, rng).state
    >>> gossip.ages_s(heard, 78.0)
    {'a': 1.5}
    """

    name: ClassVar[str] = "loads"
    every_s: float = 1.0
    kept_s: float = 60.0
    told_at_once: int = 3

    def handle(
        self,
        state: GossipState,
        event: GossipEvent | TellLoads | Tick,
        now_s: float,
        rng: np.random.Generator,
    ) -> Reaction[GossipState, TellLoads, None]:
        """What a node knows after an event, and whom it tells."""
        match event:
            case LoadMeasured():
                return Reaction(self._on_measured(state, event, now_s))
            case LoadsHeard(words):
                return Reaction(self._on_heard(state, words, now_s))
            case _:
                return self._on_tick(state, now_s, rng)

    def wake_at_s(self, state: GossipState) -> float:
        """When it tells others next."""
        return state.tell_at_s

    def ages_s(self, state: GossipState, now_s: float) -> dict[str, float]:
        """How old what it has heard of each other node is, but for the time it was on its way."""
        known = {node: word.age_s + now_s - at_s for node, (word, at_s) in state.heard.items()}
        return {node: round(age_s, 3) for node, age_s in sorted(known.items())}

    def _on_measured(self, state: GossipState, event: LoadMeasured, now_s: float) -> GossipState:
        is_same_life = state.own is not None and state.own.life == event.life
        count = state.own.count + 1 if is_same_life and state.own is not None else 0
        own = Word(event.life, count, event.load, 0.0)
        others = tuple(name for name in event.others if name != state.node)
        return replace(state, own=own, others=others, measured_s=now_s)

    def _on_heard(self, state: GossipState, words: Mapping[str, Word], now_s: float) -> GossipState:
        news = {
            node: (word, now_s)
            for node, word in words.items()
            if node != state.node
            and word.age_s < self.kept_s
            and _is_news(state, node, word, now_s)
        }
        return replace(state, heard={**state.heard, **news})

    def _on_tick(
        self, state: GossipState, now_s: float, rng: np.random.Generator
    ) -> Reaction[GossipState, TellLoads, None]:
        if now_s < state.tell_at_s:
            return Reaction(state)
        heard = {
            node: (word, at_s)
            for node, (word, at_s) in state.heard.items()
            if word.age_s + now_s - at_s < self.kept_s
        }
        state = replace(state, heard=heard, tell_at_s=now_s + self.every_s)
        words = {n: replace(w, age_s=w.age_s + now_s - at_s) for n, (w, at_s) in heard.items()}
        if state.own is not None:
            words[state.node] = replace(state.own, age_s=now_s - state.measured_s)
        count = min(self.told_at_once, len(state.others)) if words else 0
        told = sorted(rng.choice(state.others, count, replace=False)) if count else []
        return Reaction(state, tuple(TellLoads(str(name), words) for name in told))


def _is_news(state: GossipState, node: str, word: Word, now_s: float) -> bool:
    """Whether it is later than what is known; the same heard again is not."""
    if node not in state.heard:
        return True
    known, at_s = state.heard[node]
    if known.life == word.life:
        return word.count > known.count
    return word.age_s < known.age_s + now_s - at_s
