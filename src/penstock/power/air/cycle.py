"""Building a cycle: results in the order of the broadcast, as one run of bytes.

What a device tunes to is then exactly what the model says of sizes as sent: a result's size is its
payload and its descriptor, the index has ``ENTRY_BYTES`` for every result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from penstock.errors import InputError
from penstock.model.devices import INDEXED, WEIGHTED
from penstock.power.air.packets import (
    DESCRIPTOR_BYTES,
    ENTRY_BYTES,
    MOST_RESULTS,
    PAYLOAD_SEAL_BYTES,
    Descriptor,
    IndexEntry,
    seal,
)


@dataclass(frozen=True)
class AirResult:
    """What one query sends in a cycle; ``watts`` are those of all who receive it."""

    query: int
    plan: int
    payload: bytes
    watts: float = 1.0

    @property
    def size(self) -> int:
        """Bytes on the air, with the descriptor."""
        return DESCRIPTOR_BYTES + len(self.payload)


@dataclass(frozen=True)
class CycleHead:
    """What all packets of a cycle share.

    ``broadcast`` numbers the starts of the disseminator and ``cycle`` the cycles of each: together
    they only grow, which is how a receiver tells what it has heard before.
    """

    organisation: str
    broadcast: int
    cycle: int
    period_ms: int
    key: bytes = b""


@dataclass(frozen=True)
class AirCycle:
    """A cycle as it goes over the air: its bytes, and which of them each query's result takes."""

    head: CycleHead
    data: bytes
    index_bytes: int
    places: dict[int, range]

    def tuned_ranges(self, query: int) -> list[range]:
        """The bytes that who wants ``query`` has to hear, in order.

        From the start to the end of its result; with an index, that and the result alone. Who
        finds nothing has heard the index, or all of the cycle.
        """
        place = self.places.get(query)
        if self.head.organisation == INDEXED:
            index = range(self.index_bytes)
            return [index] if place is None else [index, place]
        return [range(len(self.data) if place is None else place.stop)]


def encode_cycle(head: CycleHead, results: Sequence[AirResult]) -> AirCycle:
    """The cycle that carries ``results``; equal ones stay in the order they are given in."""
    if len({result.query for result in results}) != len(results):
        raise InputError("a cycle has two results of one query", hint="Send them as one.")
    if len(results) > MOST_RESULTS:
        raise InputError(
            f"a cycle has {len(results):,} results; there is room for {MOST_RESULTS:,}",
            hint="Use several broadcasts.",
        )
    ordered = sorted(results, key=lambda result: _key(head.organisation, result))
    index_bytes = ENTRY_BYTES * len(ordered) if head.organisation == INDEXED else 0
    places, at = {}, index_bytes
    for result in ordered:
        places[result.query] = range(at, at + result.size)
        at += result.size
    parts = _index(head, places, at) if index_bytes else []
    for position, result in enumerate(ordered):
        rest = at - places[result.query].stop
        parts += [_descriptor(head, result, position, len(ordered), rest), result.payload]
    return AirCycle(head, b"".join(parts), index_bytes, places)


def _key(organisation: str, result: AirResult) -> float:
    if organisation != WEIGHTED:
        return result.size
    return result.size / result.watts if result.watts > 0 else float("inf")


def _index(head: CycleHead, places: dict[int, range], cycle_bytes: int) -> list[bytes]:
    return [
        IndexEntry(
            head.broadcast, head.cycle, query, position, len(places), place.start, cycle_bytes
        ).encode(head.key)
        for position, (query, place) in enumerate(places.items())
    ]


def _descriptor(
    head: CycleHead, result: AirResult, position: int, count: int, rest_bytes: int
) -> bytes:
    return Descriptor(
        head.broadcast, head.cycle, result.query, position, count,
        int(head.organisation == INDEXED), result.plan, head.period_ms, len(result.payload),
        rest_bytes, seal(result.payload, head.key, PAYLOAD_SEAL_BYTES),
    ).encode(head.key)  # fmt: skip


def payload_of(table: pa.Table) -> bytes:
    """Rows as an Arrow stream, with their schema: a receiver that was asleep can read them."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def rows_of(payload: bytes) -> pa.Table | None:
    """The rows of a payload; None if it is not what :func:`payload_of` makes.

    >>> rows_of(payload_of(pa.table({"home": ["a", "b"]}))).to_pydict()
    {'home': ['a', 'b']}
    >>> rows_of(b"no rows") is None
    True
    """
    try:
        with pa.ipc.open_stream(pa.BufferReader(payload)) as reader:
            table = reader.read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError):
        return None
    return table
