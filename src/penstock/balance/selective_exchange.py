"""Two-way selective exchange: few operators move, and only those that gain much."""

from __future__ import annotations

import math

from penstock.balance.one_way import even_out_one_way
from penstock.balance.pair import Pair, attach, detach, relative_load, score
from penstock.load.compiled import compiled


@compiled
def exchange(pair: Pair, delta: float) -> None:
    """Evens out, lets operators that score above ``delta`` change sides, evens out (Fig. 5.4).

    It is always the more loaded node that gives its best-scoring operator, at most as often as
    there are movable operators.
    """
    even_out_one_way(pair)
    for _ in range(pair.movable.sum()):
        source = 0 if relative_load(pair, 0) > relative_load(pair, 1) else 1
        best = -1
        best_score = -math.inf
        for j in range(pair.side.shape[0]):
            if pair.side[j] != source or not pair.movable[j]:
                continue
            found = score(pair, j, 1 - source)
            if found > best_score:
                best, best_score = j, found
        if best < 0 or not best_score > delta:
            break
        detach(pair, best)
        attach(pair, best, 1 - source)
    even_out_one_way(pair)
