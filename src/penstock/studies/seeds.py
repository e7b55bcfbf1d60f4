"""Random numbers of studies: of a name and numbers, never of who asks or when."""

from __future__ import annotations

import zlib

import numpy as np


def rng_of(name: str, *numbers: int) -> np.random.Generator:
    """The generator of one point of a study, independent of all others.

    >>> rng_of("ratio", 25, 3).random() == rng_of("ratio", 25, 3).random()
    True
    >>> rng_of("ratio", 25, 3).random() == rng_of("ratio", 25, 4).random()
    False
    """
    return np.random.default_rng([zlib.crc32(name.encode()), *numbers])
