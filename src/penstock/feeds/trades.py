"""Stock trades: a symbol, an exchange, a price that wanders around the symbol's own, shares."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.feeds.counter import Draws, Integers
from penstock.feeds.generated import TIMESTAMP, US_PER_S, Generated, check, check_positive

TRADES_SCHEMA = pa.schema(
    [
        ("ts", TIMESTAMP),
        ("symbol", pa.string()),
        ("exchange", pa.string()),
        ("price", pa.float64()),
        ("shares", pa.int64()),
    ]
)
_EXCHANGES = ("XNAS", "XNYS", "XLON", "XETR")
_MOST_SYMBOLS = 10_000
_LOT = 10
_WAVE_US = 600 * US_PER_S


@dataclass(frozen=True, kw_only=True)
class Trades(Generated):
    """Trades at a steady rate, each of one of ``symbols`` at one of four exchanges.

    A price is the symbol's own, moved up and down by a tenth within ten minutes, and a little at
    every trade. The feed ends after ``seconds``, or never.

    >>> feed = Trades(rate_per_s=10, seconds=60, symbols=5)
    >>> feed.size, feed.read(0, 1)["symbol"].to_pylist()[0][0]
    (600, 'S')
    """

    rate_per_s: float = 100.0
    seconds: float | None = None
    symbols: int = 50

    def __post_init__(self) -> None:
        check_positive("the rate", self.rate_per_s)
        check(
            1 <= self.symbols <= _MOST_SYMBOLS,
            f"trades need 1 to {_MOST_SYMBOLS:,} symbols; got {self.symbols}",
        )
        if self.seconds is not None:
            check_positive("the length", self.seconds)
        super().__post_init__()

    @property
    def schema(self) -> pa.Schema:
        return TRADES_SCHEMA

    @property
    def size(self) -> int | None:
        return None if self.seconds is None else math.floor(self.seconds * self.rate_per_s)

    @property
    def _apart_us(self) -> int:
        return max(1, round(US_PER_S / self.rate_per_s))

    def _offsets_us(self, first: int, stop: int) -> Integers:
        return np.arange(first, stop, dtype=np.int64) * self._apart_us

    def _count_before(self, offset_us: int) -> int:
        return -(-offset_us // self._apart_us)

    def _rows(self, index: Integers, time_us: Integers) -> list[pa.Array]:
        symbol = Draws(self.seed, "symbol").below(self.symbols, index)
        exchange = Draws(self.seed, "exchange").below(len(_EXCHANGES), index)
        return [
            pa.array(time_us, TIMESTAMP),
            pa.array([f"S{number:04d}" for number in symbol.tolist()]),
            pa.array([_EXCHANGES[number] for number in exchange.tolist()]),
            pa.array(self._cents(index, time_us, symbol) / 100.0),
            pa.array((Draws(self.seed, "shares").below(100, index) + 1) * _LOT),
        ]

    def _cents(self, index: Integers, time_us: Integers, symbol: Integers) -> Integers:
        own = 1_000 + Draws(self.seed, "price").below(20_000, symbol)
        # A triangle, shifted for every symbol: whole numbers only, the same on every machine.
        shift = Draws(self.seed, "shift").below(_WAVE_US // 1_000, symbol) * 1_000
        phase = (time_us + shift) % _WAVE_US
        height = np.minimum(phase, _WAVE_US - phase) * 2_000 // _WAVE_US - 500
        noise = Draws(self.seed, "noise").below(101, index) - 50
        cents: Integers = own + own * height // 5_000 + own * noise // 10_000
        return cents
