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

from penstock.balance.members import WorkingPlan, node_quanta, pair_of, take_over
from penstock.balance.pair import pair_correlation
from penstock.balance.two_way import redistribute
from penstock.load.arrays import Flags, Floats, Ints
from penstock.load.compiled import compiled
from penstock.load.correlation import normalise


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
    relations: Floats
    """Room for the correlations of one node with all."""


def candidates(cluster: WorkingPlan, theta: float) -> Candidates:
    """All pairs that correlate below theta."""
    series = node_quanta(cluster)
    nodes = series.shape[0]
    found = Candidates(
        np.ascontiguousarray(series.T),
        np.zeros(nodes),
        np.zeros(nodes),
        np.full((nodes, nodes), math.inf),
        np.full(nodes, math.inf),
        np.zeros(nodes, np.int64),
        np.ones(nodes, np.bool_),
        np.zeros(nodes),
    )
    _consider_all(found, theta)
    return found


@compiled
def _consider_all(found: Candidates, theta: float) -> None:
    for i in range(found.var.shape[0]):
        _renew(found, i)
    for i in range(found.var.shape[0]):
        _relate(found, i)
        for j in range(i + 1, found.var.shape[0]):
            found.waiting[i, j] = found.relations[j] if found.relations[j] < theta else math.inf
        _find_least(found, i)


@compiled
def improve(cluster: WorkingPlan, found: Candidates, theta: float, rounds: int) -> int:
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
            _changed(cluster, found, ids, i, j, theta)
    return rounds


@compiled
def _changed(
    cluster: WorkingPlan, found: Candidates, ids: Ints, i: int, j: int, theta: float
) -> None:
    """Considers all pairs of two nodes again; ``ids`` are the operators on them."""
    kept = found.waiting[i, j]
    for t in range(found.periods.shape[0]):
        found.periods[t, i] = 0.0
        found.periods[t, j] = 0.0
        for k in range(ids.shape[0]):
            found.periods[t, cluster.assignment[ids[k]]] += cluster.quanta[ids[k], t]
    for node in (i, j):
        _renew(found, node)
    for node in (i, j):
        _relate(found, node)
        for k in range(found.relations.shape[0]):
            relation = found.relations[k] if found.relations[k] < theta else math.inf
            if k < node:
                found.waiting[k, node] = relation
                _keep_least(found, k, node)
            elif k > node:
                found.waiting[node, k] = relation
    # The pair itself has just got the best plan there is for it.
    found.waiting[i, j] = kept
    _find_least(found, i)
    _find_least(found, j)


@compiled
def _renew(found: Candidates, node: int) -> None:
    """Brings the sum and the variance of a node up to date."""
    samples = found.periods.shape[0]
    total = 0.0
    squares = 0.0
    for t in range(samples):
        total += found.periods[t, node]
        squares += found.periods[t, node] * found.periods[t, node]
    found.sums[node] = total
    found.var[node] = samples * squares - total * total


@compiled
def _relate(found: Candidates, node: int) -> None:
    """Puts the correlations of a node with all into ``relations``."""
    samples, nodes = found.periods.shape
    relations = found.relations
    for k in range(nodes):
        relations[k] = 0.0
    for t in range(samples):
        own = found.periods[t, node]
        for k in range(nodes):
            relations[k] += own * found.periods[t, k]
    for k in range(nodes):
        cov = samples * relations[k] - found.sums[node] * found.sums[k]
        relations[k] = normalise(cov, found.var[node], found.var[k])


@compiled
def _worst_row(found: Candidates) -> int:
    """The first row with the smallest candidate of all."""
    while True:
        row = 0
        for i in range(1, found.least.shape[0]):
            if found.least[i] < found.least[row]:
                row = i
        if found.is_exact[row]:
            return row
        _find_least(found, row)


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
    least = math.inf
    where = i
    for j in range(i + 1, found.least.shape[0]):
        if found.waiting[i, j] < least:
            least, where = found.waiting[i, j], j
    found.least[i] = least
    found.where[i] = where
    found.is_exact[i] = True
