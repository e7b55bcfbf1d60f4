"""Which streams of a new network can be had of what runs: from the results backwards.

Only *settled* streams are shared, those behind state, opaque code or a changed event time: other
work is repeated, which costs less than reading another channel. The first streams met on the way
back of which all rows are there already are made of those; nothing in front of those is looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from penstock.model.canonical import canonical_streams, grouped_rows
from penstock.model.canonical_stream import CanonicalStream
from penstock.model.network import Network
from penstock.model.operators import Aggregate, Operator, SqlWrite
from penstock.model.sharing import NOTHING_SHARED, SharedStream, Sharing
from penstock.model.sources import RunningSource, Stream, running_stream
from penstock.place.fuse import changes_event_time
from penstock.share.readings import OfferedSlices, OfferedStream, from_slices, from_stream


class Offers(Protocol):
    """What runs and could be shared."""

    def streams(self, relation: str) -> Sequence[OfferedStream]:
        """The streams whose rows are some of a relation."""

    def slices(self, relation: str) -> Sequence[OfferedSlices]:
        """The slices of aggregates over rows of a relation."""

    def obstacle(self, maker: str, is_inside: bool) -> str:
        """Why nobody can share a fragment's result, or a stream inside it; else nothing."""


def settled_streams(network: Network) -> frozenset[str]:
    """The streams of a network behind state, opaque code or a changed event time of its own."""
    found: set[str] = set()
    for operator in network.operators:
        behind = any(stream.stream in found for stream in operator.inputs)
        own = operator.stateful or operator.opaque or changes_event_time(operator)
        if (own or behind) and not isinstance(operator, SqlWrite):
            found |= set(operator.outputs)
    return frozenset(found)


def match_streams(
    network: Network, running: Mapping[str, CanonicalStream], offers: Offers
) -> Sharing:
    """What a network can read of others.

    ``running`` says what the running streams are that it reads by name. Grows with its operators
    times what is offered for each.
    """
    known = {
        stream.name: running.get(stream.name)
        if isinstance(stream.source, RunningSource)
        else _its_own(stream, network)
        for stream in network.streams
    }
    told = {
        name: canonical_stream
        for name, canonical_stream in known.items()
        if canonical_stream is not None
    }
    if len(told) < len(known):
        return NOTHING_SHARED
    return _Search(network, canonical_streams(network, told), offers).found()


def _its_own(stream: Stream, network: Network) -> CanonicalStream:
    """A stream that the network brings in itself: it begins with it, so it is like no other."""
    plain = canonical_streams(replace(network, operators=(), queries=()))[stream.name]
    return replace(plain, relation=f"{plain.relation} of its own")


