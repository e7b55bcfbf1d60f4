"""Which nodes talk to each other in a period: the heaviest with the lightest, and so on inwards."""

from __future__ import annotations

import numpy as np

from penstock.load.arrays import Floats, Ints


def pairings(relative_loads: Floats) -> Ints:
    """Pairs (heavier, lighter) of nodes: the i-th heaviest with the i-th lightest.

    With an odd number of nodes the middle one stays alone. Among equals the lower number counts
    as the heavier.

    >>> pairings(np.array([0.2, 0.9, 0.5, 0.4, 0.1]))
    array([[1, 4],
           [2, 0]])
    """
    order = np.argsort(-relative_loads, kind="stable")
    count = relative_loads.size // 2
    return np.stack((order[:count], order[::-1][:count]), axis=1)
