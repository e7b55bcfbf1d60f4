"""What a node knows while queries are composed, and one turn of handling an event."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf
from random import Random
from typing import Any

from penstock.model.composition import QueryPlan
from penstock.share.answers import CompositionOptions
from penstock.share.messages import Ask, Envelope, Instruction, Message, ProbedStep, Reason
from penstock.share.node_book import NodeBook
from penstock.share.selection import ProbedGraph, ProbedPaths

Reminder = tuple[float, int, str, Any]
"""When, a number to tell equal times apart, about which kind of thing, and about which one."""


@dataclass
class ProbeSearch:
    """What every probe of an attempt carries: the plan, what exists of it, and who composes."""

    session: str
    composer: str
    plan: QueryPlan
    reused: frozenset[str]
    needed: frozenset[str]
    anew: bool = False


@dataclass
class Hop:
    """A node looking for somebody to run the next operator of a path.

    ``sites`` are where it may still be deployed, ``pool`` is the credit that has come back,
    ``asked`` are the questions that are still open.
    """

    search: ProbeSearch
    operator: str
    steps: tuple[ProbedStep, ...]
    pool: float
    may_deploy: bool = True
    sites: list[str] = field(default_factory=list)
    asked: set[Ask] = field(default_factory=set)
    accepted: int = 0
    reasons: list[Reason] = field(default_factory=list)
    round: int = 0


@dataclass
class Composing:
    """A request that a node composes: the attempt it is in and what that has brought so far."""

    request: str
    plan: QueryPlan
    attempt: int = 0
    anew: bool = False
    barred: frozenset[str] = frozenset()
    reasons: list[Reason] = field(default_factory=list)
    phase: str = "looking up"
    token: int = 0
    level: tuple[str, ...] = ()
    seen: set[str] = field(default_factory=set)
    hosts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    needed: set[str] = field(default_factory=set)
    paths: ProbedPaths | None = None
    started: set[str] = field(default_factory=set)
    credit: float = 0.0
    graph: ProbedGraph | None = None
    confirms: dict[str, Message] = field(default_factory=dict)
    tries: int = 0


@dataclass
class NodeComposition:
    """The state of one node."""

    book: NodeBook
    hops: dict[int, Hop] = field(default_factory=dict)
    asks: dict[Ask, int] = field(default_factory=dict)
    composing: dict[str, Composing] = field(default_factory=dict)
    sessions: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Admitted requests composed here: the session and the nodes it uses, by request."""
    releasing: dict[str, set[str]] = field(default_factory=dict)
    running: dict[str, str] = field(default_factory=dict)
    """By request: the session confirmed here."""
    closed: set[str] = field(default_factory=set)
    heard: set[Ask] = field(default_factory=set)
    explored: set[tuple[str, str]] = field(default_factory=set)
    timers: list[Reminder] = field(default_factory=list)
    memories: deque[tuple[float, set[Any], object]] = field(default_factory=deque)
    """What may be forgotten, and when; nobody is woken for that."""
    counter: int = 0

    @property
    def node(self) -> str:
        return self.book.node

    def next_timer_s(self) -> float:
        """When the node next has something to do by itself; reminders that came to nothing go."""
        while self.timers and not self._is_due(self.timers[0]):
            heappop(self.timers)
        due_s = self.timers[0][0] if self.timers else inf
        return min(due_s, self.book.next_expiry_s())

    def _is_due(self, reminder: Reminder) -> bool:
        _, _, what, about = reminder
        match what, about:
            case "hop", (token, round):
                hop = self.hops.get(token)
                return hop is not None and hop.round == round
            case "release", session:
                return session in self.releasing
            case _, (request, attempt, *_):
                composing = self.composing.get(request)
                return composing is not None and composing.attempt == attempt
        return True

    def forget(self, now_s: float) -> None:
        """Lets go of what no message can be about any more."""
        while self.memories and self.memories[0][0] <= now_s:
            _, memory, about = self.memories.popleft()
            memory.discard(about)


@dataclass
class Turn:
    """One event being handled: the state, the time, and what comes of it."""

    state: NodeComposition
    now_s: float
    rng: Random
    options: CompositionOptions
    messages: list[Envelope] = field(default_factory=list)
    instructions: list[Instruction] = field(default_factory=list)

    def send(self, to: str, message: Message) -> None:
        self.messages.append(Envelope(to, message))

    def next_number(self) -> int:
        self.state.counter += 1
        return self.state.counter

    def remember(self, memory: set[Any], about: object) -> None:
        """Keeps something in mind for as long as a message about it may come."""
        if about not in memory:
            memory.add(about)
            self.state.memories.append((self.now_s + self.options.remember_s, memory, about))

    def remind(self, after_s: float, what: str, about: Any) -> None:
        """Calls for attention after some time."""
        due = (self.now_s + after_s, self.next_number(), what, about)
        heappush(self.state.timers, due)
