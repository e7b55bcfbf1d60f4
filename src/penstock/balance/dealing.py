"""Dealing operators out to nodes by their n-node score: the first step of the global algorithm."""

from __future__ import annotations

import math

import numpy as np

from penstock.balance.members import WorkingPlan, node_quanta, place
from penstock.load.arrays import Floats, Ints
from penstock.load.compiled import compiled
from penstock.load.correlation import normalise, spread


def deal_out(cluster: WorkingPlan) -> None:
    """Gives the least loaded node the operator that scores best for it, until all have a node."""
    operators, nodes = cluster.assignment.size, cluster.first.size
    series = node_quanta(cluster)
    _deal_out(
        cluster,
        series,
        series.sum(axis=1),
        np.flatnonzero(cluster.assignment < 0),
        np.empty(operators),
        np.zeros((nodes, operators)),
        np.zeros(operators),
    )


@compiled
def _deal_out(
    cluster: WorkingPlan,
    series: Floats,
    total: Floats,
    free: Ints,
    own: Floats,
    relations: Floats,
    relation_sums: Floats,
) -> None:
    """``relations`` are correlations of nodes and free operators, ``relation_sums`` over nodes.

    Sums of correlations on a grid are exact, so they can be kept up to date.
    """
    nodes, samples = series.shape
    left = free.shape[0]
    for k in range(left):
        own[free[k]] = spread(cluster.quanta, free[k], cluster.quanta, free[k])
    for node in range(nodes):
        _relate(cluster, series, node, own, free, left, relations, relation_sums)
    while left > 0:
        target = _least_loaded(cluster, total, samples)
        best = _best(relations, target, relation_sums, free, left)
        operator = free[best]
        left -= 1
        for k in range(best, left):
            free[k] = free[k + 1]
        place(cluster, operator, target)
        total[target] += cluster.sums[operator]
        for k in range(samples):
            series[target, k] += cluster.quanta[operator, k]
        _relate(cluster, series, target, own, free, left, relations, relation_sums)


@compiled
def _least_loaded(cluster: WorkingPlan, total: Floats, samples: int) -> int:
    """The node with the smallest mean load for its capacity."""
    found = 0
    least = math.inf
    for node in range(total.shape[0]):
        load = total[node] / samples / cluster.capacities[node]
        if load < least:
            found, least = node, load
    return found


@compiled
def _best(relations: Floats, node: int, relation_sums: Floats, free: Ints, left: int) -> int:
    """Where in ``free`` the operator with the largest n-node score is."""
    best = -1
    best_score = -math.inf
    for k in range(left):
        found = relation_sums[free[k]] / relations.shape[0] - relations[node, free[k]]
        if found > best_score:
            best, best_score = k, found
    return best


@compiled
def _relate(
    cluster: WorkingPlan,
    series: Floats,
    node: int,
    own: Floats,
    free: Ints,
    left: int,
    relations: Floats,
    relation_sums: Floats,
) -> None:
    """Brings the correlations of one node with all free operators up to date."""
    var = spread(series, node, series, node)
    for k in range(left):
        j = free[k]
        found = normalise(spread(cluster.quanta, j, series, node), own[j], var)
        relation_sums[j] += found - relations[node, j]
        relations[node, j] = found
