"""Which operators are on a node, kept so that one node's list is found without reading all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from penstock.balance.pair import Pair, pair_nodes
from penstock.load.arrays import Flags, Floats, Ints
from penstock.load.compiled import compiled

_END = -1


class WorkingPlan(NamedTuple):
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


def cluster_operators(
    quanta: Floats, movable: Flags, capacities: Floats, assignment: Ints
) -> WorkingPlan:
    """The plan for an assignment, which is copied; operators at -1 are nowhere."""
    operators = quanta.shape[0]
    cluster = WorkingPlan(
        np.ascontiguousarray(quanta),
        quanta.sum(axis=1),
        np.ascontiguousarray(movable),
        capacities,
        np.full(operators, _END),
        np.full(capacities.shape[0], _END),
        np.full(operators, _END),
        np.full(operators, _END),
    )
    place_all(cluster, np.ascontiguousarray(assignment))
    return cluster


@compiled
def place_all(cluster: WorkingPlan, assignment: Ints) -> None:
    """Puts every operator that has a node there."""
    for j in range(assignment.shape[0]):
        if assignment[j] >= 0:
            place(cluster, j, assignment[j])


@compiled
def place(cluster: WorkingPlan, operator: int, node: int) -> None:
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
def members(cluster: WorkingPlan, first: int, second: int) -> Ints:
    """The operators on two nodes, ascending."""
    count = 0
    for node in (first, second):
        j = cluster.first[node]
        while j != _END:
            count += 1
            j = cluster.after[j]
    found = np.empty(count, np.int64)
    size = 0
    for node in (first, second):
        j = cluster.first[node]
        while j != _END:
            at = size
            while at > 0 and found[at - 1] > j:
                found[at] = found[at - 1]
                at -= 1
            found[at] = j
            size += 1
            j = cluster.after[j]
    return found


def node_quanta(cluster: WorkingPlan) -> Floats:
    """The load series of all nodes, in quanta."""
    series = np.zeros((cluster.first.shape[0], cluster.quanta.shape[1]))
    at_home = cluster.assignment >= 0
    np.add.at(series, cluster.assignment[at_home], cluster.quanta[at_home])
    return series


@compiled
def pair_of(cluster: WorkingPlan, first: int, second: int) -> tuple[Ints, Pair]:
    """Two nodes and their operators, ready for an algorithm on pairs."""
    ids = members(cluster, first, second)
    side = np.empty(ids.shape[0], np.int64)
    for j in range(ids.shape[0]):
        side[j] = 0 if cluster.assignment[ids[j]] == first else 1
    capacity = np.empty(2)
    capacity[0] = cluster.capacities[first]
    capacity[1] = cluster.capacities[second]
    pair = pair_nodes(cluster.quanta, cluster.sums, cluster.movable, capacity, ids, side)
    return ids, pair


@compiled
def take_over(cluster: WorkingPlan, first: int, second: int, ids: Ints, pair: Pair) -> None:
    """Makes what an algorithm decided for a pair part of the plan."""
    for j in range(ids.shape[0]):
        node = first if pair.side[j] == 0 else second
        if cluster.assignment[ids[j]] != node:
            place(cluster, ids[j], node)
