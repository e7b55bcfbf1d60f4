"""One server, first come, first served: the time of every tuple, waiting included."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.load.compiled import compiled

Floats = NDArray[np.float64]


@compiled
def times_in_queue_s(arrivals_s: Floats, services_s: Floats) -> Floats:
    """How long each tuple takes from arrival to end, by Lindley's recursion; arrivals in order.

    >>> times_in_queue_s(np.array([0.0, 0.5, 3.0]), np.array([1.0, 1.0, 1.0])).tolist()
    [1.0, 1.5, 1.0]
    """
    times_s = np.empty_like(arrivals_s)
    free_s = 0.0
    for at in range(len(arrivals_s)):
        free_s = max(free_s, arrivals_s[at]) + services_s[at]
        times_s[at] = free_s - arrivals_s[at]
    return times_s
