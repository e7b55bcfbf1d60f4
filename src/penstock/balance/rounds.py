"""One period of pairwise balancing: every pair that differs enough, by one of the algorithms."""

from __future__ import annotations

import math

from penstock.balance.by_priority import even_out_by_priority
from penstock.balance.members import WorkingPlan, node_quanta, pair_of, take_over
from penstock.balance.one_way import even_out_one_way
from penstock.balance.pair import Pair, pair_correlation
from penstock.balance.pairing import pairings
from penstock.balance.selective_exchange import exchange
from penstock.balance.two_way import redistribute
from penstock.load.arrays import Floats, Ints
from penstock.load.compiled import compiled
from penstock.load.correlation import normalise, spread

ONE_WAY, REDISTRIBUTE, EXCHANGE, BY_PRIORITY = range(4)


@compiled
def balance_pair(algorithm: int, ids: Ints, pair: Pair, delta: float, priority: Floats) -> None:
    """Applies one of the algorithms to a pair."""
    if algorithm == ONE_WAY:
        even_out_one_way(pair)
    elif algorithm == REDISTRIBUTE:
        redistribute(pair)
    elif algorithm == EXCHANGE:
        exchange(pair, delta)
    else:
        even_out_by_priority(pair, ids, priority)


def balance_round(
    cluster: WorkingPlan, algorithm: int, epsilon: float, delta: float, priority: Floats
) -> None:
    """Balances all pairs whose relative loads differ by more than epsilon, in quanta."""
    series = node_quanta(cluster)
    relative = series.sum(axis=1) / series.shape[1] / cluster.capacities
    pairs = pairings(relative)
    apart = relative[pairs[:, 0]] - relative[pairs[:, 1]] > epsilon
    _balance_pairs(cluster, pairs[apart], algorithm, delta, priority)


@compiled
def _balance_pairs(
    cluster: WorkingPlan, pairs: Ints, algorithm: int, delta: float, priority: Floats
) -> None:
    for k in range(pairs.shape[0]):
        first, second = pairs[k, 0], pairs[k, 1]
        ids, pair = pair_of(cluster, first, second)
        balance_pair(algorithm, ids, pair, delta, priority)
        take_over(cluster, first, second, ids, pair)


def improvement_round(
    cluster: WorkingPlan, algorithm: int, delta: float, theta: float, full: float
) -> None:
    """Gives every node that is close to overload a partner it correlates badly with (Fig. 5.5).

    Close to overload is a mean plus a standard deviation above ``full``, the quanta of a full
    node of capacity 1. A pair's new plan is kept only if their correlation rose.
    """
    series = node_quanta(cluster)
    samples = series.shape[1]
    for node in range(series.shape[0]):
        var = spread(series, node, series, node)
        level = series[node].sum() / samples + math.sqrt(var) / samples
        if level / cluster.capacities[node] > full:
            _improve_node(cluster, series, node, algorithm, delta, theta)


@compiled
def _improve_node(
    cluster: WorkingPlan, series: Floats, node: int, algorithm: int, delta: float, theta: float
) -> None:
    """Tries an algorithm on a node and its worst partner; keeps ``series`` up to date."""
    partner, least = _worst_partner(series, node, theta)
    if partner < 0:
        return
    ids, pair = pair_of(cluster, node, partner)
    balance_pair(algorithm, ids, pair, delta, cluster.sums)
    if not pair_correlation(pair) > least:
        return
    take_over(cluster, node, partner, ids, pair)
    for t in range(series.shape[1]):
        series[node, t] = 0.0
        series[partner, t] = 0.0
        for k in range(ids.shape[0]):
            series[cluster.assignment[ids[k]], t] += cluster.quanta[ids[k], t]


@compiled
def _worst_partner(series: Floats, node: int, theta: float) -> tuple[int, float]:
    """The node that correlates least with this one, if below theta, else -1."""
    partner = -1
    least = theta
    own = spread(series, node, series, node)
    for j in range(series.shape[0]):
        if j == node:
            continue
        cov = spread(series, node, series, j)
        found = normalise(cov, own, spread(series, j, series, j))
        if found < least:
            partner, least = j, found
    return partner, least
