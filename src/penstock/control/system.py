"""What the submissions of a system come to: its units, and who reads whom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from penstock.control.records import Submission, UnitKind
from penstock.errors import InputError
from penstock.lang.deployment import parse_deployment, parse_single_query
from penstock.model.fragments import Fragment
from penstock.model.network import Deployment, Network
from penstock.model.partition_groups import PartitionGroups
from penstock.model.sources import KafkaSource, RunningSource, Stream
from penstock.place.fuse import fuse


@dataclass(frozen=True)
class Unit:
    """Something a node can run: a fragment, or the intake of a stream from outside.

    ``on`` is the node it was written to run on, if any. Nothing of its own submission reads an
    intake that ``is_unread``.
    """

    name: str
    submission: int
    network: Network
    fragment: Fragment | None = None
    stream: Stream | None = None
    on: str | None = None
    is_unread: bool = False

    @property
    def kind(self) -> UnitKind:
        return "intake" if self.fragment is None else "fragment"

    @property
    def reads(self) -> tuple[str, ...]:
        """The channels it reads."""
        if self.fragment is None:
            return ()
        return tuple(name for name in self.fragment.inputs if not self._is_kafka(name))

    def _is_kafka(self, stream: str) -> bool:
        outside = {one.name: one.source for one in self.network.streams}
        return isinstance(outside.get(stream), KafkaSource)


@dataclass(frozen=True)
class System:
    """The units of all submissions, and the streams that new submissions can read."""

    units: Mapping[str, Unit] = field(default_factory=dict)
    streams: Mapping[str, Stream] = field(default_factory=dict)
    deployments: Mapping[int, Deployment] = field(default_factory=dict)

    @property
    def queries(self) -> dict[str, int]:
        """The submission behind every query."""
        return {
            query.name: number
            for number, deployment in self.deployments.items()
            for query in deployment.network.queries
        }

    def groups(self, stream: str) -> PartitionGroups | None:
        """The groups in which the rows of a stream are kept; None where they are not."""
        found = (one.network.groups(stream) for one in self.deployments.values())
        return next((groups for groups in found if groups is not None), None)

    def readers(self, submission: int) -> tuple[str, ...]:
        """The units of other submissions that read something of this one."""
        mine = [unit for unit in self.units.values() if unit.submission == submission]
        given = {unit.fragment.output if unit.fragment else unit.name for unit in mine}
        return tuple(
            unit.name
            for unit in self.units.values()
            if unit.submission != submission and not given.isdisjoint(unit.reads)
        )


def assembled(submissions: Iterable[Submission]) -> System:
    """The system that these submissions, oldest first, describe."""
    system = System()
    for submission in submissions:
        system = extended(system, submission)
    return system


def extended(system: System, submission: Submission) -> System:
    """The system with one more submission; raises what is wrong with it."""
    deployment = _deployment(system, submission)
    units = {unit.name: unit for unit in _units(deployment, submission.id)}
    for name in units:
        if name in system.units:
            raise InputError(
                f"{name} is already part of the running system",
                hint="Give it another name, or drop the other first.",
            )
    return System(
        {**system.units, **units},
        {**system.streams, **_offered(deployment.network, units)},
        {**system.deployments, submission.id: deployment},
    )


def _deployment(system: System, submission: Submission) -> Deployment:
    running = system.streams.values()
    if submission.kind == "sql":
        name, origin = submission.name, f"{submission.name}.sql"
        return parse_single_query(name, submission.text, origin, running, submission.max_latency_us)
    folder, origin = Path(submission.folder), f"{submission.name}.yaml"
    deployment = parse_deployment(submission.text, origin, folder, running)
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


def _units(deployment: Deployment, submission: int) -> list[Unit]:
    network = deployment.network
    fragments = [replace(one, is_read=True) for one in fuse(network)]
    read = {name for fragment in fragments for name in fragment.inputs}
    intakes = [
        Unit(stream.name, submission, network, stream=stream, is_unread=stream.name not in read)
        for stream in network.streams
        if not isinstance(stream.source, KafkaSource | RunningSource)
    ]
    placed = [
        Unit(fragment.name, submission, network, fragment, on=_written_node(network, fragment))
        for fragment in fragments
    ]
    return [*intakes, *placed]


def _written_node(network: Network, fragment: Fragment) -> str | None:
    """The node that the queries of a fragment are written to run on.

    Those of one result have to agree; otherwise there is a fragment for each.
    """
    # Of a switch only the case that is wanted is made here.
    read = {one.stream for operator in fragment.operators for one in operator.inputs}
    inside = read - set(fragment.inputs)
    wished = [
        (query.name, query.on)
        for query in network.queries
        if query.on and (query.name in fragment.queries or query.stream in inside)
    ]
    for name, node in wished[1:]:
        first, first_node = wished[0]
        if node != first_node:
            raise InputError(
                f"{first} is to run on {first_node} and {name} on {node}, "
                f"but both are the result of the fragment {fragment.name}, which runs on one node",
                hint="Write the same node for both, or leave on: out of one of them.",
            )
    return wished[0][1] if wished else None


def _offered(network: Network, units: Mapping[str, Unit]) -> dict[str, Stream]:
    """The streams that later submissions can read: all that are in a channel."""
    names = [unit.fragment.output if unit.fragment else unit.name for unit in units.values()]
    shapes = {name: network.shapes[name] for name in names}
    return {
        name: Stream(name, RunningSource(), shape, 0 if shape.times and shape.watermarked else None)
        for name, shape in shapes.items()
    }
