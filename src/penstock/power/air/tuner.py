"""What a receiver does with the bytes it hears: find its results, sleep over the rest.

A tuner is fed the stream in pieces of any length and says what it found. It takes no packet on
trust: seals, bounds and numbers have to be right, or it goes on looking one byte further. It counts
the bytes during which the receiver was on; those it sleeps over are not looked at.
"""

from __future__ import annotations

from collections.abc import Collection

from penstock.power.air.cycle_state import CycleState
from penstock.power.air.events import AirEvent, Heard, Tuning
from penstock.power.air.packets import (
    DESCRIPTOR_BYTES,
    ENTRY_BYTES,
    MARK,
    PAYLOAD_SEAL_BYTES,
    Descriptor,
    IndexEntry,
    packet_at,
    packet_bytes,
    seal,
)

LARGEST_RESULT = 64 << 20
LARGEST_CYCLE = 4 << 30
_SECOND_LOOKS = 4
"""How often bytes may be looked at again on average, however often a payload is not whole."""


class Tuner:
    """One receiver that wants the results of ``queries``; ``key`` is that of the broadcast.

    >>> from penstock.power.air.cycle import AirResult, CycleHead, encode_cycle
    >>> cycle = encode_cycle(CycleHead("indexed", 1, 1, 1000), [AirResult(5, 0, b"rows")])
    >>> [event.payload for event in Tuner({5}).feed(b"noise" + cycle.data)]
    [b'rows']
    """

    def __init__(
        self, queries: Collection[int], key: bytes = b"", largest_result: int = LARGEST_RESULT
    ) -> None:
        self.tuning = Tuning()
        self._cycle = CycleState(frozenset(queries))
        self._key = key
        self._largest_result = largest_result
        self._buffer = bytearray()
        self._at = 0
        self._is_on = False
        self._sleep_bytes = 0
        self._pass_bytes = 0
        self._expected: Descriptor | None = None
        self._second_looks = 0

    def feed(self, data: bytes) -> list[AirEvent]:
        """What the next piece of the stream brings to an end; O(bytes), whatever they are."""
        self._buffer += data
        self._second_looks += _SECOND_LOOKS * len(data)
        events: list[AirEvent] = []
        while self._at < len(self._buffer) and self._advance(events):
            pass
        del self._buffer[: self._at]
        self._at = 0
        return events

    @property
    def asleep_bytes(self) -> int:
        """How many of the bytes to come nobody has to read; :meth:`sleep` says they went by."""
        return 0 if self._buffer else self._sleep_bytes

    def sleep(self, count: int) -> None:
        """Sleeps over bytes that were not read, at most :attr:`asleep_bytes`."""
        assert count <= self.asleep_bytes, "these have to be heard"
        self._is_on = False
        self._sleep_bytes -= count
        self.tuning.slept_bytes += count

    def _advance(self, events: list[AirEvent]) -> bool:
        """One step; False if it needs more bytes."""
        if self._sleep_bytes:
            return self._sleep()
        if self._pass_bytes:
            return self._pass_over()
        if self._expected is not None:
            return self._take_payload(self._expected, events)
        return self._find_packet(events)

    @property
    def _available(self) -> int:
        return len(self._buffer) - self._at

    def _hear(self, count: int) -> None:
        """Goes on by ``count`` bytes with the receiver on."""
        if count and not self._is_on:
            self._is_on = True
            self.tuning.power_ups += 1
        self._at += count
        self.tuning.tuned_bytes += count

    def _hear_garbage(self, count: int) -> None:
        self._hear(count)
        self.tuning.garbage_bytes += count

    def _sleep(self) -> bool:
        self._is_on = False
        slept = min(self._sleep_bytes, self._available)
        self._at += slept
        self._sleep_bytes -= slept
        self.tuning.slept_bytes += slept
        return True

    def _pass_over(self) -> bool:
        """Hears another query's payload, which need not be looked at."""
        passed = min(self._pass_bytes, self._available)
        self._hear(passed)
        self._pass_bytes -= passed
        if not self._pass_bytes and self._cycle.is_over:
            self._is_on = False
        return True

    def _find_packet(self, events: list[AirEvent]) -> bool:
        start = self._buffer.find(MARK, self._at)
        if start < 0:
            half = 1 if self._buffer.endswith(MARK[:1]) else 0
            self._hear_garbage(self._available - half)
            return False
        self._hear_garbage(start - self._at)
        wanted = packet_bytes(self._buffer, self._at)
        if wanted is None or self._available < wanted:
            return False
        with memoryview(self._buffer) as whole, whole[self._at : self._at + wanted] as view:
            packet = packet_at(view, self._key) if wanted else None
        if packet is None or not self._is_within_bounds(packet):
            self._hear_garbage(1)
            return True
        self._hear(wanted)
        if isinstance(packet, IndexEntry):
            self._on_entry(packet, events)
        else:
            self._on_descriptor(packet, events)
        return True

    def _is_within_bounds(self, packet: IndexEntry | Descriptor) -> bool:
        if packet.position >= packet.count:
            return False
        if isinstance(packet, IndexEntry):
            results = packet.count * (ENTRY_BYTES + DESCRIPTOR_BYTES)
            last = packet.cycle_bytes - DESCRIPTOR_BYTES
            is_inside = packet.count * ENTRY_BYTES <= packet.offset <= last
            return is_inside and results <= packet.cycle_bytes <= LARGEST_CYCLE
        return packet.length <= self._largest_result and packet.rest_bytes <= LARGEST_CYCLE

    def _on_entry(self, entry: IndexEntry, events: list[AirEvent]) -> None:
        if not self._cycle.enter(entry.broadcast, entry.cycle, events):
            self.tuning.replayed_packets += 1
            return
        self._cycle.note_entry(entry, events)
        if entry.position == entry.count - 1:
            self._sleep_to_next(entry.count * ENTRY_BYTES, entry.cycle_bytes, events)

    def _on_descriptor(self, found: Descriptor, events: list[AirEvent]) -> None:
        if not self._cycle.enter(found.broadcast, found.cycle, events):
            self.tuning.replayed_packets += 1
            self._pass_bytes = found.length
            return
        self._cycle.note_descriptor(found)
        if found.query in self._cycle.wanted:
            self._expected = found
            if not found.length:
                self._take_payload(found, events)
        elif found.has_index:
            self._leave_indexed(found, found.length, events)
        else:
            self._pass_bytes = found.length
            if found.position == found.count - 1:
                self._end_cycle(0, events)

    def _take_payload(self, found: Descriptor, events: list[AirEvent]) -> bool:
        if self._available < found.length:
            return False
        self._expected = None
        payload = bytes(self._buffer[self._at : self._at + found.length])
        if seal(payload, self._key, PAYLOAD_SEAL_BYTES) != found.payload_seal:
            self._on_broken(found)
            return True
        self._hear(found.length)
        self._cycle.wanted.discard(found.query)
        events.append(Heard(found.broadcast, found.cycle, found.query, found.plan, payload))
        if found.has_index:
            self._leave_indexed(found, 0, events)
        elif not self._cycle.wanted or found.position == found.count - 1:
            self._end_cycle(found.rest_bytes, events)
        return True

    def _on_broken(self, found: Descriptor) -> None:
        """Looks for packets in what is no payload: a cut one is followed by others too early."""
        if self._second_looks < found.length:
            self._hear_garbage(found.length)
        else:
            self._second_looks -= found.length

    def _leave_indexed(self, found: Descriptor, ahead: int, events: list[AirEvent]) -> None:
        """Sleeps over the ``ahead`` bytes that a result still has, to the next of one's own."""
        whole = self._cycle.cycle_bytes
        if whole >= found.rest_bytes + ahead:
            self._sleep_to_next(whole - found.rest_bytes - ahead, whole, events)
        else:
            self._end_cycle(found.rest_bytes + ahead, events)

    def _sleep_to_next(self, at: int, cycle_bytes: int, events: list[AirEvent]) -> None:
        """Sleeps to the next result of one's own, or to the end of the cycle."""
        next_place = self._cycle.next_place(at)
        if next_place is None:
            self._end_cycle(cycle_bytes - at, events)
        else:
            self._sleep_bytes = next_place - at

    def _end_cycle(self, rest_bytes: int, events: list[AirEvent]) -> None:
        self._cycle.leave(events)
        self._sleep_bytes = rest_bytes
        if not self._pass_bytes:
            self._is_on = False
