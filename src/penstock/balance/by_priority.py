"""One-way balancing that ignores correlation: operators in a given order of priority."""

from __future__ import annotations

import math

from penstock.balance.one_way import excess, is_candidate
from penstock.balance.pair import Pair, attach, detach, relative_load
from penstock.load.arrays import Floats, Ints
from penstock.load.compiled import compiled


@compiled
def even_out_by_priority(pair: Pair, ids: Ints, priority: Floats) -> None:
    """Moves operators off the more loaded node, the highest priority first.

    With loads as priorities this is largest-load-first; with random numbers, random selection.
    Only operators lighter than what remains to be moved are candidates.
    """
    source = 0 if relative_load(pair, 0) > relative_load(pair, 1) else 1
    remaining = excess(pair, source)
    while True:
        best = -1
        highest = -math.inf
        for j in range(pair.side.shape[0]):
            if is_candidate(pair, j, source, remaining) and priority[ids[j]] > highest:
                best, highest = j, priority[ids[j]]
        if best < 0:
            return
        detach(pair, best)
        attach(pair, best, 1 - source)
        remaining -= pair.sums[best] / pair.samples
