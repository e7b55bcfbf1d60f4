"""The inner loop of the exhaustive search over cuts, compiled."""

from __future__ import annotations

import numpy as np

from penstock.load.arrays import Floats, Ints
from penstock.load.compiled import compiled


@compiled
def least_plan(
    starts: Ints,
    sizes: Floats,
    keys: Floats,
    weights: Floats,
    own: Floats,
    coupling: float,
    start: Ints,
    tolerance: float,
) -> Ints:
    """The plan of least cost; ``start`` is a plan whose cost is not to be exceeded.

    Goes through all plans depth first, from the roots to the sources. ``costs`` has, for every
    depth, what entries cost with the queries placed so far; nothing becomes cheaper by placing one
    more, so a part whose rest costs too much already at its cheapest is not gone into.
    """
    queries = len(starts) - 1
    costs = np.empty((queries + 1, len(sizes)))
    costs[0] = own
    placed = np.zeros(queries + 1)
    tried = starts[1:].copy()
    found = start.copy()
    limit = _cost(start, sizes, keys, weights, own, coupling) + tolerance
    depth = 0
    while depth >= 0:
        if depth == queries:
            found[:] = tried
            limit = placed[depth] - tolerance
            depth -= 1
            continue
        tried[depth] -= 1
        if tried[depth] < starts[depth]:
            tried[depth] = starts[depth + 1]
            depth -= 1
            continue
        entry = tried[depth]
        placed[depth + 1] = placed[depth] + costs[depth, entry]
        rest = _place_one(
            depth, entry, starts, sizes, keys, weights, coupling, costs[depth], costs[depth + 1]
        )
        if placed[depth + 1] + rest < limit:
            depth += 1
    return found


@compiled
def _place_one(
    query: int,
    entry: int,
    starts: Ints,
    sizes: Floats,
    keys: Floats,
    weights: Floats,
    coupling: float,
    before: Floats,
    after: Floats,
) -> float:
    """Fills in what later queries' entries cost from now on; the least that those can come to."""
    rest = 0.0
    for later in range(query + 1, len(starts) - 1):
        least = np.inf
        for other in range(starts[later], starts[later + 1]):
            waiting = (
                weights[later] * sizes[entry]
                if keys[entry] <= keys[other]
                else weights[query] * sizes[other]
            )
            after[other] = before[other] + coupling * waiting
            least = min(least, after[other])
        rest += least
    return rest


@compiled
def _cost(
    plan: Ints, sizes: Floats, keys: Floats, weights: Floats, own: Floats, coupling: float
) -> float:
    """What a whole plan costs."""
    total: float = own[plan].sum()
    for query in range(len(plan)):
        for later in range(query + 1, len(plan)):
            entry, other = plan[query], plan[later]
            waiting = (
                weights[later] * sizes[entry]
                if keys[entry] <= keys[other]
                else weights[query] * sizes[other]
            )
            total += coupling * waiting
    return total
