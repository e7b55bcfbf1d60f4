"""Random words for whole columns at once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.feeds.counter import Draws, Integers

SHORTEST_WORD = 3
_BYTES_PER_DRAW = 8
_LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", np.uint8)
# What each value of a random byte stands for: all letters alike, and one space in 13 for sentences.
_WORD = np.resize(_LETTERS, 256)
_SENTENCE = np.concatenate([np.resize(_LETTERS, 236), np.full(20, ord(" "), np.uint8)])


def words(draws: Draws, index: Integers, limit: int, *, spaces: bool = False) -> pa.Array:
    """A random lower-case string of at least 3 and less than ``limit`` letters for every index.

    With ``spaces``, one character in 13 is a space, but never the first or the last.

    >>> found = words(Draws(7, "names"), np.arange(1_000), 5).to_pylist()
    >>> sorted({len(word) for word in found})
    [3, 4]
    """
    lengths = SHORTEST_WORD + Draws(draws.seed, f"{draws.stream}.length").below(
        limit - SHORTEST_WORD, index
    )
    noise = _noise(draws, index, limit - 1)
    characters = (_SENTENCE if spaces else _WORD)[noise]
    if spaces:
        ends = np.arange(len(index)), lengths - 1
        characters[:, 0] = _WORD[noise[:, 0]]
        characters[ends] = _WORD[noise[ends]]
    kept = characters[np.arange(limit - 1) < lengths[:, None]]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.StringArray.from_buffers(len(index), pa.py_buffer(offsets), pa.py_buffer(kept))


def _noise(draws: Draws, index: Integers, width: int) -> NDArray[np.uint8]:
    """``width`` random bytes for every index."""
    per_row = -(-width // _BYTES_PER_DRAW)
    number = index[:, None] * per_row + np.arange(per_row)
    # The byte order is fixed, so that processors of either kind spell the same words.
    bits = draws.bits(number).astype("<u8", copy=False)
    return bits.view(np.uint8).reshape(len(index), per_row * _BYTES_PER_DRAW)[:, :width]
