"""Two-way redistribution: both nodes are emptied and filled again, the best plan for a pair."""

from __future__ import annotations

import math

from penstock.balance.one_way import even_out_one_way
from penstock.balance.pair import NOWHERE, Pair, attach, detach, relative_load, score
from penstock.load.compiled import compiled


@compiled
def redistribute(pair: Pair) -> None:
    """Deals all movable operators of two nodes out afresh (Fig. 5.3).

    The less loaded node always gets the operator that scores best for it; what imbalance remains
    is evened out one-way. Where the operators were before does not matter.
    """
    for j in range(pair.side.shape[0]):
        if pair.movable[j] and pair.side[j] != NOWHERE:
            detach(pair, j)
    while True:
        target = 0 if relative_load(pair, 0) < relative_load(pair, 1) else 1
        best = -1
        best_score = -math.inf
        for j in range(pair.side.shape[0]):
            if pair.side[j] != NOWHERE:
                continue
            found = score(pair, j, target)
            if found > best_score:
                best, best_score = j, found
        if best < 0:
            break
        attach(pair, best, target)
    even_out_one_way(pair)
