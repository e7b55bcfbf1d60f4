"""One-way balancing of two nodes by correlation: the least movement that evens them out."""

from __future__ import annotations

import math

from penstock.balance.pair import Pair, attach, detach, load, relative_load, score
from penstock.load.compiled import compiled


@compiled
def even_out_one_way(pair: Pair) -> None:
    """Moves operators off the more loaded node, the best-scoring first (Fig. 5.2).

    Only operators lighter than what remains to be moved are candidates, so the more loaded node
    stays the more loaded one and an operator heavier than the gap never moves.
    """
    source = 0 if relative_load(pair, 0) > relative_load(pair, 1) else 1
    remaining = excess(pair, source)
    while True:
        best = -1
        best_score = -math.inf
        for j in range(pair.side.shape[0]):
            if not is_candidate(pair, j, source, remaining):
                continue
            found = score(pair, j, 1 - source)
            if found > best_score:
                best, best_score = j, found
        if best < 0:
            return
        detach(pair, best)
        attach(pair, best, 1 - source)
        remaining -= pair.sums[best] / pair.samples


@compiled
def excess(pair: Pair, source: int) -> float:
    """The load that has to leave ``source`` for both nodes to be equally loaded for their size."""
    target = 1 - source
    surplus = (
        load(pair, source) * pair.capacity[target] - load(pair, target) * pair.capacity[source]
    )
    return float(surplus / (pair.capacity[source] + pair.capacity[target]))


@compiled
def is_candidate(pair: Pair, operator: int, source: int, remaining: float) -> bool:
    """Whether a one-way algorithm may take the operator off ``source``."""
    if pair.side[operator] != source or not pair.movable[operator]:
        return False
    return bool(pair.sums[operator] / pair.samples < remaining)
