"""Which operators are on a node, kept so that one node's list is found without reading all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from penstock.balance.pair import Pair, paired
from penstock.load.arrays import Flags, Floats, Ints
from penstock.load.compiled import compiled

_END = -1


class Cluster(NamedTuple):
    """A plan for all nodes: assignment, members of every node, and what never changes."""

    quanta: Floats
    sums: Floats
    movable: Flags
    capacities: Floats
    assignment: Ints
    first: Ints
    """The first operator on every node; the others follow through ``after``."""
    after: Ints
    before: Ints


@compiled
def clustered(quanta: Floats, movable: Flags, capacities: Floats, assignment: Ints) -> Cluster:
    """The plan for an assignment, which is copied; operators at -1 are nowhere."""
    operators = quanta.shape[0]
    sums = np.zeros(operators)
    for j in range(operators):
        sums[j] = quanta[j].sum()
    cluster = Cluster(
        quanta,
        sums,
        movable,
        capacities,
        np.full(operators, _END),
        np.full(capacities.shape[0], _END),
        np.full(operators, _END),
        np.full(operators, _END),
    )
    for j in range(operators):
        if assignment[j] >= 0:
            place(cluster, j, assignment[j])
    return cluster


@compiled
def place(cluster: Cluster, operator: int, node: int) -> None:
    """Puts an operator on a node, off the one it was on."""
    old = cluster.assignment[operator]
    if old >= 0:
        before, after = cluster.before[operator], cluster.after[operator]
        if before == _END:
            cluster.first[old] = after
        else:
            cluster.after[before] = after
        if after != _END:
            cluster.before[after] = before
    head = cluster.first[node]
    cluster.before[operator] = _END
    cluster.after[operator] = head
    if head != _END:
        cluster.before[head] = operator
    cluster.first[node] = operator
    cluster.assignment[operator] = node


@compiled
def members(cluster: Cluster, node: int) -> Ints:
    """The operators on a node, in no order."""
    count = 0
    j = cluster.first[node]
    while j != _END:
        count += 1
        j = cluster.after[j]
    found = np.empty(count, np.int64)
    j = cluster.first[node]
    for k in range(count):
        found[k] = j
        j = cluster.after[j]
    return found


@compiled
def node_series(cluster: Cluster, node: int) -> Floats:
    """The load series of a node, in quanta."""
    series = np.zeros(cluster.quanta.shape[1])
    j = cluster.first[node]
    while j != _END:
        series += cluster.quanta[j]
        j = cluster.after[j]
    return series


@compiled
def all_node_series(cluster: Cluster) -> Floats:
    """The load series of all nodes, in quanta."""
    series = np.zeros((cluster.first.shape[0], cluster.quanta.shape[1]))
    for j in range(cluster.quanta.shape[0]):
        if cluster.assignment[j] >= 0:
            series[cluster.assignment[j]] += cluster.quanta[j]
    return series


@compiled
def pair_of(cluster: Cluster, first: int, second: int) -> tuple[Ints, Pair]:
    """Two nodes and their operators, ready for an algorithm on pairs."""
    ids = np.sort(np.concatenate((members(cluster, first), members(cluster, second))))
    side = np.empty(ids.shape[0], np.int64)
    for j in range(ids.shape[0]):
        side[j] = 0 if cluster.assignment[ids[j]] == first else 1
    capacity = np.array([cluster.capacities[first], cluster.capacities[second]])
    pair = paired(cluster.quanta, cluster.sums, cluster.movable, capacity, ids, side)
    return ids, pair


@compiled
def take_over(cluster: Cluster, first: int, second: int, ids: Ints, pair: Pair) -> None:
    """Makes what an algorithm decided for a pair part of the plan."""
    for j in range(ids.shape[0]):
        node = first if pair.side[j] == 0 else second
        if cluster.assignment[ids[j]] != node:
            place(cluster, ids[j], node)
