"""What a new query would do to those that run, from what was measured: pure.

What is measured contains the load that is there already. A node with the load p, of which new work
takes p_c more, makes a batch that takes t now take t p_c / (1 - p - p_c) longer; a result is later
by the largest sum of that on the way to it. What has not been measured yet is not judged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property


@dataclass(frozen=True)
class MeasuredNode:
    """A node: the share of its cores that is in use, on average and at most in a while.

    ``load`` is None where too little was measured.
    """

    name: str
    cores: int
    load: float | None = None
    peak: float | None = None


@dataclass(frozen=True)
class MeasuredFragment:
    """A fragment that runs: where, for whom, how long its batches take and how old results are.

    ``reads`` are the fragments it reads. ``latency_s`` is counted from the entry of rows into the
    system; None where too little was measured. ``cores`` is what it uses of its node.
    """

    name: str
    query: str
    node: str
    batch_s: float = 0.0
    latency_s: float | None = None
    limit_s: float | None = None
    reads: tuple[str, ...] = ()
    cores: float = 0.0


@dataclass(frozen=True)
class NewWork:
    """A fragment that is to come: what it would need, and how long it may take.

    ``cores`` is None where nobody knows what it costs, ``round_s`` how often it looks for rows,
    ``batch_s`` what a batch takes on an idle node.
    """

    name: str
    node: str
    cores: float | None = None
    batch_s: float = 0.0
    round_s: float = 0.0
    limit_s: float | None = None
    reads: tuple[str, ...] = ()


@dataclass(frozen=True)
class TouchedQuery:
    """A running query with work on a node that gets more: its latency before and after."""

    query: str
    before_s: float
    after_s: float
    limit_s: float | None

    @property
    def is_late(self) -> bool:
        """Whether it would take longer than it may."""
        return self.limit_s is not None and self.after_s > self.limit_s


@dataclass(frozen=True)
class Impact:
    """What new work comes to: the time to its results, and what happens to the others.

    ``loads`` are those of nodes that get something, ``peaks`` the same in bursts. ``phi`` is how
    much of what is left of nodes it takes, less is better.
    """

    latency_s: float | None
    limit_s: float | None
    touched: tuple[TouchedQuery, ...]
    loads: Mapping[str, float]
    peaks: Mapping[str, float]
    phi: float = 0.0

    @property
    def full(self) -> tuple[str, ...]:
        """The nodes that would not keep up on average."""
        return tuple(sorted(name for name, load in self.loads.items() if load >= 1))

    @property
    def is_late(self) -> bool:
        """Whether its own limit would be broken."""
        known = self.limit_s is not None and self.latency_s is not None
        return known and self.latency_s > self.limit_s  # type: ignore[operator]

    @property
    def late(self) -> tuple[TouchedQuery, ...]:
        """The running queries whose limits would be broken."""
        return tuple(touched for touched in self.touched if touched.is_late)

    @property
    def fits(self) -> bool:
        """Whether all limits are kept; without any, a full node is only slow."""
        has_limits = self.limit_s is not None or any(
            touched.limit_s is not None for touched in self.touched
        )
        return not (self.is_late or self.late or (has_limits and self.full))


@dataclass(frozen=True)
class MeasuredSystem:
    """All that runs, as measured."""

    nodes: tuple[MeasuredNode, ...]
    fragments: tuple[MeasuredFragment, ...]

    @cached_property
    def _by_name(self) -> Mapping[str, MeasuredFragment]:
        return {fragment.name: fragment for fragment in self.fragments}

    def with_new(self, work: Iterable[NewWork]) -> Impact:
        """What comes of new work, fragments before those that read them. Linear in all of it."""
        new = tuple(work)
        added: dict[str, float] = {}
        for new_work in new:
            added[new_work.node] = added.get(new_work.node, 0.0) + (new_work.cores or 0.0)
        shares = {
            node.name: added[node.name] / node.cores for node in self.nodes if node.name in added
        }
        known = {node.name: node for node in self.nodes}
        loads = {
            name: known[name].load + share  # type: ignore[operator]
            for name, share in shares.items()
            if known[name].load is not None
        }
        peaks = {
            name: known[name].peak + share  # type: ignore[operator]
            for name, share in shares.items()
            if known[name].peak is not None
        }
        delays = self._delays(shares, loads)
        touched = self._touched(delays)
        latency_s = self._latency_s(new, delays, loads) if new else None
        limits = [new_work.limit_s for new_work in new if new_work.limit_s is not None]
        phi = sum(shares[name] / max(1e-9, 1 - load + shares[name]) for name, load in loads.items())
        return Impact(latency_s, min(limits, default=None), touched, loads, peaks, phi)

    def _delays(self, shares: Mapping[str, float], loads: Mapping[str, float]) -> dict[str, float]:
        """How much later the results of each running fragment would be."""
        found: dict[str, float] = {}
        for fragment in self.fragments:
            own = 0.0
            if fragment.node in loads and shares[fragment.node] > 0:
                left = 1.0 - loads[fragment.node]
                own = fragment.batch_s * shares[fragment.node] / left if left > 0 else math.inf
            found[fragment.name] = own + max(
                (found.get(name, 0.0) for name in fragment.reads), default=0.0
            )
        return found

    def _touched(self, delays: Mapping[str, float]) -> tuple[TouchedQuery, ...]:
        """By query that of its fragments whose results are the latest, or break its limit."""
        found: dict[str, TouchedQuery] = {}
        for fragment in self.fragments:
            if not delays[fragment.name] or fragment.latency_s is None:
                continue
            after_s = fragment.latency_s + delays[fragment.name]
            made = TouchedQuery(fragment.query, fragment.latency_s, after_s, fragment.limit_s)
            known = found.get(fragment.query)
            if known is None or (made.is_late, made.after_s) > (known.is_late, known.after_s):
                found[fragment.query] = made
        return tuple(found[name] for name in sorted(found))

    def _latency_s(
        self, new: Iterable[NewWork], delays: Mapping[str, float], loads: Mapping[str, float]
    ) -> float | None:
        """The time from the entry of a row until the last of the new results is out."""
        known: dict[str, float | None] = {
            fragment.name: None
            if fragment.latency_s is None
            else fragment.latency_s + delays[fragment.name]
            for fragment in self.fragments
        }
        worst: float | None = 0.0
        for new_work in new:
            behind = [known.get(name, 0.0) for name in new_work.reads]
            left = 1.0 - loads.get(new_work.node, 0.0)
            batch_s = new_work.batch_s / left if left > 0 else math.inf
            told = [time_s for time_s in behind if time_s is not None]
            if len(told) < len(behind) or new_work.cores is None:
                known[new_work.name] = None
            else:
                known[new_work.name] = max(told, default=0.0) + new_work.round_s + batch_s
            mine = known[new_work.name]
            worst = None if worst is None or mine is None else max(worst, mine)
        return worst

    def moved(self, fragment: str, node: str) -> MeasuredSystem:
        """The same with a running fragment on another node."""
        moving = self._by_name[fragment]
        fragments = tuple(
            replace(measured, node=node) if measured.name == fragment else measured
            for measured in self.fragments
        )
        changes = {moving.node: -moving.cores, node: moving.cores}
        nodes = tuple(
            _changed(measured_node, changes.get(measured_node.name, 0.0))
            for measured_node in self.nodes
        )
        return MeasuredSystem(nodes, fragments)

    def with_node(self, name: str, cores: int) -> MeasuredSystem:
        """The same with one more node, on which nothing runs."""
        return MeasuredSystem((*self.nodes, MeasuredNode(name, cores, 0.0, 0.0)), self.fragments)


def _changed(node: MeasuredNode, cores: float) -> MeasuredNode:
    share = cores / node.cores
    return replace(
        node,
        load=None if node.load is None else max(0.0, node.load + share),
        peak=None if node.peak is None else max(0.0, node.peak + share),
    )


def on(work: Iterable[NewWork], node: str) -> tuple[NewWork, ...]:
    """The same work, all of it on one node."""
    return tuple(replace(new_work, node=node) for new_work in work)


def chosen(
    situation: MeasuredSystem,
    planned: tuple[NewWork, ...],
    may_go: Callable[[str], bool] = lambda _: True,
) -> tuple[tuple[NewWork, ...], Impact]:
    """Where new work is to go: as planned if that fits, else where it fits and takes least.

    As planned as well if it fits nowhere.
    """
    first = planned, situation.with_new(planned)
    if first[1].fits:
        return first
    others = [on(planned, node.name) for node in situation.nodes if may_go(node.name)]
    fitting = [(work, impact) for work in others if (impact := situation.with_new(work)).fits]
    return min(fitting, key=lambda found: found[1].phi, default=first)


_MOVES_TRIED = 8
_NEW_NODE = "one more"


@dataclass(frozen=True)
class Help:
    """Something that would let new work fit, checked by the same projection."""

    kind: str
    text: str


def what_would_help(
    situation: MeasuredSystem, work: tuple[NewWork, ...], impact: Impact
) -> tuple[Help, ...]:
    """What would let new work fit that does not: a longer limit, another node, a move, a node."""
    found: list[Help] = []
    longer = _longer_limit(situation, work, impact)
    if longer is not None:
        found.append(longer)
    for node in situation.nodes:
        if situation.with_new(on(work, node.name)).fits:
            found.append(Help("node", f"on: {node.name}"))
            break
    move = _helping_move(situation, work)
    if move is not None:
        found.append(move)
    cores = max((node.cores for node in situation.nodes), default=1)
    if situation.with_node(_NEW_NODE, cores).with_new(on(work, _NEW_NODE)).fits:
        found.append(Help("one more node", "one more node"))
    return tuple(found)


def _longer_limit(
    situation: MeasuredSystem, work: tuple[NewWork, ...], impact: Impact
) -> Help | None:
    if not impact.is_late or impact.latency_s is None or not math.isfinite(impact.latency_s):
        return None
    limit_s = float(math.ceil(impact.latency_s * 1.1 * 10)) / 10
    longer = [
        new_work if new_work.limit_s is None else replace(new_work, limit_s=limit_s)
        for new_work in work
    ]
    if not situation.with_new(longer).fits:
        return None
    return Help("limit", f"--max-latency {limit_s:g}s")


def _helping_move(situation: MeasuredSystem, work: tuple[NewWork, ...]) -> Help | None:
    crowded = {new_work.node for new_work in work}
    movable = sorted(
        (fragment for fragment in situation.fragments if fragment.node in crowded),
        key=lambda fragment: (-fragment.cores, fragment.name),
    )
    for fragment in movable[:_MOVES_TRIED]:
        for node in situation.nodes:
            if (
                node.name != fragment.node
                and situation.moved(fragment.name, node.name).with_new(work).fits
            ):
                command = f"penstock move {fragment.name} {node.name}"
                text = f"{fragment.name} moved to {node.name} ({command})"
                return Help("move", text)
    return None
