"""Network packets: bursts that look alike at every scale, few hosts that talk a lot."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.feeds.cascade import Cascade
from penstock.feeds.counter import Draws, Integers, Reals
from penstock.feeds.generated import TIMESTAMP, US_PER_S, Generated, check, check_positive

PACKETS_SCHEMA = pa.schema(
    [
        ("ts", TIMESTAMP),
        ("src", pa.string()),
        ("dst", pa.string()),
        ("protocol", pa.string()),
        ("bytes", pa.int32()),
    ]
)

_BIN_US = 10_000
# Intervals longer than a block, nearly a day, hold equally many packets. The bound keeps products
# of a bin and the length of a block within 64 bits.
_MOST_LEVELS = 23
_LONGEST_BLOCK_US = _BIN_US << _MOST_LEVELS
_MOST_HOSTS = 1_000_000
_ADDRESSES = 1 << 24  # 10.0.0.0/8

_PROTOCOLS = pa.array(["tcp", "udp", "icmp"])
_PARTS = 256
# Shares in these parts. Large captures of Internet links have shares of this order.
_PROTOCOL_PARTS = (212, 40, 4)
# For every protocol: (parts, smallest size, largest size). TCP sends bare acknowledgements
# and full segments and not much between; UDP and ICMP are mostly small.
_SIZES = (
    ((116, 40, 52), (28, 53, 575), (12, 576, 1399), (100, 1400, 1500)),
    ((140, 60, 200), (76, 201, 1199), (40, 1200, 1500)),
    ((216, 64, 84), (40, 85, 1500)),
)
_SIZES_EACH = 16 * _PARTS


@dataclass(frozen=True, kw_only=True)
class Packets(Generated):
    """Packets seen on a network link, self-similar with Hurst parameter ``hurst``.

    Exactly ``rate_per_s`` packets a second on average, over the ``seconds`` of a feed that ends or
    over each block, nearly a day, of one that does not. Hosts send and receive by Zipf's law with
    exponent ``skew``; who sends much is independent of who receives much.

    >>> feed = Packets(rate_per_s=1_000, seconds=60)
    >>> feed.size
    60000
    >>> feed.read(0, 1)["src"][0].as_py().startswith("10.")
    True
    """

    rate_per_s: float = 1_000.0
    hurst: float = 0.8
    hosts: int = 1_000
    skew: float = 1.1
    seconds: float | None = None

    def __post_init__(self) -> None:
        check_positive("the rate of packets per second", self.rate_per_s)
        check(
            0.5 < self.hurst < 1,
            f"the Hurst parameter must lie between 0.5 and 1; got {self.hurst}",
            "0.5 would be without bursts, measured networks show 0.7 to 0.9.",
        )
        check(
            2 <= self.hosts <= _MOST_HOSTS,
            f"packets need 2 to {_MOST_HOSTS:,} hosts; got {self.hosts}",
        )
        check(
            0 <= self.skew <= 5,
            f"the skew of hosts must lie between 0 (none) and 5; got {self.skew}",
        )
        if self.seconds is not None:
            check_positive("the number of seconds", self.seconds)
        check(
            self._cascade.rows >= 1,
            f"{self.rate_per_s} packets per second make no packet in {self.seconds} seconds",
            "Raise the rate or the number of seconds.",
        )
        super().__post_init__()

    @property
    def schema(self) -> pa.Schema:
        """Event time, sender, receiver, protocol and length of the packet."""
        return PACKETS_SCHEMA

    @property
    def size(self) -> int | None:
        """Rate times seconds, rounded in every block; None without ``seconds``."""
        return None if self.seconds is None else self._blocks(self.seconds) * self._cascade.rows

    @property
    def _cascade(self) -> Cascade:
        block_us = _LONGEST_BLOCK_US
        if self.seconds is not None:
            block_us = math.ceil(self.seconds * US_PER_S / self._blocks(self.seconds))
        levels = max(0, math.ceil(math.log2(block_us / _BIN_US)))
        rows = round(self.rate_per_s * block_us / US_PER_S)
        return Cascade(self.seed, self.hurst, rows, levels, block_us)

    @staticmethod
    def _blocks(seconds: float) -> int:
        return math.ceil(seconds * US_PER_S / _LONGEST_BLOCK_US)

    def _offsets_us(self, first: int, stop: int) -> Integers:
        cascade = self._cascade
        pieces = []
        for block in range(first // cascade.rows, (stop - 1) // cascade.rows + 1):
            before = block * cascade.rows
            piece = slice(max(first - before, 0), min(stop - before, cascade.rows))
            times_us = cascade.times_us(block, piece.start, piece.stop)
            pieces.append(times_us + block * cascade.block_us)
        return np.concatenate(pieces)

    def _count_before(self, offset_us: int) -> int:
        cascade = self._cascade
        block, rest_us = divmod(offset_us, cascade.block_us)
        return block * cascade.rows + cascade.count_before(block, rest_us)

    def _rows(self, index: Integers, time_us: Integers) -> list[pa.Array]:
        addresses = _addresses(self.hosts, self.seed)
        src, dst = self._ends(index)
        protocol = self._protocol(index)
        return [
            pa.array(time_us).view(TIMESTAMP),
            addresses.take(pa.array(src)),
            addresses.take(pa.array(dst)),
            _PROTOCOLS.take(pa.array(protocol)),
            pa.array(self._bytes(index, protocol)),
        ]

    def _ends(self, index: Integers) -> tuple[Integers, Integers]:
        """Sender and receiver of every packet, never the same host."""
        ranks = _zipf(self.hosts, self.skew)
        src = np.searchsorted(ranks, Draws(self.seed, "packets.src").fraction(index), "right")
        rank = np.searchsorted(ranks, Draws(self.seed, "packets.dst").fraction(index), "right")
        dst = _receivers(self.hosts, self.seed)[rank]
        dst += dst == src
        dst[dst == self.hosts] = 0
        return src, dst

    def _protocol(self, index: Integers) -> Integers:
        part = Draws(self.seed, "packets.protocol").below(_PARTS, index)
        return np.repeat(np.arange(len(_PROTOCOL_PARTS)), _PROTOCOL_PARTS)[part]

    def _bytes(self, index: Integers, protocol: Integers) -> NDArray[np.int32]:
        draw = Draws(self.seed, "packets.bytes").below(_SIZES_EACH, index)
        size: NDArray[np.int32] = _sizes()[protocol * _SIZES_EACH + draw]
        return size


@lru_cache(maxsize=8)
def _zipf(hosts: int, skew: float) -> Reals:
    """The probability that a packet belongs to one of the first k hosts, for every k."""
    cumulated: Reals = np.cumsum(np.arange(1, hosts + 1) ** -float(skew))
    cumulated /= cumulated[-1]  # the last one is exactly 1, above every fraction
    # The last bits of a power may differ between processors.
    return cumulated.round(12)


@lru_cache(maxsize=8)
def _receivers(hosts: int, seed: int) -> Integers:
    """The host at every rank of receivers, independent of its rank among senders."""
    return np.argsort(Draws(seed, "packets.receiver").bits(np.arange(hosts)), kind="stable")


@lru_cache(maxsize=8)
def _addresses(hosts: int, seed: int) -> pa.Array:
    """A different address 10.x.y.z for every host."""
    # An odd factor permutes the numbers below a power of two, so no two hosts share an address.
    key = Draws(seed, "packets.address").below(_ADDRESSES, np.arange(2)).tolist()
    number = (np.arange(hosts) * (key[0] | 1) + key[1]) % _ADDRESSES
    octets = pa.array([str(octet) for octet in range(256)])
    parts = [octets.take(pa.array(number >> shift & 255)) for shift in (16, 8, 0)]
    return pc.binary_join_element_wise("10", *parts, ".")


@lru_cache(maxsize=1)
def _sizes() -> NDArray[np.int32]:
    """Equally likely packet sizes, ``_SIZES_EACH`` for one protocol after the other."""
    pieces = [
        np.linspace(smallest, largest, parts * _SIZES_EACH // _PARTS).round()
        for ranges in _SIZES
        for parts, smallest, largest in ranges
    ]
    return np.concatenate(pieces).astype(np.int32)
