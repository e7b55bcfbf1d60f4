"""How tuples arrive at a source: records that say it, and iterators of recorded times."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from penstock.errors import InputError
from penstock.feeds.cascade import Cascade
from penstock.load.arrays import Floats

Times = Callable[[], Iterator[Floats]]
"""Gives ascending arrival times in seconds, in pieces."""

_US = 1_000_000


@dataclass(frozen=True)
class Steady:
    """A constant mean rate; Poisson, or one tuple exactly every 1/rate seconds if ``periodic``."""

    rate_per_s: float
    periodic: bool = False

    def __post_init__(self) -> None:
        _check_rate(self.rate_per_s)


@dataclass(frozen=True)
class Alternating:
    """Poisson arrivals whose rate is high for half a period, then low for the other half.

    ``offset_s`` is how far into its period the stream is at time 0. The mean is ``rate_per_s``.

    >>> stream = Alternating(rate_per_s=100, ratio=4, period_s=10)
    >>> stream.high_per_s, stream.low_per_s
    (160.0, 40.0)
    """

    rate_per_s: float
    ratio: float = 4.0
    period_s: float = 10.0
    offset_s: float = 0.0
    periodic: bool = False

    def __post_init__(self) -> None:
        _check_rate(self.rate_per_s)
        if not (self.ratio >= 1 and self.period_s > 0):
            raise InputError(
                f"a stream that alternates by {self.ratio:g} every {self.period_s:g} s",
                hint="Give a ratio of at least 1 and a period above 0.",
            )

    @property
    def high_per_s(self) -> float:
        return 2 * self.rate_per_s * self.ratio / (self.ratio + 1)

    @property
    def low_per_s(self) -> float:
        return 2 * self.rate_per_s / (self.ratio + 1)


@dataclass(frozen=True)
class OnOff:
    """Bursts: active and idle periods of exponentially distributed length, no tuples when idle.

    Tuples of an active period come at even distances, or Poisson if not ``periodic``. Streams
    with the same ``rhythm`` are active at the same times, shifted by ``offset_s``, or at exactly
    the other times if ``opposite``. The mean is ``rate_per_s``.
    """

    rate_per_s: float
    active_s: float = 5.0
    idle_s: float = 5.0
    rhythm: int | None = None
    opposite: bool = False
    offset_s: float = 0.0
    periodic: bool = True

    def __post_init__(self) -> None:
        _check_rate(self.rate_per_s)
        if not (self.active_s > 0 and self.idle_s > 0):
            raise InputError(
                f"bursts of {self.active_s:g} s with {self.idle_s:g} s between",
                hint="Give lengths above 0.",
            )


@dataclass(frozen=True)
class Recorded:
    """Tuples at recorded times; ``times`` gives them from the start each time it is called."""

    times: Times
    rate_per_s: float

    @classmethod
    def of(cls, times_s: Floats, repeat_s: float | None = None) -> Recorded:
        """Arrivals at these times, once, or again and again every ``repeat_s``.

        >>> trace = Recorded.of(np.array([0.0, 1.0, 1.5]), repeat_s=2.0)
        >>> pieces = trace.times()
        >>> next(pieces), next(pieces)
        (array([0. , 1. , 1.5]), array([2. , 3. , 3.5]))
        """
        times = np.asarray(times_s, dtype=np.float64)
        if not times.size or np.any(np.diff(times) < 0) or times[0] < 0:
            raise InputError(
                f"a recording of {times.size} arrival times",
                hint="Give at least one, none negative, in ascending order.",
            )
        span_s = repeat_s if repeat_s is not None else float(times[-1]) or 1.0
        if repeat_s is not None and repeat_s < times[-1]:
            raise InputError(
                f"a recording of {times[-1]:g} s repeated every {repeat_s:g} s",
                hint="Repeat it after its end.",
            )

        def pieces() -> Iterator[Floats]:
            yield times
            turn = 1
            while repeat_s is not None:
                yield times + turn * repeat_s
                turn += 1

        return cls(pieces, times.size / span_s)


def self_similar(
    rate_per_s: float, hurst: float = 0.8, seed: int = 0, block_s: float = 4096.0
) -> Recorded:
    """Arrivals that burst at every scale from 10 ms to ``block_s``, with Hurst parameter ``hurst``.

    >>> times = next(self_similar(rate_per_s=100, seed=3, block_s=40).times())
    >>> times.size
    4000
    """
    _check_rate(rate_per_s)
    levels = max(1, round(math.log2(block_s / 0.01)))
    rows = max(1, round(rate_per_s * block_s))
    cascade = Cascade(
        seed=seed, hurst=hurst, rows=rows, levels=levels, block_us=round(block_s * _US)
    )
    return Recorded(lambda: _blocks(cascade), rate_per_s)


def _blocks(cascade: Cascade, piece: int = 65_536) -> Iterator[Floats]:
    block = 0
    while True:
        for first in range(0, cascade.rows, piece):
            times = cascade.times_us(block, first, min(first + piece, cascade.rows))
            yield (times + block * cascade.block_us) / _US
        block += 1


Arrivals = Steady | Alternating | OnOff | Recorded


def _check_rate(rate_per_s: float) -> None:
    if not 0 <= rate_per_s < math.inf:
        raise InputError(f"a rate of {rate_per_s:g} a second", hint="Give zero or more.")
