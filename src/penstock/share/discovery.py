"""Discovery: who has a stream, who can run an operator. Names are looked up by their SHA-1 key."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

from penstock.model.composition import QueryPlan

_BITS = 160


def stream_key(name: str) -> str:
    """What a stream is registered under."""
    return f"stream {name}"


def component_key(does: str) -> str:
    """What components of an operator are registered under."""
    return f"component {does}"


class Discovery(Protocol):
    """Where metadata are kept: a ring of nodes in the simulator, the catalog in a live system."""

    def register(self, key: str, node: str) -> None: ...

    def unregister(self, key: str, node: str) -> None: ...

    def find(self, key: str, asked_by: str) -> tuple[tuple[str, ...], int]:
        """The nodes registered under ``key``, in order of their names, and hops to learn it."""
        ...


@lru_cache(maxsize=1 << 16)
def key_of(name: str) -> int:
    """The place of a name on the ring: its SHA-1."""
    return int.from_bytes(hashlib.sha1(name.encode()).digest())


@dataclass
class HashRing:
    """Nodes on a ring, each with fingers half, a quarter, … of the ring ahead.

    A key belongs to the first node at or after it. Looking it up takes a hop for every finger that
    brings one closer: about half of log2(nodes).

    >>> ring = HashRing(["a", "b", "c"])
    >>> ring.register("stream o1()", "b")
    >>> ring.find("stream o1()", "a")[0]
    ('b',)
    """

    nodes: Sequence[str]
    _places: list[int] = field(init=False)
    _by_place: list[str] = field(init=False)
    _held: dict[str, set[str]] = field(init=False, default_factory=dict)
    _hops: dict[tuple[int, int], int] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        ordered = sorted((key_of(node), node) for node in self.nodes)
        self._places = [place for place, _ in ordered]
        self._by_place = [node for _, node in ordered]

    def register(self, key: str, node: str) -> None:
        self._held.setdefault(key, set()).add(node)

    def unregister(self, key: str, node: str) -> None:
        holders = self._held.get(key, set())
        holders.discard(node)
        if not holders:
            self._held.pop(key, None)

    def find(self, key: str, asked_by: str) -> tuple[tuple[str, ...], int]:
        found = self._held.get(key, ())
        return tuple(sorted(found)), self._count_hops(asked_by, self._owner(key_of(key)))

    def __len__(self) -> int:
        return len(self._held)

    def _owner(self, place: int) -> int:
        return bisect_left(self._places, place) % len(self._places)

    def _count_hops(self, asked_by: str, owner: int) -> int:
        """Hops over fingers: each goes as far towards the owner as a power of two allows."""
        at = self._owner(key_of(asked_by))
        start = at
        known = self._hops.get((start, owner))
        if known is not None:
            return known
        hops = 0
        while at != owner:
            at = self._closest(at, owner)
            hops += 1
        self._hops[start, owner] = hops
        return hops

    def _closest(self, at: int, owner: int) -> int:
        here, there = self._places[at], self._places[owner]
        distance = (there - here) % (1 << _BITS)
        finger = self._owner((here + (1 << (distance.bit_length() - 1))) % (1 << _BITS))
        ahead = (self._places[finger] - here) % (1 << _BITS)
        return finger if 0 < ahead <= distance else owner


@dataclass(frozen=True)
class SharablePoints:
    """What of a plan exists already and is reused, what is still needed, how much was looked up."""

    reused: tuple[str, ...]
    needed: tuple[str, ...]
    looked_up: int


def sharable_points(plan: QueryPlan, exists: Callable[[str], bool]) -> SharablePoints:
    """The maximum sharable points: the first existing streams met backwards from the results.

    Nothing upstream of a stream that exists is looked up, let alone computed.

    >>> from penstock.model.composition import PlanOperator
    >>> chain = (PlanOperator("a"), PlanOperator("b", ("a",)), PlanOperator("c", ("b",)))
    >>> sharable_points(QueryPlan(chain, 1.0), lambda stream: stream == "b(a())")
    SharablePoints(reused=('b',), needed=('c',), looked_up=2)
    """
    reused: list[str] = []
    needed: set[str] = set()
    level, seen = list(plan.results), set(plan.results)
    while level:
        here = [name for name in level if exists(plan.streams[name])]
        reused += here
        missing = [name for name in level if name not in here]
        needed.update(missing)
        level = _unseen((read for name in missing for read in plan.by_name[name].inputs), seen)
    in_order = tuple(operator.name for operator in plan.operators if operator.name in needed)
    return SharablePoints(tuple(reused), in_order, len(seen))


def _unseen(names: Iterable[str], seen: set[str]) -> list[str]:
    fresh = [name for name in dict.fromkeys(names) if name not in seen]
    seen.update(fresh)
    return fresh
