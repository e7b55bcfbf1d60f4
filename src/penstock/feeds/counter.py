"""Random numbers addressed by index instead of drawn in sequence.

A feed must give the same row at the same position however its reads are cut, in any process. A
sequential generator cannot: it would have to be wound forward to the position. Here the number at
an index is a hash of (seed, stream, index), the finaliser of SplitMix64 (Steele, Lea and Flood
2014), computed for whole arrays at once. Only integer arithmetic and exact scaling is used, so the
numbers have the same bits on every processor.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Bits = NDArray[np.uint64]
Reals = NDArray[np.float64]

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLY_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_MULTIPLY_SECOND = np.uint64(0x94D049BB133111EB)


@dataclass(frozen=True)
class Draws:
    """An endless sequence of independent random numbers, any of which can be had directly.

    Different streams of one seed, and different seeds of one stream, are independent.

    >>> import numpy as np
    >>> noise = Draws(seed=7, stream="noise")
    >>> whole = noise.fraction(np.arange(1_000))
    >>> bool((noise.fraction(np.arange(500, 600)) == whole[500:600]).all())
    True
    """

    seed: int
    stream: str

    def bits(self, index: NDArray[Any]) -> Bits:
        """64 random bits for every index."""
        mixed = index.astype(np.uint64)
        mixed *= _GAMMA
        mixed += _key(self.seed, self.stream)
        mixed ^= mixed >> np.uint64(30)
        mixed *= _MULTIPLY_FIRST
        mixed ^= mixed >> np.uint64(27)
        mixed *= _MULTIPLY_SECOND
        mixed ^= mixed >> np.uint64(31)
        return mixed

    def fraction(self, index: NDArray[Any]) -> Reals:
        """A real number in [0, 1) for every index, a multiple of 2**-53."""
        return fraction(self.bits(index))

    def below(self, limit: int | Integers, index: NDArray[Any]) -> Integers:
        """A whole number in [0, limit) for every index; ``limit`` is one number or one per index.

        Limits may not exceed 2**32, so that the product below stays within 64 bits; the bias of
        multiply-and-shift is then at most ``limit / 2**32``.

        >>> import numpy as np
        >>> sorted(set(Draws(7, "die").below(6, np.arange(100)).tolist()))
        [0, 1, 2, 3, 4, 5]
        """
        scaled = self.bits(index)
        scaled >>= np.uint64(32)
        scaled *= np.asarray(limit).astype(np.uint64)
        scaled >>= np.uint64(32)
        return scaled.view(np.int64)


def fraction(bits: Bits) -> Reals:
    """The real number in [0, 1) that the upper 53 bits stand for."""
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


@lru_cache(maxsize=1024)
def _key(seed: int, stream: str) -> np.uint64:
    # A digest rather than hash(): Python's own string hash differs from process to process.
    digest = blake2b(f"{seed}/{stream}".encode(), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "big"))
