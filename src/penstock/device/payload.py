"""What a result on the air holds: rows as an Arrow stream, and where they lie in their channel.

Only who has the query's key can read it. Every cycle of every start of the disseminator has numbers
of its own, so no two payloads are ever encrypted alike.
"""

from __future__ import annotations

import json
import struct
from dataclasses import asdict, dataclass

import pyarrow as pa
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from penstock.channels.manifest import END_OF_TIME_US
from penstock.feeds.arrow import arrow_schema
from penstock.model.schema import Schema
from penstock.power.air.cycle import payload_of, rows_of

_META = b"penstock"
_ENCRYPTION_BYTES = 16
_NONCE = struct.Struct("<IQ")


@dataclass(frozen=True)
class PayloadSpan:
    """Which batches of a channel a payload holds, and what is known of the time of its stream.

    ``counts`` are the rows of the batches from ``first`` on; ``latest_us`` is the latest event time
    of all batches before. After it no row comes before ``watermark_us``, none at all if ``ended``.
    """

    first: int
    counts: tuple[int, ...]
    watermark_us: int | None = None
    latest_us: int | None = None
    ended: bool = False

    @property
    def next(self) -> int:
        """The batch after the last of these."""
        return self.first + len(self.counts)

    def rows_before(self, sequence: int) -> int:
        """How many of the rows lie in batches before ``sequence``."""
        return sum(self.counts[: max(0, sequence - self.first)])


@dataclass(frozen=True)
class AirKey:
    """The key of a query; empty for an open broadcast."""

    key: bytes = b""

    def lock(self, payload: bytes, broadcast: int, cycle: int) -> bytes:
        """The payload as nobody else can read it."""
        if not self.key:
            return payload
        return ChaCha20Poly1305(self.key).encrypt(_NONCE.pack(broadcast, cycle), payload, None)

    def unlock(self, payload: bytes, broadcast: int, cycle: int) -> bytes | None:
        """What was locked for this cycle; None if it was not, or with another key."""
        if not self.key:
            return payload
        try:
            nonce = _NONCE.pack(broadcast, cycle)
            return ChaCha20Poly1305(self.key).decrypt(nonce, payload, None)
        except InvalidTag:
            return None


def pack(rows: pa.Table, place: PayloadSpan) -> bytes:
    """Rows and where they lie, as bytes.

    >>> found = unpack(pack(pa.table({"home": ["a"]}), PayloadSpan(3, (1,))))
    >>> found[1].next, found[0].num_rows
    (4, 1)
    """
    meta = json.dumps(asdict(place), separators=(",", ":")).encode()
    # Arrow writes a header for every piece of a table, and rows come in pieces, one a batch.
    whole = rows.combine_chunks().replace_schema_metadata({_META: meta})
    return payload_of(whole)


def envelope_bytes(schema: Schema, is_open: bool) -> int:
    """What a result takes on the air beside its descriptor and its rows.

    >>> envelope_bytes(Schema.parse("home string, kwh double"), is_open=True) > 300
    True
    """
    wanted = arrow_schema(schema)
    row = pa.table([pa.nulls(1, field.type) for field in wanted], schema=wanted)
    seal = 0 if is_open else _ENCRYPTION_BYTES
    packed = pack(row, PayloadSpan(0, (1,), END_OF_TIME_US, END_OF_TIME_US))
    return len(packed) + seal - int(row.nbytes)


def unpack(payload: bytes) -> tuple[pa.Table, PayloadSpan] | None:
    """The rows and their place; None if it is not what :func:`pack` makes."""
    rows = rows_of(payload)
    if rows is None:
        return None
    try:
        fields = json.loads((rows.schema.metadata or {})[_META])
        place = PayloadSpan(**{**fields, "counts": tuple(map(int, fields["counts"]))})
    except (KeyError, ValueError, TypeError):
        return None
    return (rows, place) if sum(place.counts) == rows.num_rows else None
