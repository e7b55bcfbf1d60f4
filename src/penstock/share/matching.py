"""Which streams of a new network run already: found by signature, from the results backwards.

Only *settled* streams are shared, those behind state, opaque code or a changed event time: other
work is repeated, which costs less than reading another channel. The first streams met on the way
back that run already are reused; nothing in front of those is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.errors import PenstockError
from penstock.model.canonical import CanonicalStream, canonical_streams
from penstock.model.expressions import Column
from penstock.model.network import Network
from penstock.model.operators import Input, Map, Operator, SqlWrite
from penstock.model.sharing import SharedStream, Sharing
from penstock.model.sources import RunningSource, Stream
from penstock.place.fuse import changes_event_time


@dataclass(frozen=True)
class OfferedStream:
    """A stream that runs: its meaning, who makes it, and how others read it.

    ``tapped`` if it lies inside its maker and has to be given out first; ``obstacle`` is why it
    cannot be read, if so.
    """

    stream: Stream
    canonical: CanonicalStream
    maker: str
    tapped: bool = False
    obstacle: str = ""


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
    network: Network,
    running: Mapping[str, CanonicalStream],
    offers: Callable[[str], Sequence[OfferedStream]],
) -> Sharing:
    """What a network can read of others; ``offers`` tells what runs with a signature.

    ``running`` says what the running streams are that it reads by name. Linear in its operators.
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
        return Sharing()
    return _Search(network, canonical_streams(network, told), offers).found()


def _its_own(stream: Stream, network: Network) -> CanonicalStream:
    """A stream that the network brings in itself: it begins with it, so it is like no other."""
    plain = canonical_streams(replace(network, operators=(), queries=()))[stream.name]
    return replace(plain, relation=f"{plain.relation} of its own")


class _Search:
    def __init__(
        self,
        network: Network,
        canonical: Mapping[str, CanonicalStream],
        offers: Callable[[str], Sequence[OfferedStream]],
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
        producer = self._network.producers.get(stream)
        if producer is None or stream not in self._settled or list(producer.outputs) != [stream]:
            return False
        if isinstance(producer, SqlWrite):
            return False
        canonical, notes = self._canonical[stream], list[str]()
        for offer in self._offers(canonical.signature):
            why = offer.obstacle or self._collision(offer)
            if why:
                notes.append(f"{stream} is the same as {offer.stream.name}, but {why}")
                continue
            pairs = zip(canonical.ordered_columns(), offer.canonical.ordered_columns(), strict=True)
            named = dict(pairs)
            columns = tuple(
                (name, offer.stream.shape.schema[named[name.lower()]].name)
                for name in producer.output.schema.names
            )
            read = SharedStream(
                stream,
                offer.stream.name,
                canonical.signature,
                offer.maker,
                columns,
                offer.tapped,
            )
            if _as_read(producer, read, offer.stream) is None:
                why = "its columns are kept otherwise"
                notes.append(f"{stream} is the same as {offer.stream.name}, but {why}")
                continue
            self._reads[stream] = read
            return True
        self._notes += [note for note in notes if _reason(note) not in map(_reason, self._notes)]
        return False

    def _collision(self, offer: OfferedStream) -> str:
        """Why a stream of that name cannot be read beside what the network has itself."""
        name = offer.stream.name
        own = {stream.name: stream for stream in self._network.streams}
        if name in self._network.producers or (
            name in own and not isinstance(own[name].source, RunningSource)
        ):
            return f"{name} is the name of a stream of its own"
        return ""


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


def shared_network(
    network: Network, reads: Iterable[SharedStream], running: Mapping[str, Stream]
) -> Network:
    """The network with these streams read of others; ``running`` are those it reads, by name."""
    by_stream = {read.stream: read for read in reads}
    if not by_stream:
        return network
    sources = {
        name: running[name]
        for name in sorted({shared_stream.source for shared_stream in by_stream.values()})
    }
    operators: list[Operator] = []
    for operator in network.operators:
        read = by_stream.get(operator.name)
        if read is None:
            operators.append(operator)
            continue
        reading = _as_read(operator, read, sources[read.source])
        assert reading is not None, "it was matched so"
        operators.append(reading)
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


def _as_read(operator: Operator, read: SharedStream, source: Stream) -> Map | None:
    """What gives an operator's result from a running stream; None if that has another shape."""
    columns = tuple((mine, Column(theirs)) for mine, theirs in read.columns)
    try:
        reading = Map(operator.name, Input(source.name, source.shape), columns)
    except PenstockError:
        return None
    return reading if reading.output == operator.output else None