class _Search:
    def __init__(
        self, network: Network, canonical: Mapping[str, CanonicalStream], offers: Offers
    ) -> None:
        self._network = network
        self._canonical = canonical
        self._offers = offers
        self._settled = settled_streams(network)
        self._reads: dict[str, SharedStream] = {}
        self._notes: list[str] = []

    def found(self) -> Sharing:
        wanted = _wanted(self._network)
        before = _working(self._network, wanted, ())
        waiting, seen = sorted(wanted), set(wanted)
        while waiting:
            stream = waiting.pop(0)
            if self._shares(stream):
                continue
            producer = self._network.producers.get(stream)
            for input in producer.inputs if producer is not None else ():
                if input.stream not in seen:
                    seen.add(input.stream)
                    waiting.append(input.stream)
        after = _working(self._network, wanted, self._reads)
        saved = tuple(name for name in before if name not in after)
        return Sharing(tuple(self._reads.values()), saved, tuple(self._notes))

    def _shares(self, stream: str) -> bool:
        """Whether something that runs is read for a stream; a result before what is inside."""
        producer = self._network.producers.get(stream)
        if producer is None or stream not in self._settled or list(producer.outputs) != [stream]:
            return False
        if isinstance(producer, SqlWrite):
            return False
        notes: list[str] = []
        found = [*self._of_streams(producer, notes), *self._of_slices(producer, notes)]
        if not found:
            for note in notes:
                if _reason(note) not in map(_reason, self._notes):
                    self._notes.append(note)
            return False
        self._reads[stream] = min(found, key=_cost)
        return True

    def _of_streams(self, producer: Operator, notes: list[str]) -> Iterator[SharedStream]:
        """Ways to read a result, or a part of one."""
        stream, wanted = producer.name, self._canonical[producer.name]
        for offer in self._offers.streams(wanted.relation):
            operators = from_stream(producer, wanted, offer)
            if operators is None:
                continue
            name, signature = offer.name, offer.canonical.signature
            why = self._offers.obstacle(offer.maker, offer.tapped) or self._untimed(stream, offer)
            why = why or self._collision(name, operators)
            if why:
                how = "the same as" if signature == wanted.signature else "part of"
                notes.append(f"{stream} is {how} {name}, but {why}")
                continue
            yield SharedStream(stream, name, signature, offer.maker, operators, offer.tapped)

    def _of_slices(self, producer: Operator, notes: list[str]) -> Iterator[SharedStream]:
        """Ways to put windows together from slices of others."""
        if not isinstance(producer, Aggregate):
            return
        stream, rows = producer.name, self._canonical[producer.input.stream]
        wanted, meaning = grouped_rows(producer, rows), self._canonical[producer.name]
        for offer in self._offers.slices(rows.relation):
            operators = from_slices(producer, wanted, meaning, offer)
            if operators is None:
                continue
            name = offer.name
            why = self._offers.obstacle(offer.maker, True) or self._collision(name, operators)
            if why:
                notes.append(f"{stream} could be made of slices of {offer.maker}, but {why}")
                continue
            signature = offer.grouped.rows.signature
            yield SharedStream(stream, name, signature, offer.maker, operators, tapped=True)

    def _untimed(self, stream: str, offer: OfferedStream) -> str:
        """Why nobody could tell which rows of an offer count: those after the beginning do."""
        shapes = self._network.shapes
        is_timed = any(shapes[name].times for name in self._network.upstream([stream]))
        if is_timed and not offer.shape.times:
            return f"the rows of {offer.name} do not say when they were"
        return ""

    def _collision(self, name: str, operators: Sequence[Operator]) -> str:
        """Why a stream of that name cannot be read beside what the network has itself."""
        own = {stream.name: stream for stream in self._network.streams}
        if name in self._network.producers or (
            name in own and not isinstance(own[name].source, RunningSource)
        ):
            return f"{name} is the name of a stream of its own"
        for check in operators[:-1]:
            if check.name in self._network.shapes:
                return f"{check.name} is the name of a stream of its own"
        return ""


def _cost(read: SharedStream) -> tuple[bool, bool, int, int]:
    """Results are read before streams inside, slices last; what leaves less to do before more."""
    columns = len(read.operators[0].inputs[0].schema)
    return read.is_sliced, read.tapped, len(read.operators), columns


def _reason(note: str) -> str:
    return note.partition(", but ")[2]


def _wanted(network: Network) -> set[str]:
    sunk = {query.stream for query in network.queries if query.sink is not None}
    writes = {
        operator.input.stream for operator in network.operators if isinstance(operator, SqlWrite)
    }
    return sunk | writes


def _working(network: Network, wanted: Iterable[str], shared: Collection[str]) -> tuple[str, ...]:
    """The operators that have to run for some streams if the ``shared`` ones are there."""
    found: set[str] = set()
    waiting = [stream for stream in wanted if stream not in shared]
    while waiting:
        producer = network.producers.get(waiting.pop())
        if producer is not None and producer.name not in found:
            found.add(producer.name)
            waiting += [stream.stream for stream in producer.inputs if stream.stream not in shared]
    return tuple(operator.name for operator in network.operators if operator.name in found)


def shared_network(network: Network, reads: Iterable[SharedStream]) -> Network:
    """The network with these streams made of others that run."""
    by_stream = {read.stream: read for read in reads}
    if not by_stream:
        return network
    sources = {read.source: running_stream(read.source, read.shape) for read in reads}
    operators: list[Operator] = []
    for operator in network.operators:
        read = by_stream.get(operator.name)
        operators += (operator,) if read is None else read.operators
    wanted = _wanted(network)
    producers = {name: operator for operator in operators for name in operator.outputs}
    needed, waiting = set[str](), [*wanted, *(query.stream for query in network.queries)]
    while waiting:
        stream = waiting.pop()
        if stream not in needed:
            needed.add(stream)
            producer = producers.get(stream)
            waiting += [source.stream for source in producer.inputs] if producer else []
    streams = {known.name: known for known in (*network.streams, *sources.values())}
    kept = [
        known
        for known in streams.values()
        if known.name in needed or not isinstance(known.source, RunningSource)
    ]
    own = [
        operator
        for operator in operators
        if isinstance(operator, SqlWrite) or needed & set(operator.outputs)
    ]
    return replace(network, streams=tuple(kept), operators=tuple(own))
