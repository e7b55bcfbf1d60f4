"""The packets of a cycle: index entries and descriptors, sealed so that nothing else passes.

An index entry says where a query's result is in its cycle; a descriptor stands in front of every
result and says what it is and when the next cycle comes. Both have a fixed size, begin with the
same mark and end with a seal over all their bytes: with a key nobody else can make one, without a
key it is a checksum. Numbers are unsigned and little-endian.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, fields
from hashlib import blake2b
from typing import ClassVar, TypeVar

MARK = b"\xf5P"
VERSION = 1
_ENTRY, _DESCRIPTOR = 1, 2
_HEAD = struct.Struct("<2sBB")
_SEAL_BYTES = 8
PAYLOAD_SEAL_BYTES = 16
MOST_RESULTS = 0xFFFF

_P = TypeVar("_P", bound="_Packet")


@dataclass(frozen=True)
class _Packet:
    kind: ClassVar[int]
    layout: ClassVar[struct.Struct]

    def encode(self, key: bytes) -> bytes:
        """The bytes of the packet, sealed with ``key``."""
        values = (getattr(self, field.name) for field in fields(self))
        plain = _HEAD.pack(MARK, VERSION, self.kind) + self.layout.pack(*values)
        return plain + seal(plain, key, _SEAL_BYTES)

    @classmethod
    def size(cls) -> int:
        """Bytes on the air."""
        return _HEAD.size + cls.layout.size + _SEAL_BYTES

    @classmethod
    def decode(cls: type[_P], data: memoryview, key: bytes) -> _P | None:
        """The packet at the beginning of ``data``; None if there is none whose seal is right."""
        end = cls.size() - _SEAL_BYTES
        if len(data) < cls.size() or _HEAD.unpack_from(data) != (MARK, VERSION, cls.kind):
            return None
        if bytes(data[end : cls.size()]) != seal(data[:end], key, _SEAL_BYTES):
            return None
        return cls(*cls.layout.unpack_from(data, _HEAD.size))


@dataclass(frozen=True)
class IndexEntry(_Packet):
    """Where the result of a query is: ``offset`` bytes behind the start of its cycle.

    It is entry number ``position`` of ``count``; the cycle has ``cycle_bytes`` in all.

    >>> entry = IndexEntry(broadcast=1, cycle=7, query=3, position=0, count=2, offset=88,
    ...                    cycle_bytes=300)
    >>> IndexEntry.decode(memoryview(entry.encode(b"secret")), b"secret") == entry
    True
    >>> IndexEntry.decode(memoryview(entry.encode(b"guess")), b"secret") is None
    True
    """

    broadcast: int
    cycle: int
    query: int
    position: int
    count: int
    offset: int
    cycle_bytes: int

    kind: ClassVar[int] = _ENTRY
    layout: ClassVar[struct.Struct] = struct.Struct("<IIIHHQQ")


@dataclass(frozen=True)
class Descriptor(_Packet):
    """What stands in front of a result.

    It is result number ``position`` of ``count`` in its cycle, which begins with an index or has
    none. ``plan`` numbers the cuts it was made with, ``length`` is that of the payload behind it,
    ``rest_bytes`` that of the cycle behind the payload, and ``next_cycle_ms`` the time from here to
    the next cycle.
    """

    broadcast: int
    cycle: int
    query: int
    position: int
    count: int
    has_index: int
    plan: int
    next_cycle_ms: int
    length: int
    rest_bytes: int
    payload_seal: bytes

    kind: ClassVar[int] = _DESCRIPTOR
    layout: ClassVar[struct.Struct] = struct.Struct(f"<IIIHHHIIQQ{PAYLOAD_SEAL_BYTES}s")


ENTRY_BYTES = IndexEntry.size()
DESCRIPTOR_BYTES = Descriptor.size()


def seal(data: bytes | memoryview, key: bytes, size: int) -> bytes:
    """A keyed digest of ``data``; a plain one for an open broadcast, whose key is empty."""
    return blake2b(data, digest_size=size, key=key).digest()


def packet_bytes(data: bytearray, at: int) -> int | None:
    """The size of the packet that seems to begin at ``at``: 0 for none, None if that is not known.

    >>> packet_bytes(bytearray(MARK + bytes([VERSION, 9])), 0), packet_bytes(bytearray(MARK), 0)
    (0, None)
    """
    if len(data) - at < _HEAD.size:
        return None
    mark, version, kind = _HEAD.unpack_from(data, at)
    sizes = {_ENTRY: ENTRY_BYTES, _DESCRIPTOR: DESCRIPTOR_BYTES}
    return sizes.get(kind, 0) if (mark, version) == (MARK, VERSION) else 0


def packet_at(data: memoryview, key: bytes) -> IndexEntry | Descriptor | None:
    """The packet at the beginning of ``data``, or None."""
    return IndexEntry.decode(data, key) or Descriptor.decode(data, key)
