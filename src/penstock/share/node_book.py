"""What a node has given away: components it runs, reservations it holds, applications it serves.

Reservations are transient: each has a time after which it counts no more. A node books its own
processor and what comes in over its links, so nobody else can overbook either.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf
from typing import NamedTuple

_ROUNDING = 1e-9
"""Sums of shares may be off by this much."""


class ServedApp(NamedTuple):
    """An application as one of its nodes knows it: limit, time now, sum of taus on this node."""

    limit_s: float
    time_s: float
    tau_s: float


@dataclass
class Component:
    """A running operator: what it takes and who uses it.

    ``lineage`` are the components it is computed from, itself included, as (node, name); whoever
    reuses its stream uses all of them. ``time_s`` is how long a tuple took when it left, from its
    source; ``is_new`` says that it was deployed for a request.
    """

    name: str
    stream: str
    does: str
    need: float
    tau_s: float
    time_s: float
    lineage: tuple[tuple[str, str], ...]
    links: tuple[tuple[str, float], ...] = ()
    is_new: bool = False
    users: set[str] = field(default_factory=set)


class Held(NamedTuple):
    """A reservation: a share of the processor, or of the link from ``upstream``."""

    upstream: str
    amount: float
    until_s: float


def edge_from(input: str, upstream: str) -> str:
    """Names an input of an operator by where it comes from: several nodes may be candidates."""
    return f"{input}@{upstream}"


@dataclass
class NodeBook:
    """All that decides whether a node can take more; ``used`` and ``link_used`` are kept as sums.

    ``background`` is load that is not Penstock's; ``permanent`` are the operators of which the node
    always offers components.
    """

    node: str
    capacity: float = 1.0
    link_capacity: float = 1.0
    background: float = 0.0
    permanent: frozenset[str] = frozenset()
    components: dict[str, Component] = field(default_factory=dict)
    streams: dict[str, list[str]] = field(default_factory=dict)
    apps: dict[str, ServedApp] = field(default_factory=dict)
    held: dict[tuple[str, str, str], Held] = field(default_factory=dict)
    booked: float = 0.0
    reserved: float = 0.0
    reserved_for: dict[str, float] = field(default_factory=dict)
    link_used: dict[str, float] = field(default_factory=dict)
    _expiries: list[tuple[float, tuple[str, str, str]]] = field(default_factory=list)
    _tightest: float | None = None

    @property
    def load(self) -> float:
        """The share of the node that work uses now."""
        return self.background + self.booked

    @property
    def promised(self) -> float:
        """The same with what is reserved."""
        return self.load + self.reserved

    def residual(self) -> float:
        return self.capacity - self.promised

    def link_residual(self, upstream: str) -> float:
        return self.link_capacity - self.link_used.get(upstream, 0.0)

    def fits(self, need: float) -> bool:
        return need <= self.residual() + _ROUNDING

    def link_fits(self, upstream: str, bandwidth: float) -> bool:
        return bandwidth <= self.link_residual(upstream) + _ROUNDING

    def holds(self, request: str, operator: str) -> bool:
        """Whether processor is reserved for an operator of a request."""
        return (request, operator, "") in self.held

    def holds_link(self, request: str, edge: tuple[str, str], upstream: str) -> bool:
        """Whether the link from ``upstream`` is reserved for an (input, operator) of a request."""
        return (request, edge[1], edge_from(edge[0], upstream)) in self.held

    def reserved_by(self, request: str) -> float:
        """How much of the processor a request has reserved."""
        return self.reserved_for.get(request, 0.0)

    def reserve(self, request: str, operator: str, need: float, until_s: float) -> None:
        """Reserves processor for an operator, once."""
        self._hold((request, operator, ""), Held("", need, until_s))

    def reserve_link(
        self, request: str, edge: tuple[str, str], upstream: str, bandwidth: float, until_s: float
    ) -> None:
        """Reserves the link from ``upstream`` for an (input, operator) of a request, once."""
        key = (request, edge[1], edge_from(edge[0], upstream))
        self._hold(key, Held(upstream, bandwidth, until_s))

    def _hold(self, key: tuple[str, str, str], held: Held) -> None:
        if key in self.held:
            return
        self.held[key] = held
        self._reserve(key[0], held.upstream, held.amount)
        heappush(self._expiries, (held.until_s, key))

    def expire(self, now_s: float) -> None:
        """Lets go of reservations whose time is over."""
        while self._expiries and self._expiries[0][0] <= now_s:
            until_s, key = heappop(self._expiries)
            found = self.held.get(key)
            if found is not None and found.until_s == until_s:
                self._let_go(key)

    def next_expiry_s(self) -> float:
        """When the next reservation expires that is still held."""
        while self._expiries:
            until_s, key = self._expiries[0]
            found = self.held.get(key)
            if found is not None and found.until_s == until_s:
                return until_s
            heappop(self._expiries)
        return inf

    def forget(self, request: str) -> None:
        """Lets go of all reservations of a request at once."""
        for key in [key for key in self.held if key[0] == request]:
            self._let_go(key)

    def run(self, component: Component) -> None:
        """Books a component for good; its reservations must have been let go."""
        self.components[component.name] = component
        self.streams.setdefault(component.stream, []).append(component.name)
        self._book("", component.need)
        for upstream, bandwidth in component.links:
            self._book(upstream, bandwidth)

    def component_of(self, stream: str) -> Component | None:
        """The oldest component here that gives a stream."""
        names = self.streams.get(stream)
        return self.components[names[0]] if names else None

    def has_stream(self, stream: str) -> bool:
        return stream in self.streams

    def offers(self, does: str) -> bool:
        """Whether others may find components of an operator here."""
        return does in self.permanent or any(
            component.is_new and component.does == does for component in self.components.values()
        )

    def use(self, app: str, names: Iterable[str], limit_s: float, time_s: float) -> None:
        """Makes an application a user of components that run here."""
        tau_s = 0.0
        for name in names:
            self.components[name].users.add(app)
            tau_s += self.components[name].tau_s
        known = self.apps.get(app)
        self.apps[app] = ServedApp(limit_s, time_s, tau_s + (known.tau_s if known else 0.0))
        self._tightest = None

    def leave(self, app: str) -> list[Component]:
        """Ends an application; gives the components that nobody uses any more, which stop."""
        if self.apps.pop(app, None) is None:
            return []
        self._tightest = None
        stopped = []
        for component in list(self.components.values()):
            component.users.discard(app)
            if not component.users:
                self._stop(component)
                stopped.append(component)
        return stopped

    def note_time(self, app: str, time_s: float) -> None:
        """Takes the measured time of an application in place of the projected one."""
        known = self.apps.get(app)
        if known is not None:
            self.apps[app] = known._replace(time_s=time_s)
            self._tightest = None

    def stretch(self, need: float) -> float:
        """By how many times its tau any component here would take longer with ``need`` more."""
        after = self.promised + need
        if after >= 1 or self.load >= 1:
            return inf
        return 1 / (1 - after) - 1 / (1 - self.load)

    def broken_apps(self, need: float) -> list[str]:
        """The applications that would miss their limits with ``need`` more; usually O(1)."""
        stretch = self.stretch(need)
        if stretch <= self.tightest():
            return []
        return [
            name
            for name, app in self.apps.items()
            if app.time_s + app.tau_s * stretch > app.limit_s + _ROUNDING
        ]

    def tightest(self) -> float:
        """The largest stretch that every application here can take."""
        if self._tightest is None:
            self._tightest = min(
                ((app.limit_s - app.time_s) / app.tau_s for app in self.apps.values() if app.tau_s),
                default=inf,
            )
        return self._tightest

    def _reserve(self, request: str, upstream: str, amount: float) -> None:
        if upstream:
            self._book(upstream, amount)
        else:
            self.reserved += amount
            self.reserved_for[request] = self.reserved_for.get(request, 0.0) + amount

    def _book(self, upstream: str, amount: float) -> None:
        if upstream:
            self.link_used[upstream] = self.link_used.get(upstream, 0.0) + amount
        else:
            self.booked += amount

    def _let_go(self, key: tuple[str, str, str]) -> None:
        found = self.held.pop(key)
        self._reserve(key[0], found.upstream, -found.amount)
        if not found.upstream and abs(self.reserved_for[key[0]]) < _ROUNDING:
            del self.reserved_for[key[0]]
        if not self.held:
            self.reserved = 0.0

    def _stop(self, component: Component) -> None:
        del self.components[component.name]
        self.streams[component.stream].remove(component.name)
        if not self.streams[component.stream]:
            del self.streams[component.stream]
        self._book("", -component.need)
        for upstream, bandwidth in component.links:
            self._book(upstream, -bandwidth)
        if not self.components:
            self.booked = 0.0
