"""One period of pairwise balancing: every pair that differs enough, by one of the algorithms."""

from __future__ import annotations

import math

import numpy as np

from penstock.balance.by_priority import even_out_by_priority
from penstock.balance.members import Cluster, all_node_series, pair_of, take_over
from penstock.balance.one_way import even_out_one_way
from penstock.balance.pair import Pair, pair_correlation
from penstock.balance.pairing import pairings
from penstock.balance.selective_exchange import exchange
from penstock.balance.two_way import redistribute
from penstock.load.arrays import Floats, Ints
from penstock.load.compiled import compiled
from penstock.load.correlation import normalised, spread

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
        even_out_by_priority(pair, priority[ids])


@compiled
def balance_round(
    cluster: Cluster, algorithm: int, epsilon: float, delta: float, priority: Floats
) -> None:
    """Balances all pairs whose relative loads differ by more than epsilon, in quanta."""
    series = all_node_series(cluster)
    relative = np.empty(series.shape[0])
    for node in range(series.shape[0]):
        relative[node] = series[node].sum() / series.shape[1] / cluster.capacities[node]
    pairs = pairings(relative)
    for k in range(pairs.shape[0]):
        first, second = pairs[k]
        if relative[first] - relative[second] > epsilon:
            ids, pair = pair_of(cluster, first, second)
            balance_pair(algorithm, ids, pair, delta, priority)
            take_over(cluster, first, second, ids, pair)


@compiled
def improvement_round(
    cluster: Cluster, algorithm: int, delta: float, theta: float, full: float
) -> None:
    """Gives every node that is close to overload a partner it correlates badly with (Fig. 5.5).

    Close to overload is a mean plus a standard deviation above ``full``, the quanta of a full
    node of capacity 1. A pair's new plan is kept only if their correlation rose.
    """
    series = all_node_series(cluster)
    nodes, samples = series.shape
    var = np.empty(nodes)
    for node in range(nodes):
        var[node] = spread(series[node], series[node])
    none = np.zeros(cluster.quanta.shape[0])
    for i in range(nodes):
        level = series[i].sum() / samples + math.sqrt(var[i]) / samples
        if not level / cluster.capacities[i] > full:
            continue
        partner, least = _worst_partner(series, var, i, theta)
        if partner < 0:
            continue
        ids, pair = pair_of(cluster, i, partner)
        balance_pair(algorithm, ids, pair, delta, none)
        if pair_correlation(pair) > least:
            take_over(cluster, i, partner, ids, pair)
            for node in (i, partner):
                series[node] = 0.0
            for k in range(ids.shape[0]):
                series[cluster.assignment[ids[k]]] += cluster.quanta[ids[k]]
            for node in (i, partner):
                var[node] = spread(series[node], series[node])


@compiled
def _worst_partner(series: Floats, var: Floats, node: int, theta: float) -> tuple[int, float]:
    """The node that correlates least with this one, if below theta, else -1."""
    partner = -1
    least = theta
    for j in range(series.shape[0]):
        if j == node:
            continue
        found = normalised(spread(series[node], series[j]), var[node], var[j])
        if found < least:
            partner, least = j, found
    return partner, least
