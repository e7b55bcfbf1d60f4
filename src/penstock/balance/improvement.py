"""Raising the correlation of node pairs, the worst first: the second step of the global algorithm.

The candidates are all pairs that correlate below theta. Each row of the triangle of pairs knows
its own smallest candidate, or a bound below it, so that finding the worst pair of n nodes takes n
steps. When a row's smallest grew, the old value is kept as the bound, and the row is looked
through only once that bound is the smallest of all.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from penstock.balance.members import (
    Cluster,
    all_node_series,
    node_series,
    pair_of,
    take_over,
)
from penstock.balance.pair import pair_correlation
from penstock.balance.two_way import redistribute
from penstock.load.arrays import Flags, Floats, Ints
from penstock.load.compiled import compiled
from penstock.load.correlation import normalised, spread


class Candidates(NamedTuple):
    """The pairs still to be tried."""

    periods: Floats
    """The loads of all nodes, a row per period: one node with all others is then a few passes
    over neighbouring numbers."""
    sums: Floats
    var: Floats
    waiting: Floats
    """The correlation of a pair (i < j) that is a candidate, infinity for all others."""
    least: Floats
    """The smallest of every row of ``waiting``, or less if that is not exact, and where it is."""
    where: Ints
    is_exact: Flags


@compiled
def candidates(cluster: Cluster, theta: float) -> Candidates:
    """All pairs that correlate below theta."""
    series = all_node_series(cluster)
    nodes = series.shape[0]
    found = Candidates(
        np.ascontiguousarray(series.T),
        np.zeros(nodes),
        np.zeros(nodes),
        np.full((nodes, nodes), math.inf),
        np.full(nodes, math.inf),
        np.zeros(nodes, np.int64),
        np.ones(nodes, np.bool_),
    )
    for i in range(nodes):
        _renew(found, i, series[i])
    for i in range(nodes):
        relations = _relations(found, i)
        for j in range(i + 1, nodes):
            found.waiting[i, j] = relations[j] if relations[j] < theta else math.inf
        _find_least(found, i)
    return found


@compiled
def improve(cluster: Cluster, found: Candidates, theta: float, rounds: int) -> int:
    """Redistributes the worst candidate, again and again; gives the number of rounds made.

    A pair's new plan is kept if their correlation rose (Fig. 5.7); then all pairs of both nodes
    are considered again. Fewer rounds than asked for mean that no candidate is left.
    """
    for done in range(rounds):
        i = _worst_row(found)
        if found.least[i] == math.inf:
            return done
        j = found.where[i]
        old = found.waiting[i, j]
        found.waiting[i, j] = math.inf
        _find_least(found, i)
        ids, pair = pair_of(cluster, i, j)
        redistribute(pair)
        if pair_correlation(pair) > old:
            take_over(cluster, i, j, ids, pair)
            _changed(cluster, found, i, j, theta)
    return rounds


@compiled
def _changed(cluster: Cluster, found: Candidates, i: int, j: int, theta: float) -> None:
    kept = found.waiting[min(i, j), max(i, j)]
    for node in (i, j):
        _renew(found, node, node_series(cluster, node))
    for node in (i, j):
        relations = _relations(found, node)
        for k in range(node):
            found.waiting[k, node] = relations[k] if relations[k] < theta else math.inf
            _keep_least(found, k, node)
        for k in range(node + 1, relations.shape[0]):
            found.waiting[node, k] = relations[k] if relations[k] < theta else math.inf
    # The pair itself has just got the best plan there is for it.
    found.waiting[min(i, j), max(i, j)] = kept
    _find_least(found, i)
    _find_least(found, j)


@compiled
def _renew(found: Candidates, node: int, series: Floats) -> None:
    found.sums[node] = series.sum()
    found.var[node] = spread(series, series)
    for t in range(series.shape[0]):
        found.periods[t, node] = series[t]


@compiled
def _relations(found: Candidates, node: int) -> Floats:
    """The correlations of a node with all."""
    samples, nodes = found.periods.shape
    products = np.zeros(nodes)
    for t in range(samples):
        own = found.periods[t, node]
        row = found.periods[t]
        for k in range(nodes):
            products[k] += own * row[k]
    for k in range(nodes):
        cov = samples * products[k] - found.sums[node] * found.sums[k]
        products[k] = normalised(cov, found.var[node], found.var[k])
    return products


@compiled
def _worst_row(found: Candidates) -> int:
    """The first row with the smallest candidate of all."""
    while True:
        i = int(np.argmin(found.least))
        if found.is_exact[i]:
            return i
        _find_least(found, i)


@compiled
def _keep_least(found: Candidates, i: int, j: int) -> None:
    """Puts row i's smallest, or its bound, right after its j-th entry changed."""
    value = found.waiting[i, j]
    if value < found.least[i]:
        found.least[i] = value
        found.where[i] = j
        found.is_exact[i] = True
    elif value > found.least[i]:
        if found.where[i] == j:
            found.is_exact[i] = False
    elif found.is_exact[i] and j < found.where[i]:
        found.where[i] = j


@compiled
def _find_least(found: Candidates, i: int) -> None:
    found.is_exact[i] = True
    row = found.waiting[i, i + 1 :]
    if row.shape[0] == 0:
        found.least[i] = math.inf
        return
    where = int(np.argmin(row))
    found.least[i] = row[where]
    found.where[i] = i + 1 + where
