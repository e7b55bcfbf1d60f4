"""The global correlation algorithm: a first placement from load series (Figs. 5.6 and 5.7)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from penstock.balance.improvement import candidates, improve
from penstock.balance.members import Cluster, clustered, pair_of, place, take_over
from penstock.balance.one_way import even_out_one_way
from penstock.balance.pairing import pairings
from penstock.errors import InputError
from penstock.load.compiled import compiled
from penstock.load.correlation import normalised, spread
from penstock.load.series import Flags, Integers, LoadSeries, Reals, load_series

THETA = 0.8
# Up to 51 nodes the source's limit n (n - 1) is smaller. Beyond, the bulk of the gain is had long
# before this one, and where the total load hardly varies no number of rounds is enough.
_ROUNDS_PER_NODE = 50
# So many rounds of improvement take about a tenth of a second.
_ROUNDS_AT_ONCE = 2_000


def global_assignment(
    series: LoadSeries | ArrayLike,
    capacities: ArrayLike,
    *,
    assignment: ArrayLike | None = None,
    movable: ArrayLike | None = None,
    theta: float = THETA,
    out_of_time: Callable[[], bool] | None = None,
) -> Integers:
    """A node for every operator, such that nodes are equally loaded and correlate highly.

    ``series`` has a row of load samples per operator and a column per period, in units of
    capacity. Operators that are not ``movable`` stay where ``assignment`` says; where the others
    were does not matter. ``out_of_time`` is asked now and then while correlations are raised,
    each step of which leaves a complete plan: True ends the search early. Deterministic: equally
    good operators and nodes are taken in the order of their numbers.

    >>> busy_first, busy_last = [0.8, 0.2], [0.2, 0.8]
    >>> global_assignment([busy_first, busy_first, busy_last, busy_last], [1.0, 1.0])
    array([0, 1, 0, 1])
    """
    loads = series if isinstance(series, LoadSeries) else load_series(series)
    sizes = _checked_capacities(capacities)
    free = np.ones(loads.operators, bool) if movable is None else np.array(movable, bool)
    start = np.full(loads.operators, -1) if assignment is None else np.array(assignment, np.int64)
    _check_sticky(start, free, sizes.size)
    sticky = np.where(free, -1, start)
    cluster = clustered(loads.quanta, free, sizes, sticky)
    deal_out(cluster)
    even_out_round(cluster, 0.0)
    _raise_correlations(cluster, theta, out_of_time)
    return cluster.assignment


def _checked_capacities(capacities: ArrayLike) -> Reals:
    sizes = np.array(capacities, dtype=np.float64)
    if sizes.ndim != 1 or not sizes.size or not np.all(np.isfinite(sizes) & (sizes > 0)):
        raise InputError(
            f"capacities {sizes.tolist()}", hint="Give at least one node, each more than zero."
        )
    return sizes


def _check_sticky(start: Integers, free: Flags, nodes: int) -> None:
    lost = np.flatnonzero(~free & ((start < 0) | (start >= nodes)))
    if start.shape != free.shape or lost.size:
        raise InputError(
            f"operators {lost.tolist()} may not move and have no node",
            hint="Give each operator that is not movable its node in assignment.",
        )


@compiled
def deal_out(cluster: Cluster) -> None:
    """Gives the least loaded node the operator that scores best for it, until all have a node."""
    operators, samples = cluster.quanta.shape
    nodes = cluster.first.shape[0]
    series = np.zeros((nodes, samples))
    total = np.zeros(nodes)
    free = np.empty(operators, np.int64)
    left = 0
    for j in range(operators):
        node = cluster.assignment[j]
        if node < 0:
            free[left] = j
            left += 1
        else:
            series[node] += cluster.quanta[j]
            total[node] += cluster.sums[j]
    own = np.empty(operators)
    for k in range(left):
        own[free[k]] = spread(cluster.quanta[free[k]], cluster.quanta[free[k]])
    relations = np.zeros((nodes, operators))
    # Sums of correlations on a grid are exact, so they can be kept up to date.
    relation_sums = np.zeros(operators)
    for node in range(nodes):
        _relate(cluster, series[node], own, free[:left], relations[node], relation_sums)
    while left:
        target = int(np.argmin(total / samples / cluster.capacities))
        best = _best(relations[target], relation_sums, free[:left], nodes)
        operator = free[best]
        for k in range(best, left - 1):
            free[k] = free[k + 1]
        left -= 1
        place(cluster, operator, target)
        series[target] += cluster.quanta[operator]
        total[target] += cluster.sums[operator]
        _relate(cluster, series[target], own, free[:left], relations[target], relation_sums)


@compiled
def _best(relations: Reals, relation_sums: Reals, free: Integers, nodes: int) -> int:
    """Where in ``free`` the operator with the largest n-node score is."""
    best = -1
    best_score = -math.inf
    for k in range(free.shape[0]):
        found = relation_sums[free[k]] / nodes - relations[free[k]]
        if found > best_score:
            best, best_score = k, found
    return best


@compiled
def _relate(
    cluster: Cluster,
    series: Reals,
    own: Reals,
    free: Integers,
    relations: Reals,
    relation_sums: Reals,
) -> None:
    """Brings the correlations of one node with all free operators up to date."""
    var = spread(series, series)
    for k in range(free.shape[0]):
        j = free[k]
        found = normalised(spread(cluster.quanta[j], series), own[j], var)
        relation_sums[j] += found - relations[j]
        relations[j] = found


@compiled
def even_out_round(cluster: Cluster, epsilon: float) -> None:
    """One round of one-way balancing of all pairs that differ by more than epsilon, in quanta."""
    total = np.zeros(cluster.first.shape[0])
    for j in range(cluster.quanta.shape[0]):
        if cluster.assignment[j] >= 0:
            total[cluster.assignment[j]] += cluster.sums[j]
    relative = total / cluster.quanta.shape[1] / cluster.capacities
    pairs = pairings(relative)
    for k in range(pairs.shape[0]):
        first, second = pairs[k]
        if relative[first] - relative[second] > epsilon:
            ids, pair = pair_of(cluster, first, second)
            even_out_one_way(pair)
            take_over(cluster, first, second, ids, pair)


def _raise_correlations(
    cluster: Cluster, theta: float, out_of_time: Callable[[], bool] | None
) -> None:
    nodes = cluster.first.shape[0]
    found = candidates(cluster, theta)
    left = nodes * min(nodes - 1, _ROUNDS_PER_NODE)
    while left > 0 and not (out_of_time and out_of_time()):
        wanted = min(left, _ROUNDS_AT_ONCE)
        if improve(cluster, found, theta, wanted) < wanted:
            return
        left -= wanted
