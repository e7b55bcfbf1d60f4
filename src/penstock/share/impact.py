"""What a new query would do to those that run, from what was measured: pure.

What is measured contains the load that is there already. A node with the load p, of which new work
takes p_c more, makes a batch that takes t now take t p_c / (1 - p - p_c) longer; a result is later
by the largest sum of that on the way to it. What has not been measured yet is not judged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
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

    ``reads`` are the fragments it reads, ``streams`` those from outside. ``latency_s`` is counted
    from the entry of rows into the system; None where too little was measured. ``cores`` is what it
    uses of its node. A light one asks for a round of its node every ``round_s`` seconds, and its
    batches take as long as a whole round; of others that is 0.
    """

    name: str
    query: str
    node: str
    batch_s: float = 0.0
    latency_s: float | None = None
    limit_s: float | None = None
    reads: tuple[str, ...] = ()
    cores: float = 0.0
    streams: tuple[str, ...] = ()
    round_s: float = 0.0

    @property
    def is_light(self) -> bool:
        """Whether it is computed in rounds with others of its node."""
        return self.round_s > 0


@dataclass(frozen=True)
class NewWork:
    """A fragment that is to come: what it would need, and how long it may take.

    ``cores`` is None where nobody knows what it costs, ``round_s`` how often it looks for rows,
    ``batch_s`` what a batch takes on an idle node. One that ``is_light`` joins the rounds of its
    node; where it is the first there to read a stream, it costs ``opening_cores`` more.
    """

    name: str
    node: str
    cores: float | None = None
    batch_s: float = 0.0
    round_s: float = 0.0
    limit_s: float | None = None
    reads: tuple[str, ...] = ()
    streams: tuple[str, ...] = ()
    is_light: bool = False
    opening_cores: float = 0.0


