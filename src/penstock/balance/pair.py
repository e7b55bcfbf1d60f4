"""Two nodes and their operators: covariances that follow every move of the plan.

Moving an operator changes the series of two nodes by that operator's series, so every covariance
with them changes by a covariance that is already known. One step costs a few additions per
operator instead of a pass over its samples.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from penstock.load.arrays import Flags, Floats, Ints
from penstock.load.compiled import compiled
from penstock.load.correlation import normalise, spread

NOWHERE = -1


class Pair(NamedTuple):
    """The state of a plan for two nodes, called 0 and 1; arrays that the functions below change.

    Operators are in the order of their numbers, so that the first of several equally good ones is
    the one with the lowest number.
    """

    between: Floats
    """Covariances of operators, times h squared."""
    sums: Floats
    """The load of every operator, summed over the samples: whole numbers, so never off."""
    movable: Flags
    side: Ints
    """The node each operator is on, or NOWHERE."""
    with_node: Floats
    """For both nodes: covariance of its series with every operator."""
    var: Floats
    total: Floats
    """The load of both nodes, summed over the samples."""
    capacity: Floats
    samples: int


@compiled
def pair_nodes(
    quanta: Floats,
    sums: Floats,
    movable: Flags,
    capacity: Floats,
    members: Ints,
    side: Ints,
) -> Pair:
    """The state for the operators ``members`` (ascending), each on its ``side``."""
    count = members.shape[0]
    pair = Pair(
        np.empty((count, count)),
        np.empty(count),
        np.empty(count, np.bool_),
        np.empty(count, np.int64),
        np.zeros((2, count)),
        np.zeros(2),
        np.zeros(2),
        capacity,
        quanta.shape[1],
    )
    for i in range(count):
        pair.sums[i] = sums[members[i]]
        pair.movable[i] = movable[members[i]]
        pair.side[i] = NOWHERE
        for j in range(i + 1):
            pair.between[i, j] = spread(quanta, members[i], quanta, members[j])
            pair.between[j, i] = pair.between[i, j]
    for j in range(count):
        if side[j] != NOWHERE:
            attach(pair, j, side[j])
    return pair


@compiled
def attach(pair: Pair, operator: int, node: int) -> None:
    """Puts an operator that is nowhere on a node."""
    pair.var[node] += 2 * pair.with_node[node, operator] + pair.between[operator, operator]
    pair.total[node] += pair.sums[operator]
    for j in range(pair.side.shape[0]):
        pair.with_node[node, j] += pair.between[operator, j]
    pair.side[operator] = node


@compiled
def detach(pair: Pair, operator: int) -> None:
    """Takes an operator away from its node."""
    node = pair.side[operator]
    pair.var[node] -= 2 * pair.with_node[node, operator] - pair.between[operator, operator]
    pair.total[node] -= pair.sums[operator]
    for j in range(pair.side.shape[0]):
        pair.with_node[node, j] -= pair.between[operator, j]
    pair.side[operator] = NOWHERE


@compiled
def relation(pair: Pair, operator: int, node: int) -> float:
    """rho(o, N): the correlation of an operator with what else is on a node."""
    own = pair.between[operator, operator]
    cov = pair.with_node[node, operator]
    if pair.side[operator] == node:
        return normalise(cov - own, own, pair.var[node] - 2 * cov + own)
    return normalise(cov, own, pair.var[node])


@compiled
def score(pair: Pair, operator: int, node: int) -> float:
    """S(o, N) of the pair: how much better the operator is on this node than on the other."""
    return (relation(pair, operator, 1 - node) - relation(pair, operator, node)) / 2


@compiled
def load(pair: Pair, node: int) -> float:
    """The mean load of a node, in quanta."""
    return float(pair.total[node] / pair.samples)


@compiled
def relative_load(pair: Pair, node: int) -> float:
    """The mean load of a node as a share of its capacity, in quanta."""
    return float(load(pair, node) / pair.capacity[node])


@compiled
def pair_correlation(pair: Pair) -> float:
    """The correlation of the two nodes' series."""
    cov = 0.0
    for j in range(pair.side.shape[0]):
        if pair.side[j] == 1:
            cov += pair.with_node[0, j]
    return normalise(cov, pair.var[0], pair.var[1])
