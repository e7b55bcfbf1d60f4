"""Which nodes talk to each other in a period: the heaviest with the lightest, and so on inwards."""

from __future__ import annotations

import numpy as np

from penstock.load.arrays import Floats, Ints
from penstock.load.compiled import compiled


@compiled
def pairings(relative_loads: Floats) -> Ints:
    """Pairs (heavier, lighter) of nodes: the i-th heaviest with the i-th lightest.

    With an odd number of nodes the middle one stays alone. Among equals the lower number counts
    as the heavier.

    >>> pairings(np.array([0.2, 0.9, 0.5, 0.4, 0.1]))
    array([[1, 4],
           [2, 0]])
    """
    order = np.argsort(-relative_loads, kind="mergesort")
    count = relative_loads.shape[0] // 2
    pairs = np.empty((count, 2), np.int64)
    for i in range(count):
        pairs[i, 0] = order[i]
        pairs[i, 1] = order[relative_loads.shape[0] - 1 - i]
    return pairs
