"""Random numbers of the simulator: a stream of its own for every source and operator.

What one source draws does not depend on what others do, so two simulations that differ in where
operators run see exactly the same arrivals and the same selectivities. The generator is SplitMix64
(Steele, Lea and Flood 2014): one addition and a hash per number.
"""

from __future__ import annotations

import math

import numpy as np

from penstock.load.arrays import Ints
from penstock.load.compiled import compiled
from penstock.sim.block import Block

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_30, _27, _31, _11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_UNIT = 2.0**-53


@compiled
def fraction(block: Block, word: int) -> float:
    """The next number in [0, 1) of the stream whose state is in a word, a multiple of 2**-53."""
    state = np.uint64(block.whole[word]) + _GAMMA
    block.whole[word] = np.int64(state)
    mixed = (state ^ (state >> _30)) * _FIRST
    mixed = (mixed ^ (mixed >> _27)) * _SECOND
    mixed ^= mixed >> _31
    return float(mixed >> _11) * _UNIT


@compiled
def exponential(block: Block, word: int) -> float:
    """The next exponentially distributed number, of mean 1."""
    return -math.log(1.0 - fraction(block, word))


def streams_of(seed: int, purpose: int, count: int) -> Ints:
    """The starting states of ``count`` streams.

    >>> streams_of(1, 0, 2).tolist() == streams_of(1, 1, 2).tolist()
    False
    """
    sequence = np.random.SeedSequence([seed, purpose])
    return sequence.generate_state(count, np.uint64).view(np.int64)
