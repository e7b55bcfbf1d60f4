"""What a submission shares with what runs: offers of the system, found by signature."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from penstock.control.system import System, Unit
from penstock.errors import listed
from penstock.model.canonical import GroupedRows, canonical_streams, grouped_rows
from penstock.model.canonical_stream import CanonicalStream
from penstock.model.fragments import Fragment
from penstock.model.network import Deployment, Network
from penstock.model.operators import Aggregate
from penstock.model.sharing import NOTHING_SHARED, SharedStream, Sharing
from penstock.model.slices import FromSlices, SlicedStates
from penstock.model.sources import RunningSource
from penstock.place.fuse import fuse
from penstock.share.matching import match_streams, settled_streams, shared_network
from penstock.share.readings import OfferedSlices, OfferedStream

Obstacle = Callable[[Unit, bool], str]
"""Why nobody can share a unit's result, or, if that is asked, a stream inside it; else nothing."""


@dataclass
class _Known:
    """What the streams of one submission are, and what its aggregates make of which rows.

    Both by the relation of the rows.
    """

    deployment: Deployment
    canonical: Mapping[str, CanonicalStream]
    streams: Mapping[str, Sequence[str]]
    aggregates: Mapping[str, Sequence[tuple[Aggregate, GroupedRows]]]


@dataclass
class StreamIndex:
    """The canonical streams of everything that runs; what is known is not worked out again."""

    _known: dict[int, _Known] = field(default_factory=dict)

    def look(self, system: System) -> None:
        """Takes note of what has come and gone. Linear in what has come."""
        gone = self._known.keys() - system.deployments.keys()
        for number in gone:
            del self._known[number]
        for number, deployment in system.deployments.items():
            known = self._known.get(number)
            if known is None or known.deployment is not deployment:
                self._known[number] = self._worked_out(system, deployment)

    def _worked_out(self, system: System, deployment: Deployment) -> _Known:
        network = deployment.network
        canonical = canonical_streams(network, self.running(system, network))
        streams: dict[str, list[str]] = defaultdict(list)
        for stream in sorted(settled_streams(network)):
            streams[canonical[stream].relation].append(stream)
        aggregates: dict[str, list[tuple[Aggregate, GroupedRows]]] = defaultdict(list)
        for operator in network.operators:
            if isinstance(operator, Aggregate):
                rows = canonical[operator.input.stream]
                aggregates[rows.relation].append((operator, grouped_rows(operator, rows)))
        return _Known(deployment, canonical, streams, aggregates)

    def running(self, system: System, network: Network) -> dict[str, CanonicalStream]:
        """What the running streams are that a network reads."""
        found = {}
        for stream in network.streams:
            maker = system.makers.get(stream.name)
            if isinstance(stream.source, RunningSource) and maker is not None:
                known = self._known.get(maker.submission)
                if known is not None and stream.name in known.canonical:
                    found[stream.name] = known.canonical[stream.name]
        return found

    def streams(self, system: System, relation: str) -> Iterator[tuple[Unit, CanonicalStream, str]]:
        """The streams that run and have rows of a relation, and who makes each."""
        for number, known in self._known.items():
            for stream in known.streams.get(relation, ()):
                for unit in _makers(system, number, stream):
                    yield unit, known.canonical[stream], stream

    def aggregates(
        self, system: System, relation: str
    ) -> Iterator[tuple[Unit, Aggregate, GroupedRows]]:
        """The aggregates that run over rows of a relation, and who computes each."""
        for number, known in self._known.items():
            for aggregate, grouped in known.aggregates.get(relation, ()):
                for unit in _makers(system, number, aggregate.name):
                    yield unit, aggregate, grouped


def _makers(system: System, submission: int, stream: str) -> Iterator[Unit]:
    for unit in system.of_submission.get(submission, ()):
        operators = () if unit.fragment is None else unit.fragment.operators
        if any(stream in operator.outputs for operator in operators):
            yield unit


@dataclass(frozen=True)
class RunningOffers:
    """What a system has for a new submission; ``with_slices`` if slices are wanted as well."""

    index: StreamIndex
    system: System
    hinders: Obstacle
    with_slices: bool = True

    def obstacle(self, maker: str, is_inside: bool) -> str:
        """Why nobody can share a fragment's result, or a stream inside it; else nothing."""
        return self.hinders(self.system.units[maker], is_inside)

    def streams(self, relation: str) -> Sequence[OfferedStream]:
        """The streams whose rows are some of a relation."""
        running = self.index.streams(self.system, relation)
        return [
            OfferedStream(stream, unit.network, canonical, unit.name, stream != unit.gives)
            for unit, canonical, stream in running
        ]

    def slices(self, relation: str) -> Sequence[OfferedSlices]:
        """The slices of aggregates over rows of a relation."""
        running = self.index.aggregates(self.system, relation) if self.with_slices else ()
        return [
            OfferedSlices(aggregate, grouped, unit.name, _laid_out)
            for unit, aggregate, grouped in running
        ]


def _laid_out(aggregate: Aggregate) -> SlicedStates | None:
    # Only now: what it needs is large, and few ask.
    from penstock.kernels.slices import sliced_states

    return sliced_states(aggregate)


def can_be_tapped(unit: Unit) -> bool:
    """Whether kernels that run a fragment can give streams inside it."""
    # Only now: what it needs is large, and few ask.
    from penstock.kernels.engine_choice import choose_engine
    from penstock.kernels.window_plan import WindowPlan

    assert unit.fragment is not None
    return isinstance(choose_engine(unit.network, unit.fragment).plan, WindowPlan)


def decide_sharing(
    index: StreamIndex, system: System, network: Network, obstacle: Obstacle
) -> Sharing:
    """What a network can share with a system, as far as that spares work.

    Where kernels could run a fragment, and not what is left of it, it is not worth it; only they
    can put windows together from slices.
    """
    index.look(system)
    notes: tuple[str, ...] = ()
    for with_slices in (True, False):
        offers = RunningOffers(index, system, obstacle, with_slices)
        found = match_streams(network, index.running(system, network), offers)
        spoilt = _spoilt(network, found.reads) if found.reads else []
        if not spoilt:
            return replace(found, notes=(*notes, *found.notes))
        why = "would have to be a query of its own to share anything"
        if any(read.is_sliced for read in found.reads):
            why = "is not run by kernels, and only they put windows together from slices"
        notes = (*found.notes, f"{listed(spoilt)} {why}")
    return replace(NOTHING_SHARED, notes=notes)


def _spoilt(network: Network, reads: Sequence[SharedStream]) -> list[str]:
    """The fragments that kernels could not run with this, and could before, or have to."""
    could_not = {fragment.name for fragment in _native_fragments(network)}
    after = _native_fragments(network, reads)
    return sorted(
        fragment.name
        for fragment in after
        if fragment.name not in could_not or _reads_slices(fragment)
    )


def _native_fragments(network: Network, reads: Iterable[SharedStream] = ()) -> list[Fragment]:
    from penstock.kernels.engine_choice import light_fragments

    shared = {read.source for read in reads}
    fragments = [
        replace(fused, shared=tuple(name for name in fused.inputs if name in shared))
        for fused in fuse(shared_network(network, reads))
    ]
    light = light_fragments(network, fragments)
    return [fragment for fragment in fragments if fragment.name not in light]


def _reads_slices(fragment: Fragment) -> bool:
    return any(isinstance(operator, FromSlices) for operator in fragment.operators)
