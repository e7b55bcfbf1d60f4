"""A network: all streams, operators and queries of a deployment, and how they hang together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from graphlib import CycleError, TopologicalSorter

from penstock.errors import InputError, listed, suggestion
from penstock.model.devices import DeviceSection
from penstock.model.engines import EngineName, JoinWay
from penstock.model.node_tree import tree_of
from penstock.model.operators import Operator
from penstock.model.partition_groups import PartitionGroups
from penstock.model.parts import JoinSpread
from penstock.model.retime import Retime, keeps_order, no_order
from penstock.model.schema import Shape, checked_name
from penstock.model.settings import Settings
from penstock.model.sources import KafkaSource, Sink, Stream

_KINDS = {
    "aggregate": "an aggregate",
    "join": "a join",
    "union": "a union",
    "sql_read": "which looks up rows of a database",
}


@dataclass(frozen=True)
class Query:
    """A named result: which stream it is, where it goes, and what is promised about it.

    ``text`` is the SQL it was written as, if it was. No sink means that others read it. With
    ``groups`` its result is kept in groups by key, so that readers can share it. ``engine`` is how
    it is to be run, and ``join`` how the streams behind it are to be joined, if that is said;
    ``spread`` to how many nodes.
    """

    name: str
    stream: str
    sink: Sink | None = None
    max_latency_us: int | None = None
    on: str | None = None
    text: str = ""
    groups: PartitionGroups | None = None
    engine: EngineName | None = None
    join: JoinWay | None = None
    spread: JoinSpread | None = None

    def __post_init__(self) -> None:
        checked_name(self.name, "query")


@dataclass(frozen=True)
class Network:
    """Streams, operators and queries, checked: names differ, inputs exist, nothing goes in circles.

    Operators are kept in an order in which each comes after all it reads; the order depends on
    the network alone, so the same network prints the same everywhere.
    """

    streams: tuple[Stream, ...]
    operators: tuple[Operator, ...]
    queries: tuple[Query, ...] = ()

    def __post_init__(self) -> None:
        _check_names_differ(
            [stream.name for stream in self.streams]
            + [
                name
                for operator in self.operators
                for name in sorted({operator.name, *operator.outputs})
            ]
        )
        _check_names_differ([query.name for query in self.queries], "query")
        object.__setattr__(self, "operators", _ordered(self.operators, self.shapes))
        for operator in self.operators:
            if isinstance(operator, Retime):
                self._check_order(operator)
        for query in self.queries:
            if query.stream not in self.shapes:
                raise unknown_stream(query.stream, self.shapes)
            if query.groups is not None:
                query.groups.check(self.shapes[query.stream].schema)
                self._check_one_grouping(query)
                self._check_not_retimed(query)

    def _check_not_retimed(self, query: Query) -> None:
        if isinstance(self.producers.get(query.stream), Retime):
            raise InputError(
                f"query {query.name} has an event time of its own, and cannot be kept in groups",
                hint="Give groups to a query that reads it.",
            )

    def _check_order(self, retime: Retime) -> None:
        outside = {stream.name: stream.source for stream in self.streams}
        for name in sorted(self.upstream([retime.input.stream])):
            producer = self.producers.get(name)
            if producer is not None and not keeps_order(producer):
                raise no_order(retime.name, name, _KINDS.get(producer.kind, producer.kind))
            if isinstance(outside.get(name), KafkaSource):
                raise no_order(retime.name, name, "which comes from Kafka")

    @property
    def judged(self) -> tuple[str, ...]:
        """The streams of which rows can be set aside: from outside, or with a time of their own."""
        retimed = (
            operator
            for operator in self.operators
            if isinstance(operator, Retime) and not operator.is_copy
        )
        return (*(stream.name for stream in self.streams), *(retime.name for retime in retimed))

    def _check_one_grouping(self, query: Query) -> None:
        for other in self.queries:
            if other.stream == query.stream and other.groups not in (None, query.groups):
                raise InputError(
                    f"queries {other.name} and {query.name} group the same rows differently",
                    hint="Give both the same groups, or only one of them.",
                )

    def groups(self, stream: str) -> PartitionGroups | None:
        """The groups in which the rows of a stream are kept; None where they are not."""
        for query in self.queries:
            if query.stream == stream and query.groups is not None:
                return query.groups.over(self.shapes[stream].schema)
        return None

    @cached_property
    def shapes(self) -> Mapping[str, Shape]:
        """The shape of every stream and operator output, by name."""
        shapes = {stream.name: stream.shape for stream in self.streams}
        for operator in self.operators:
            shapes.update(operator.outputs)
        return shapes

    @cached_property
    def producers(self) -> Mapping[str, Operator]:
        """The operator behind every stream that is not from outside."""
        return {name: operator for operator in self.operators for name in operator.outputs}

    @cached_property
    def readers(self) -> Mapping[str, tuple[Operator, ...]]:
        """The operators that read each stream, in order."""
        readers: dict[str, list[Operator]] = {name: [] for name in self.shapes}
        for operator in self.operators:
            for input in operator.inputs:
                readers[input.stream].append(operator)
        return {name: tuple(found) for name, found in readers.items()}

    @cached_property
    def queries_behind(self) -> Mapping[str, tuple[Query, ...]]:
        """The queries whose rows depend on each stream, in order; found once for all streams."""
        found: dict[str, list[Query]] = {name: [] for name in self.shapes}
        for query in self.queries:
            for name in self.upstream([query.stream]):
                found[name].append(query)
        return {name: tuple(queries) for name, queries in found.items()}

    def stream(self, name: str) -> Stream:
        """The outside stream called ``name``."""
        for stream in self.streams:
            if stream.name == name:
                return stream
        raise unknown_stream(name, [stream.name for stream in self.streams])

    def query(self, name: str) -> Query:
        """The query called ``name``."""
        for query in self.queries:
            if query.name == name:
                return query
        names = [query.name for query in self.queries]
        hint = f"There are {listed(names)}. {suggestion(name, names)}".strip()
        raise InputError(f"no query {name}", hint=hint)

    def upstream(self, streams: Iterable[str]) -> frozenset[str]:
        """All streams that ``streams`` depend on, themselves included."""
        found: set[str] = set()
        waiting = list(streams)
        while waiting:
            name = waiting.pop()
            if name in found:
                continue
            found.add(name)
            producer = self.producers.get(name)
            waiting += [input.stream for input in producer.inputs] if producer else []
        return frozenset(found)


@dataclass(frozen=True)
class NodeSpec:
    """A node to run on: how many cores and how much memory it may use, and its parent in a tree."""

    name: str
    cores: int = 1
    memory_bytes: int = 1 << 30
    parent: str | None = None

    def __post_init__(self) -> None:
        checked_name(self.name, "node")
        if self.cores < 1:
            raise InputError(f"node {self.name} has {self.cores} cores", hint="Give at least one.")


@dataclass(frozen=True, repr=False)
class Deployment:
    """Everything one deployment file says.

    Where queries are cut for devices, ``whole`` is the network before that. One that does not
    ``share`` computes everything itself, whatever runs already.
    """

    name: str
    network: Network
    nodes: tuple[NodeSpec, ...] = ()
    placement: str = ""
    balance: Settings = field(default_factory=dict)
    devices: DeviceSection | None = None
    whole: Network | None = None
    share: bool = True

    def __post_init__(self) -> None:
        tree_of({node.name: node.parent for node in self.nodes})

    def __repr__(self) -> str:
        return f"<Deployment {self.name}: {listed([query.name for query in self.network.queries])}>"


def unknown_stream(name: str, names: Iterable[str]) -> InputError:
    """The error for a stream that does not exist."""
    known = list(names)
    hint = f"There are {listed(known)}. {suggestion(name, known)}".strip()
    return InputError(f"no stream {name}", hint=hint)


def _check_names_differ(names: list[str], what: str = "stream or query") -> None:
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise InputError(f"two of a {what} are called {name}", hint="Rename one of them.")
        seen.add(name.lower())


def _ordered(operators: tuple[Operator, ...], shapes: Mapping[str, Shape]) -> tuple[Operator, ...]:
    behind = {name: operator.name for operator in operators for name in operator.outputs}
    by_name = {operator.name: operator for operator in operators}
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for operator in sorted(operators, key=lambda operator: operator.name):
        for input in operator.inputs:
            if input.stream not in shapes:
                raise unknown_stream(input.stream, shapes)
        sorter.add(
            operator.name,
            *(behind[stream.stream] for stream in operator.inputs if stream.stream in behind),
        )
    try:
        return tuple(by_name[name] for name in sorter.static_order())
    except CycleError as error:
        circle = " -> ".join(reversed(error.args[1]))
        raise InputError(
            f"these read each other in a circle: {circle}",
            hint="Break it by reading from a stream instead.",
        ) from None
