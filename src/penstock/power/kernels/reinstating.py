"""The inner loops of BOSe, compiled.

Two queries on a broadcast cost each other something: the later one waits for the bytes of the
earlier one. With the watts w and the bytes p that is w_k p_m if m comes first, else w_m p_k. What
else an entry costs depends on its own query alone.
"""

from __future__ import annotations

import numpy as np

from penstock.load.arrays import Floats, Ints
from penstock.load.compiled import compiled


@compiled
def values_of(sizes: Floats, keys: Floats, owners: Ints, plan: Ints, weights: Floats) -> Floats:
    """What every entry and all queries but its own, at their entries of ``plan``, cost each other.

    In bytes times watts; O(E log n) for E entries of n queries.
    """
    order = np.argsort(keys[plan], kind="mergesort")
    bytes_before = np.zeros(len(order) + 1)
    watts_before = np.zeros(len(order) + 1)
    for at in range(len(order)):
        bytes_before[at + 1] = bytes_before[at] + sizes[plan[order[at]]]
        watts_before[at + 1] = watts_before[at] + weights[order[at]]
    values = np.empty(len(sizes))
    for entry in range(len(sizes)):
        query = owners[entry]
        at = _place(order, keys, plan, keys[entry], query)
        before, behind = bytes_before[at], watts_before[-1] - watts_before[at]
        here = plan[query]
        if keys[here] < keys[entry]:
            before -= sizes[here]
        else:
            behind -= weights[query]
        values[entry] = weights[query] * before + sizes[entry] * behind
    return values


@compiled
def _place(order: Ints, keys: Floats, plan: Ints, key: float, query: int) -> int:
    """How many queries come before ``query`` if its key is ``key``; equal keys as in the file."""
    low, high = 0, len(order)
    while low < high:
        middle = (low + high) // 2
        other = order[middle]
        if keys[plan[other]] < key or (keys[plan[other]] == key and other < query):
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def reinstate(
    starts: Ints,
    sizes: Floats,
    keys: Floats,
    owners: Ints,
    weights: Floats,
    values: Floats,
    coupling: float,
    tolerance: float,
) -> tuple[Ints, Ints, Floats]:
    """The steps of BOSe from the first entry of every query on: queries, entries, changes.

    ``values`` are what entries cost, up to what is the same for all entries of a query; they are
    kept up to date. ``coupling`` turns bytes times watts into the unit of the values.
    """
    queries, most = len(starts) - 1, len(sizes)
    here = starts[:-1].copy()
    watts = weights[owners]
    best = np.empty(queries)
    moved, entries = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    changes = np.empty(most)
    for query in range(queries):
        best[query] = _best_change(values, here[query], starts[query + 1])
    steps = 0
    while True:
        query, entry = _choose(best, values, here, starts, tolerance)
        if query < 0:
            return moved[:steps], entries[:steps], changes[:steps]
        moved[steps], entries[steps] = query, entry
        changes[steps] = values[entry] - values[here[query]]
        steps += 1
        old, here[query] = here[query], entry
        if coupling > 0.0:
            _shift(old, entry, query, starts, sizes, keys, weights, watts, values, coupling)
            for other in range(queries):
                best[other] = _best_change(values, here[other], starts[other + 1])
        else:
            best[query] = _best_change(values, entry, starts[query + 1])


@compiled
def _best_change(values: Floats, here: int, end: int) -> float:
    """By how much the best entry behind ``here`` lowers the value; infinite if there is none."""
    least = np.inf
    for entry in range(here + 1, end):
        least = min(least, values[entry])
    change: float = least - values[here]
    return change


@compiled
def _choose(
    best: Floats, values: Floats, here: Ints, starts: Ints, tolerance: float
) -> tuple[int, int]:
    """The next step: of those that lower most the first and shortest; -1 if there is none."""
    least = best.min() if len(best) else np.inf
    if least < -tolerance:
        for query in range(len(best)):
            if best[query] <= least + tolerance:
                limit = least + tolerance + values[here[query]]
                for entry in range(here[query] + 1, starts[query + 1]):
                    if values[entry] <= limit:
                        return query, entry
    for query in range(len(best)):
        if best[query] <= tolerance:
            for entry in range(starts[query + 1] - 1, here[query], -1):
                if values[entry] <= values[here[query]] + tolerance:
                    return query, entry
    return -1, -1


@compiled
def _shift(
    old: int,
    new: int,
    query: int,
    starts: Ints,
    sizes: Floats,
    keys: Floats,
    weights: Floats,
    watts: Floats,
    values: Floats,
    coupling: float,
) -> None:
    """Brings the values of all other queries' entries up to date with a step from old to new.

    The loops have no branches, so that they use vector instructions. Equal keys are in the order of
    the file: queries before this one stay in front of it, those behind stay behind.
    """
    weight = weights[query] * coupling
    old_size, new_size = sizes[old] * coupling, sizes[new] * coupling
    old_key, new_key = keys[old], keys[new]
    for entry in range(starts[query]):
        after = watts[entry] * new_size if new_key < keys[entry] else weight * sizes[entry]
        before = watts[entry] * old_size if old_key < keys[entry] else weight * sizes[entry]
        values[entry] += after - before
    for entry in range(starts[query + 1], len(sizes)):
        after = watts[entry] * new_size if new_key <= keys[entry] else weight * sizes[entry]
        before = watts[entry] * old_size if old_key <= keys[entry] else weight * sizes[entry]
        values[entry] += after - before
