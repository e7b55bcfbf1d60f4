"""What the submissions of a system come to: its units, and who reads whom."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from penstock.control.records import Submission, UnitKind
from penstock.control.repeating import repeat_results
from penstock.control.spreading import spread_fragment
from penstock.errors import InputError
from penstock.lang.deployment import offered_streams, parse_deployment, parse_single_query
from penstock.model.beginnings import Reread
from penstock.model.binding import written_node
from penstock.model.fragments import Fragment
from penstock.model.ids import ChannelId, PartId, ReaderId, channel_for, reader_for
from penstock.model.network import Deployment, Network
from penstock.model.operators import Aggregate, Operator
from penstock.model.partition_groups import PartitionGroups
from penstock.model.retime import Retime, keeps_order, no_order
from penstock.model.schema import Shape
from penstock.model.sharing import SharedStream
from penstock.model.slices import Slices, given_slices, slices_name
from penstock.model.sources import KafkaSource, RunningSource, Stream
from penstock.place.fuse import fuse
from penstock.share.matching import shared_network


@dataclass(frozen=True)
class Unit:
    """Something a node can run: a fragment, or the intake of a stream from outside.

    ``on`` is the node it was written to run on, if any. Nothing of its own submission reads an
    intake that ``is_unread``. One that makes rows ``again`` does so for its own submission alone;
    ``repeats`` are results of others that a fragment makes again for itself.
    """

    name: str
    submission: int
    network: Network
    fragment: Fragment | None = None
    stream: Stream | None = None
    on: str | None = None
    is_unread: bool = False
    again: Reread | None = None
    repeats: frozenset[str] = frozenset()

    @property
    def kind(self) -> UnitKind:
        return "intake" if self.fragment is None else "fragment"

    @property
    def id(self) -> PartId:
        """What a node owns when it runs this."""
        return PartId(self.name)

    @property
    def reader(self) -> ReaderId:
        """As what it reads its inputs."""
        return reader_for(self.id)

    @property
    def gives(self) -> ChannelId:
        """The channel it fills."""
        return self.fragment.channel if self.fragment else channel_for(self.name)

    @property
    def is_offered(self) -> bool:
        """Whether what it gives is a stream that others can read."""
        is_part = self.fragment is not None and self.fragment.part is not None
        return self.again is None and not is_part

    @property
    def rereads(self) -> tuple[str, ...]:
        """The channels with rows made again that it reads first."""
        begins = () if self.fragment is None else self.fragment.beginning.inputs.values()
        return tuple(begin.before for begin in begins if begin.before is not None)

    def stream_in(self, channel: str) -> str:
        """The stream in one of the channels that it fills."""
        if self.fragment is None or channel in self.fragment.taps:
            return channel
        return self.fragment.output

    @property
    def taps(self) -> tuple[str, ...]:
        """The streams inside it that it gives as well, because others share them."""
        return () if self.fragment is None else self.fragment.taps

    @property
    def shares(self) -> tuple[str, ...]:
        """What it reads of others because it is what it would compute itself."""
        return () if self.fragment is None else self.fragment.shared

    @property
    def is_retimed(self) -> bool:
        """Whether its rows have an event time of their own."""
        return self.fragment is not None and isinstance(self.fragment.operators[-1], Retime)

    def shape(self, stream: str) -> Shape:
        """The shape of a stream that it gives."""
        slices = {} if self.fragment is None else given_slices(self.fragment.operators)
        return slices[stream].shape if stream in slices else self.network.shapes[stream]

    @property
    def reads(self) -> tuple[str, ...]:
        """The channels it reads."""
        return () if self.fragment is None else self.fragment.inputs


@dataclass(frozen=True)
class System:
    """The units of all submissions, and the streams that new submissions can read.

    Of those that are ``dropped`` only what others share is left.
    """

    units: Mapping[str, Unit] = field(default_factory=dict)
    streams: Mapping[str, Stream] = field(default_factory=dict)
    deployments: Mapping[int, Deployment] = field(default_factory=dict)
    dropped: frozenset[int] = frozenset()

    @cached_property
    def makers(self) -> Mapping[str, Unit]:
        """The unit that fills each channel, none before those that it reads."""
        return {stream: unit for unit in self.units.values() for stream in (unit.gives, *unit.taps)}

    @cached_property
    def of_submission(self) -> Mapping[int, Sequence[Unit]]:
        """The units of each submission."""
        found: dict[int, list[Unit]] = defaultdict(list)
        for unit in self.units.values():
            found[unit.submission].append(unit)
        return found

    @property
    def queries(self) -> dict[str, int]:
        """The submission behind every query."""
        return {
            query.name: number
            for number, deployment in self.deployments.items()
            if number not in self.dropped
            for query in deployment.network.queries
        }

    def groups(self, stream: str) -> PartitionGroups | None:
        """The groups in which the rows of a stream are kept; None where they are not."""
        found = (deployment.network.groups(stream) for deployment in self.deployments.values())
        return next((groups for groups in found if groups is not None), None)

    def readers(self, submission: int, besides: Collection[int] = ()) -> tuple[str, ...]:
        """The units of other submissions that read something of this one by its name.

        Those of submissions ``besides`` do not count.
        """
        mine = [unit for unit in self.units.values() if unit.submission == submission]
        given = {unit.gives for unit in mine}
        return tuple(
            unit.name
            for unit in self.units.values()
            if unit.submission not in (submission, *besides)
            and not given.isdisjoint({*unit.reads, *unit.repeats} - {*unit.shares})
        )


def assemble(submissions: Iterable[Submission]) -> System:
    """The system that these submissions, oldest first, describe."""
    system, dropped = System(), set[int]()
    for submission in submissions:
        system = extend(system, submission)
        if submission.is_dropped:
            dropped.add(submission.id)
    return system if not dropped else prune(system, dropped)


def prune(system: System, dropped: Collection[int]) -> System:
    """The system without what only ``dropped`` submissions need, found by reachability.

    What others share of those is computed on, and given to nobody else: a fragment of which only a
    stream inside is shared leaves the rest out. Streams that nobody shares any more are not
    given out. Linear in units and what they read.
    """
    needed = _needed(system, dropped)
    read = {stream for name in needed for stream in system.units[name].reads}
    units = {
        name: _left(unit, read, unit.submission in dropped)
        for name, unit in system.units.items()
        if name in needed
    }
    offered = {
        name: stream
        for name, stream in system.streams.items()
        if name in system.makers and system.makers[name].submission not in dropped
    }
    kept = {unit.submission for unit in units.values()}
    deployments = {
        number: deployment
        for number, deployment in system.deployments.items()
        if number in kept or number not in dropped
    }
    return System(units, offered, deployments, frozenset(dropped) & deployments.keys())


def _needed(system: System, dropped: Collection[int]) -> set[str]:
    """The units that submissions which are not dropped have, and those behind them."""
    waiting = [unit for unit in system.units.values() if unit.submission not in dropped]
    found = {unit.name for unit in waiting}
    while waiting:
        unit = waiting.pop()
        for stream in (*unit.reads, *unit.rereads):
            maker = system.makers[stream]
            if maker.name not in found:
                found.add(maker.name)
                waiting.append(maker)
    return found


def _left(unit: Unit, read: Collection[str], is_dropped: bool) -> Unit:
    fragment = unit.fragment
    if fragment is None:
        return unit
    taps = tuple(tap for tap in fragment.taps if tap in read)
    operators = (
        operator
        for operator in fragment.operators
        if not isinstance(operator, Slices) or operator.name in taps
    )
    left = replace(fragment, taps=taps, operators=tuple(operators))
    if is_dropped:
        has_tail = unit.gives in read or not taps
        left = replace(left, queries=(), writes=(), has_tail=has_tail)
    return unit if left == fragment else replace(unit, fragment=left)


def extend(system: System, submission: Submission, deployment: Deployment | None = None) -> System:
    """The system with one more submission; raises what is wrong with it.

    ``deployment`` is what it asks for, where that was worked out already.
    """
    deployment, repeats = deployment or understand(system, submission), frozenset[str]()
    if submission.begun.start == "start":
        deployment, repeats = repeat_results(system, deployment, submission.id)
    reads = submission.sharing.reads
    named = {stream.name for stream in deployment.network.streams}
    if reads:
        network = shared_network(deployment.network, reads)
        deployment = replace(deployment, network=network)
    _check_order(system, deployment.network)
    units = {unit.name: unit for unit in _units(system, deployment, submission, repeats, named)}
    taken = {*system.units, *(tap for unit in system.units.values() for tap in unit.taps)}
    for name in units:
        if name in taken:
            raise InputError(
                f"{name} is already part of the running system",
                hint="Give it another name, or drop the other first.",
            )
    return System(
        {**tap_units(system.units, reads), **units},
        {**system.streams, **_offered(deployment.network, units)},
        {**system.deployments, submission.id: deployment},
        system.dropped,
    )


def tap_units(units: Mapping[str, Unit], reads: Iterable[SharedStream]) -> dict[str, Unit]:
    """The units, with those that have to give streams inside them doing so.

    One that was dropped and gives nothing else gives its result again if that is read.
    """
    found = dict(units)
    for read in reads:
        fragment = found[read.maker].fragment
        if fragment is None:
            continue
        if not read.tapped:
            fragment = replace(fragment, has_tail=True)
        elif read.source not in fragment.taps:
            fragment = _with_tap(fragment, read)
        found[read.maker] = replace(found[read.maker], fragment=fragment)
    return found


def _with_tap(fragment: Fragment, read: SharedStream) -> Fragment:
    taps = tuple(sorted((*fragment.taps, read.source)))
    if not read.is_sliced:
        return replace(fragment, taps=taps)
    operators: list[Operator] = []
    for operator in fragment.operators:
        operators.append(operator)
        if isinstance(operator, Aggregate) and slices_name(operator.name) == read.source:
            operators.append(Slices(read.source, operator, read.shape))
    return replace(fragment, taps=taps, operators=tuple(operators))


def _check_order(system: System, network: Network) -> None:
    """Raises where a running result is given another event time whose rows have no order."""
    running = {
        stream.name for stream in network.streams if isinstance(stream.source, RunningSource)
    }
    for operator in network.operators:
        if isinstance(operator, Retime):
            for stream in sorted(running & network.upstream([operator.input.stream])):
                if not _has_order(system, stream):
                    raise no_order(operator.name, stream, "a running result")


def _has_order(system: System, stream: str) -> bool:
    maker = system.makers[stream]
    if maker.stream is not None:
        return not isinstance(maker.stream.source, KafkaSource)
    assert maker.fragment is not None
    keeps = all(map(keeps_order, maker.fragment.operators))
    return keeps and all(_has_order(system, read) for read in maker.reads)


def understand(system: System, submission: Submission) -> Deployment:
    """What a submission asks for, as it is written."""
    running = system.streams.values()
    if submission.kind == "sql":
        name, origin = submission.name, f"{submission.name}.sql"
        return parse_single_query(name, submission.text, origin, running, submission.max_latency_us)
    if submission.kind == "segment":
        from penstock.device.segments import segment_deployment

        known = system.deployments.values()
        return segment_deployment(
            submission.name, submission.text, submission.id, known, system.streams
        )
    folder, origin = Path(submission.folder), f"{submission.name}.yaml"
    intakes = (unit.stream for unit in system.units.values())
    written = [stream for stream in intakes if stream is not None]
    deployment = parse_deployment(submission.text, origin, folder, running, written)
    if deployment.devices is not None:
        # Only now: few have devices, and what they need is large.
        from penstock.device.splitting import served

        deployment = served(deployment)
    return _in_time(deployment, submission.max_latency_us)


def _in_time(deployment: Deployment, max_latency_us: int | None) -> Deployment:
    """The deployment with this latency for queries that have none of their own."""
    if max_latency_us is None:
        return deployment
    queries = tuple(
        query if query.max_latency_us is not None else replace(query, max_latency_us=max_latency_us)
        for query in deployment.network.queries
    )
    return replace(deployment, network=replace(deployment.network, queries=queries))


def _units(
    system: System,
    deployment: Deployment,
    submission: Submission,
    repeats: frozenset[str],
    named: Collection[str],
) -> list[Unit]:
    """The units of a submission, which reads the streams that are ``named`` because it says so."""
    network, number = deployment.network, submission.id
    begun = submission.begun
    shared = {read.source for read in submission.sharing.reads} - {*named}
    fragments = [
        replace(
            fragment,
            is_read=True,
            shared=tuple(name for name in fragment.inputs if name in shared),
        )
        for fused in fuse(network)
        for fragment in spread_fragment(network, fused, begun.fragments)
    ]
    read = {name for fragment in fragments for name in fragment.inputs}
    intakes = [
        Unit(
            stream.name,
            number,
            network,
            stream=stream,
            on=stream.on,
            is_unread=stream.name not in read,
        )
        for stream in network.streams
        if not isinstance(stream.source, RunningSource)
    ]
    rereading = [
        _rereading(system.units[reread.stream], name, number, network, reread)
        for name, reread in begun.again.items()
    ]
    placed = [
        Unit(
            fragment.name,
            number,
            network,
            fragment,
            on=written_node(network, fragment),
            repeats=repeats,
        )
        for fragment in fragments
    ]
    return [*intakes, *rereading, *placed]


def _rereading(unit: Unit, name: str, number: int, network: Network, again: Reread) -> Unit:
    """The intake that makes rows of another again, where that one is."""
    return Unit(name, number, network, stream=unit.stream, on=unit.on, again=again)


def _offered(network: Network, units: Mapping[str, Unit]) -> dict[str, Stream]:
    """The streams that later submissions can read: all that are in a channel."""
    names = [unit.gives for unit in units.values() if unit.is_offered]
    return {stream.name: stream for stream in offered_streams(network, names)}