@dataclass(frozen=True)
class NodeRounds:
    """Rounds of a node's light fragments: every how many seconds there is one, how long it takes.

    ``streams`` are those that are read in them.
    """

    every_s: float
    takes_s: float
    streams: frozenset[str]


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

    def is_sooner_than(self, other: Impact) -> bool:
        """Whether its results come sooner, and no more limits of others are broken."""
        if self.latency_s is None or other.latency_s is None:
            return False
        return self.latency_s < other.latency_s and len(self.late) <= len(other.late)

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

    @cached_property
    def _rounds(self) -> Mapping[str, NodeRounds]:
        """By node, where light fragments run."""
        by_node: dict[str, list[MeasuredFragment]] = {}
        for fragment in self.fragments:
            if fragment.is_light:
                by_node.setdefault(fragment.node, []).append(fragment)
        return {node: _rounds_of(fragments) for node, fragments in by_node.items()}

    def with_new(self, work: Iterable[NewWork]) -> Impact:
        """What comes of new work, fragments before those that read them. Linear in all of it."""
        new = tuple(work)
        added = self._added(new)
        known = {node.name: node for node in self.nodes}
        shares = {name: cores / known[name].cores for name, cores in added.items() if name in known}
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
        delays = self._delays(new, shares, loads)
        touched = self._touched(delays)
        latency_s = self._latency_s(new, delays, loads) if new else None
        limits = [new_work.limit_s for new_work in new if new_work.limit_s is not None]
        phi = sum(shares[name] / max(1e-9, 1 - load + shares[name]) for name, load in loads.items())
        return Impact(latency_s, min(limits, default=None), touched, loads, peaks, phi)

    def _added(self, new: Iterable[NewWork]) -> dict[str, float]:
        """What new work uses of nodes; what opens a stream on a node counts there once."""
        opened = {(node, stream) for node, rounds in self._rounds.items()
                  for stream in rounds.streams}  # fmt: skip
        found: dict[str, float] = {}
        for new_work in new:
            places = {(new_work.node, stream) for stream in new_work.streams}
            opening = new_work.opening_cores if places - opened else 0.0
            opened |= places
            cores = (new_work.cores or 0.0) + opening
            found[new_work.node] = found.get(new_work.node, 0.0) + cores
        return found

    def _delays(
        self, new: Sequence[NewWork], shares: Mapping[str, float], loads: Mapping[str, float]
    ) -> dict[str, float]:
        """How much later the results of each running fragment would be.

        A light one that is in more of a hurry than others of its node has them go round more often.
        """
        sooner = {node: self._sooner_s(node, new) for node in self._rounds}
        found: dict[str, float] = {}
        for fragment in self.fragments:
            own = 0.0
            if fragment.node in loads and shares[fragment.node] > 0 and not self._follows(fragment):
                left = 1.0 - loads[fragment.node]
                own = fragment.batch_s * shares[fragment.node] / left if left > 0 else math.inf
                own -= sooner[fragment.node] if fragment.is_light else 0.0
            found[fragment.name] = own + max(
                (found.get(name, 0.0) for name in fragment.reads), default=0.0
            )
        return found

    def _sooner_s(self, node: str, new: Iterable[NewWork]) -> float:
        """By how much rounds of a node come after each other more quickly with new work."""
        every_s = self._rounds[node].every_s
        asked = (work.round_s for work in new if work.is_light and work.node == node)
        return every_s - min([every_s, *asked])

    def _follows(self, fragment: MeasuredFragment) -> bool:
        """Whether a fragment is computed in the same round as all that it reads."""
        makers = [self._by_name.get(name) for name in fragment.reads]
        return fragment.is_light and not fragment.streams and all(
            maker is not None and maker.is_light and maker.node == fragment.node
            for maker in makers
        )  # fmt: skip

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
        self, new: Sequence[NewWork], delays: Mapping[str, float], loads: Mapping[str, float]
    ) -> float | None:
        """The time from the entry of a row until the last of the new results is out."""
        known: dict[str, float | None] = {
            fragment.name: None
            if fragment.latency_s is None
            else fragment.latency_s + delays[fragment.name]
            for fragment in self.fragments
        }
        light = {fragment.name: fragment.node for fragment in self.fragments if fragment.is_light}
        worst: float | None = 0.0
        for new_work in new:
            behind = [known.get(name, 0.0) for name in new_work.reads]
            told = [time_s for time_s in behind if time_s is not None]
            if len(told) < len(behind) or new_work.cores is None:
                known[new_work.name] = None
            else:
                before_s = max(told, default=0.0)
                known[new_work.name] = before_s + self._taken_s(new_work, new, loads, light)
            if new_work.is_light:
                light[new_work.name] = new_work.node
            mine = known[new_work.name]
            worst = None if worst is None or mine is None else max(worst, mine)
        return worst

    def _taken_s(
        self,
        work: NewWork,
        new: Sequence[NewWork],
        loads: Mapping[str, float],
        light: Mapping[str, str],
    ) -> float:
        """How long new work takes itself, from when it can read a row until the result is out."""
        left = 1.0 - loads.get(work.node, 0.0)
        if left <= 0:
            return math.inf
        rounds = self._rounds.get(work.node)
        if not work.is_light or rounds is None:
            return work.round_s + work.batch_s / left
        every_s = rounds.every_s - self._sooner_s(work.node, new)
        own_s = (work.cores or 0.0) * every_s / left
        if (
            work.reads
            and not work.streams
            and all(light.get(name) == work.node for name in work.reads)
        ):
            # What it reads and itself are computed in the same round.
            return own_s
        added = sum(other.cores or 0.0 for other in new if other.node == work.node)
        slower_s = rounds.takes_s * added / left
        return every_s + rounds.takes_s + slower_s + own_s

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


def _rounds_of(fragments: Sequence[MeasuredFragment]) -> NodeRounds:
    """The rounds of light fragments of one node."""
    return NodeRounds(
        min(fragment.round_s for fragment in fragments),
        max(fragment.batch_s for fragment in fragments),
        frozenset(stream for fragment in fragments for stream in fragment.streams),
    )


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
