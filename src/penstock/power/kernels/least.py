"""The least entry of every query."""

from __future__ import annotations

import numpy as np

from penstock.load.arrays import Floats, Ints
from penstock.load.compiled import compiled

ROUNDING = 1e-12
"""By how much of themselves numbers may differ and still count as equal."""


@compiled
def least_entries(starts: Ints, values: Floats) -> Ints:
    """For every query the entry of least value; of equal ones that nearest the root."""
    found = np.empty(len(starts) - 1, dtype=np.int64)
    for query in range(len(found)):
        least = values[starts[query] : starts[query + 1]].min()
        entry = starts[query + 1] - 1
        while values[entry] > least + abs(least) * ROUNDING:
            entry -= 1
        found[query] = entry
    return found
