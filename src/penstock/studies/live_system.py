"""A real system at the service of a study: nodes as processes of their own, watched at work."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from penstock.channels.channel import Channel
from penstock.channels.layout import StateLayout
from penstock.control.answer_models import FragmentAnswer, MoveAnswer, Unmeasured
from penstock.control.client import Client, await_that
from penstock.control.home import Home
from penstock.control.launch import bring_down, bring_up
from penstock.errors import RunError
from penstock.model.ids import ReaderId, channel_for
from penstock.model.measurements import UnitSample
from penstock.model.network import NodeSpec

_LOOK_EVERY_S = 1.0
READER = ReaderId("study")
"""Rows are kept for it."""
_MEMORY_BYTES = 1536 << 20


@dataclass(frozen=True)
class Look:
    """A system at one moment: how busy nodes are, what was measured of fragments and intakes."""

    at_s: float
    utilisation: Mapping[str, float]
    units: Mapping[str, UnitSample]

    @property
    def backlog_rows(self) -> int:
        """All that lies unread."""
        return sum(getattr(unit, "backlog_rows", 0) for unit in self.units.values())


@dataclass(frozen=True)
class Delivered:
    """A batch of results: when it was out, how long after its oldest rows had come in, its rows."""

    query: str
    at_s: float
    latency_s: float
    rows: int


@dataclass(frozen=True)
class Watched:
    """What was seen of one submission while it ran."""

    submitted_s: float
    looks: tuple[Look, ...]
    delivered: tuple[Delivered, ...]
    assignment: Mapping[str, str]
    moves: tuple[MoveAnswer, ...]

    def since(self, start_s: float) -> Watched:
        """What was seen from then on."""
        return Watched(
            self.submitted_s,
            tuple(look for look in self.looks if look.at_s >= start_s),
            tuple(row for row in self.delivered if row.at_s >= start_s),
            self.assignment,
            tuple(move for move in self.moves if move.created_s >= start_s),
        )

    def mean_utilisation(self, node: str) -> float:
        """The share of its cores that a node used, over all looks."""
        known = [look.utilisation.get(node, 0.0) for look in self.looks]
        return sum(known) / len(known) if known else 0.0

    def latencies_s(self) -> list[float]:
        """The latency of every batch of results, from small to large."""
        return sorted(row.latency_s for row in self.delivered)

    def backlog_rows(self) -> list[int]:
        """All that lay unread, look by look."""
        return [look.backlog_rows for look in self.looks]

    def grown_per_s(self, unit: str, key: str) -> float:
        """How much a counter of a fragment or an intake grew in a second, over all looks."""
        known = [
            (look.at_s, float(getattr(look.units[unit], key)))
            for look in self.looks
            if hasattr(look.units.get(unit), key)
        ]
        if len(known) < 2 or known[-1][0] <= known[0][0]:
            return 0.0
        return (known[-1][1] - known[0][1]) / (known[-1][0] - known[0][0])


class LiveSystem:
    """A running system and a client of it."""

    def __init__(self, client: Client, home: Home, nodes: Sequence[str]) -> None:
        self.client = client
        self.nodes = tuple(nodes)
        self.home = home

    def watch(
        self,
        name: str,
        text: str,
        queries: Sequence[str],
        seconds: float | None,
        say: Callable[[str], None],
        arrange: Callable[[], None] = lambda: None,
    ) -> Watched:
        """Submits a deployment, watches it for so long, or until it has finished, and drops it.

        ``arrange`` is called once it is submitted, before anything is looked at.
        """
        known = len(self._moves())
        channels = {query: self.channel(query) for query in queries}
        submitted_s = time.time()
        self.client.submit(name, "yaml", text, str(self.home.path))
        arrange()
        looks: list[Look] = []
        delivered: list[Delivered] = []
        places = dict.fromkeys(queries, 0)
        started_s = time.monotonic()
        while seconds is None or time.monotonic() - started_s < seconds:
            time.sleep(_LOOK_EVERY_S)
            fragments = self.client.fragments()
            looks.append(self.look(fragments))
            delivered += self.delivered(channels, places)
            _check(fragments)
            if seconds is None and _are_finished(fragments):
                break
            unread = looks[-1].backlog_rows
            say(f"{name}: {len(delivered)} batches of results, {unread:,} rows unread")
        moves = self._moves()[known:]
        assignment = {fragment.name: str(fragment.node) for fragment in fragments}
        self.client.drop(name)
        return Watched(submitted_s, tuple(looks), tuple(delivered), assignment, tuple(moves))

    def put(self, nodes: Mapping[str, str], patience_s: float) -> None:
        """Moves fragments to these nodes, once they run, if they are elsewhere."""
        until_s = time.monotonic() + patience_s

        def running() -> dict[str, FragmentAnswer] | None:
            units = {fragment.name: fragment for fragment in self.client.fragments()}
            _check(list(units.values()))
            return units if all(units[name].state == "running" for name in nodes) else None

        units = await_that(running, patience_s, "some fragments did not run")
        wanted = {name: node for name, node in nodes.items() if units[name].node != node}
        for move in self.client.move_all(wanted) if wanted else []:
            done = self.client.await_move(move.id, max(1.0, until_s - time.monotonic()))
            if done.state != "done":
                raise RunError(f"{move.unit} could not be put on {done.target}: {done.error}")

    def check(self) -> None:
        """Raises if something that was submitted has failed."""
        _check(self.client.fragments())

    def channel(self, query: str) -> Channel:
        """The channel of a result or a stream, which keeps what is in it from now on."""
        channel = Channel.open(StateLayout(self.home.state).channel(channel_for(query)))
        channel.register(READER)
        return channel

    def _moves(self) -> list[MoveAnswer]:
        return sorted(self.client.moves(last=1_000), key=lambda move: move.id)

    def look(self, fragments: Sequence[FragmentAnswer]) -> Look:
        """What nodes use, and what was measured of these."""
        used = {node.name: node.utilisation for node in self.client.nodes()}
        known = {
            fragment.name: fragment.measured
            for fragment in fragments
            if not isinstance(fragment.measured, Unmeasured)
        }
        return Look(time.time(), used, known)

    def delivered(
        self, channels: Mapping[str, Channel], places: dict[str, int]
    ) -> Iterator[Delivered]:
        """The results that have come out since ``places``, which are moved on."""
        for query, channel in channels.items():
            for manifest in channel.newer(places[query]):
                places[query] = manifest.sequence + 1
                at_s = channel.entry(manifest.sequence).stat().st_mtime
                if manifest.rows and manifest.arrived_s is not None:
                    yield Delivered(query, at_s, at_s - manifest.arrived_s, manifest.rows)
            channel.advance(READER, places[query])


def _check(units: Sequence[FragmentAnswer]) -> None:
    for unit in units:
        if unit.state == "failed":
            raise RunError(f"{unit.name} failed on node {unit.node}: {unit.error}")


def _are_finished(units: Sequence[FragmentAnswer]) -> bool:
    # Streams that nobody reads never are.
    return all(unit.state == "finished" for unit in units if unit.kind == "fragment")


@contextmanager
def live_system(
    nodes: int | Mapping[str, str | None], memory_bytes: int = _MEMORY_BYTES, cores: int = 1
) -> Iterator[LiveSystem]:
    """A system of so many nodes, or of a tree of them, with these cores and this memory each.

    It is gone at the end. Of a tree the parent of every node is given.
    """
    flat = {f"n{number}": None for number in range(1, nodes + 1)} if isinstance(nodes, int) else {}
    parents: Mapping[str, str | None] = flat if isinstance(nodes, int) else nodes
    names = list(parents)
    with tempfile.TemporaryDirectory(prefix="penstock-study-") as folder:
        home = Home(Path(folder) / "system")
        specs = [NodeSpec(name, cores, memory_bytes, parents[name]) for name in names]
        client = bring_up(home, specs)
        try:
            yield LiveSystem(client, home, names)
        finally:
            client.close()
            bring_down(home)
