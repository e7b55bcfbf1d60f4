"""Dealing operators out to nodes by their n-node score: the first step of the global algorithm."""

from __future__ import annotations

import math

import numpy as np

from penstock.balance.members import Cluster, place
from penstock.load.arrays import Floats, Ints
from penstock.load.compiled import compiled
from penstock.load.correlation import normalised, spread


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
def _best(relations: Floats, relation_sums: Floats, free: Ints, nodes: int) -> int:
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
    series: Floats,
    own: Floats,
    free: Ints,
    relations: Floats,
    relation_sums: Floats,
) -> None:
    """Brings the correlations of one node with all free operators up to date."""
    var = spread(series, series)
    for k in range(free.shape[0]):
        j = free[k]
        found = normalised(spread(cluster.quanta[j], series), own[j], var)
        relation_sums[j] += found - relations[j]
        relations[j] = found
