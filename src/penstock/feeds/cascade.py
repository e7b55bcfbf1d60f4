"""Self-similar bursts: a random cascade that deals rows out to ever smaller intervals.

A block of ``2**levels`` bins holds a fixed number of rows. It is halved again and again; at each
halving the left half gets the share ``(1 + A)/2`` of the rows and the right one ``(1 - A)/2``, with
a random bias ``A`` in [-1, 1]. This is the multifractal wavelet model of Riedi, Crouse, Ribeiro and
Baraniuk (1999), whose biases follow a symmetric beta law with a variance of its own for every
level. A self-similar process of Hurst parameter H has a relative variance of ``V m**(2H - 2)`` in
intervals of ``m`` bins, and a bias multiplies the second moment by ``1 + var(A)``, so the bias that
halves intervals of ``2m`` bins must satisfy

    1 + var(A) = (1 + V m**(2H - 2)) / (1 + V (2m)**(2H - 2)).

The variance is then right at every scale, from one bin to the block, in expectation over the
biases. A bias is a counter-based random number of the interval it belongs to, so that any part of a
block is found by walking down from the top: reading costs its own bins plus one path.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import betaincinv

from penstock.feeds.counter import Draws, Integers, Reals, fraction

# Relative variance of the number of rows in one bin: bursts of several times the mean are common.
_BIN_VARIANCE = 1.0
_SHARE_BITS = 10
_JITTER_STEPS = 1 << 20


@dataclass(frozen=True)
class Cascade:
    """The event times of blocks of equally many rows, bursty at all scales within a block.

    Times count microseconds from the start of the block and never decrease. Blocks differ, each
    holds exactly ``rows`` rows in exactly ``block_us`` microseconds.

    >>> cascade = Cascade(seed=7, hurst=0.8, rows=1_000, levels=10, block_us=10_240_000)
    >>> times_us = cascade.times_us(block=0, first=0, stop=1_000)
    >>> cascade.count_before(block=0, offset_us=int(times_us[400]) + 1)
    401
    """

    seed: int
    hurst: float
    rows: int
    levels: int
    block_us: int

    def times_us(self, block: int, first: int, stop: int) -> Integers:
        """When rows ``first`` to ``stop - 1`` of a block happen, in microseconds of the block."""
        bins, starts, counts = self._bins(block, first, stop)
        row = np.arange(first, stop)
        # A bin lists rows outside the range, too, of which only those inside are wanted.
        inside = np.minimum(starts + counts, stop) - np.maximum(starts, first)
        return self._within(
            block, row, *(np.repeat(column, inside) for column in (bins, starts, counts))
        )

    def count_before(self, block: int, offset_us: int) -> int:
        """How many rows of a block happen less than ``offset_us`` after its start."""
        if offset_us >= self.block_us:
            return self.rows
        # The last bin that begins at or before the offset.
        bin_ = -(-((offset_us + 1) << self.levels) // self.block_us) - 1
        start, count = self._bin(block, bin_)
        row = np.arange(start, start + count)
        times_us = self._within(block, row, *np.array([[bin_], [start], [count]]))
        return start + int(np.searchsorted(times_us, offset_us))

    def _bins(self, block: int, first: int, stop: int) -> tuple[Integers, Integers, Integers]:
        """Number, first row and rows of every bin with a row in the range, in order."""
        bins, starts = np.zeros(1, np.int64), np.zeros(1, np.int64)
        counts = np.full(1, self.rows)
        for level in range(self.levels):
            shares, roundings = self._split(block, level, bins)
            left = np.floor(counts * shares + roundings).astype(np.int64)
            bins = np.stack([bins * 2, bins * 2 + 1], axis=1).ravel()
            starts = np.stack([starts, starts + left], axis=1).ravel()
            counts = np.stack([left, counts - left], axis=1).ravel()
            wanted = (counts > 0) & (starts < stop) & (starts + counts > first)
            bins, starts, counts = bins[wanted], starts[wanted], counts[wanted]
        return bins, starts, counts

    def _bin(self, block: int, bin_: int) -> tuple[int, int]:
        """The first row and the number of rows of one bin."""
        level = np.arange(self.levels)
        shares, roundings = self._split(block, level, bin_ >> (self.levels - level))
        rights = bin_ >> (self.levels - level - 1) & 1
        start, count = 0, self.rows
        steps = zip(rights.tolist(), shares.tolist(), roundings.tolist(), strict=True)
        for right, share, rounding in steps:
            left = math.floor(count * share + rounding)
            start, count = (start + left, count - left) if right else (start, left)
        return start, count

    def _split(self, block: int, level: int | Integers, interval: Integers) -> tuple[Reals, Reals]:
        """The share of the left half of each of these intervals, and how to round its rows."""
        # Intervals are numbered as in a heap, the top being 1, and blocks one after the other.
        number = (block << (self.levels + 1)) + (1 << level) + interval
        bits = Draws(self.seed, "cascade.split").bits(number)
        quantile = (bits >> np.uint64(64 - _SHARE_BITS)).view(np.int64)
        share = _shares(self.hurst, self.levels)[level, quantile]
        # Rounding at random, by the bits not yet used, keeps the share right in expectation even
        # for a single row.
        return share, fraction(bits << np.uint64(_SHARE_BITS))

    def _within(
        self, block: int, row: Integers, bins: Integers, start: Integers, count: Integers
    ) -> Integers:
        """Event times of rows that know their bin: one in each equal part of it, at random."""
        begin_us = bins * self.block_us >> self.levels
        width_us = ((bins + 1) * self.block_us >> self.levels) - begin_us
        # In steps coarse enough for the sum below to be exact: no row may leave its bin.
        draws = Draws(self.seed, "cascade.jitter")
        jitter = draws.below(_JITTER_STEPS, row + block * self.rows) / _JITTER_STEPS
        return begin_us + ((row - start + jitter) / count * width_us).astype(np.int64)


@lru_cache(maxsize=16)
def _shares(hurst: float, levels: int) -> Reals:
    """For every level, from the top, equally likely shares of the left half.

    Shares follow the beta law on [0, 1] with both parameters ``p``, where the bias ``A`` has the
    variance ``1 / (2p + 1)``.
    """
    bins = 2.0 ** np.arange(levels, -1, -1)
    moments = 1 + _BIN_VARIANCE * bins ** (2 * hurst - 2)
    # A block has no variance of its own: it holds the same number of rows as every other.
    moments[0] = 1.0
    variances = moments[1:] / moments[:-1] - 1
    steps = 1 << _SHARE_BITS
    # A block of two bins would need p = 0, which has no density.
    p = np.maximum((1 / variances - 1) / 2, 1e-3)[:, None]
    shares: Reals = betaincinv(p, p, (np.arange(steps) + 0.5) / steps)
    # The last bits of a special function may differ between processors.
    return shares.round(9)
