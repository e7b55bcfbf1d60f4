"""Rows whose keys follow the b-model: few keys that are frequent, many that are rare.

The range of keys is halved again and again; a key lies in the lower half, which is the larger of
the two where they differ, with probability ``b``. With ``b = 0.5`` all keys are equally likely,
with ``b = 0.8`` four fifths of the rows have a key of the lower half, and so on in every half
(Wang, Ailamaki and Faloutsos 2002; the "80/20 law").
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa

from penstock.feeds.counter import Draws, Integers
from penstock.feeds.generated import TIMESTAMP, US_PER_S, Generated, check, check_positive

KEYS_SCHEMA = pa.schema([("ts", TIMESTAMP), ("key", pa.int64()), ("value", pa.int64())])
LARGEST_KEY = 10_000_000
_MOST_HALVINGS = 64


@dataclass(frozen=True, kw_only=True)
class SkewedKeys(Generated):
    """Keys from 0 to ``largest`` by the b-model, ``rate_per_s`` rows a second, ``value`` random.

    >>> feed = SkewedKeys(rate_per_s=5_000, seconds=60, b=0.7)
    >>> feed.size, feed.read(0, 3)["key"].to_pylist()
    (300000, [5313933, 1254302, 2988976])
    """

    rate_per_s: float = 1_000.0
    seconds: float = 60.0
    b: float = 0.7
    largest: int = LARGEST_KEY

    def __post_init__(self) -> None:
        check_positive("the rate", self.rate_per_s)
        check_positive("the length in seconds", self.seconds)
        check(0.5 <= self.b < 1, f"b must be at least 0.5 and below 1; got {self.b}")
        check(0 <= self.largest < 1 << 62, f"keys from 0 to {self.largest}", "Give a larger one.")
        super().__post_init__()

    @property
    def schema(self) -> pa.Schema:
        return KEYS_SCHEMA

    @property
    def size(self) -> int:
        return round(self.rate_per_s * self.seconds)

    def _offsets_us(self, first: int, stop: int) -> Integers:
        return (np.arange(first, stop) * (US_PER_S / self.rate_per_s)).astype(np.int64)

    def _count_before(self, offset_us: int) -> int:
        count = max(0, int(offset_us * self.rate_per_s / US_PER_S) - 1)
        while self._offsets_us(count, count + 1)[0] < offset_us:
            count += 1
        return count

    def _rows(self, index: Integers, time_us: Integers) -> list[pa.Array]:
        values = Draws(self.seed, "keys.value").below(1_000, index)
        times = pa.array(time_us).cast(TIMESTAMP)
        return [times, pa.array(self._keys(index)), pa.array(values)]

    def _keys(self, index: Integers) -> Integers:
        draws = Draws(self.seed, "keys.key")
        low, width = np.zeros(len(index), np.int64), np.full(len(index), self.largest + 1)
        for level in range(int(self.largest).bit_length()):
            lower = draws.fraction(index * _MOST_HALVINGS + level) < self.b
            larger = (width + 1) // 2
            stays = lower | (width == 1)  # a single key has no halves
            low = np.where(stays, low, low + larger)
            width = np.where(stays, larger, width - larger)
        return low


@cache
def equal_keys(b: float, keys: int = LARGEST_KEY + 1) -> float:
    """The probability that two keys of the b-model are equal.

    >>> f"{equal_keys(0.7):.3g}", equal_keys(0.5, 8)
    ('2.55e-06', 0.125)
    """
    if keys == 1:
        return 1.0
    larger = (keys + 1) // 2
    return b * b * equal_keys(b, larger) + (1 - b) ** 2 * equal_keys(b, keys - larger)
