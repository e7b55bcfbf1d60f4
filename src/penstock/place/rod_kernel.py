"""The inner loops of ROD, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from penstock.load.arrays import Floats, Ints
from penstock.load.compiled import compiled

ROUNDING = 1e-9
"""By how much numbers may differ and still count as the same: sums of parts are not exact."""


class Fixed(NamedTuple):
    """Loads that do not change with the rates: of ``units``, and what nodes have ``taken`` so far.

    ``ideal_room`` is what all of them leave of all CPU.
    """

    units: Floats
    capacities: Floats
    taken: Floats
    ideal_room: float


@compiled
def assign(
    order: Ints,
    rows: Floats,
    scales: Floats,
    low: Floats,
    fixed: Fixed,
    starts: Ints,
    neighbours: Ints,
    assignment: Ints,
    used: Floats,
) -> None:
    """Places the units of ``order`` one by one; fills ``assignment``, ``used`` (d x n) and
    ``fixed.taken``.

    ``scales`` (d x n) turn loads into weights; ``low`` is the lower bound in normalised space.
    ``neighbours[starts[j]:starts[j + 1]]`` are the units that share a stream with unit j.
    Nodes lie side by side in memory, so that the loops over them use vector instructions.
    """
    width, nodes = used.shape
    norms = np.empty(nodes)
    worst = np.empty(nodes)
    taken = np.empty(nodes)
    room = np.empty(nodes)
    near = np.zeros(nodes, dtype=np.int64)
    bounded = low.max() > 0.0
    has_fixed = fixed.units.max() > 0.0
    for unit in order:
        norms[:] = 0.0
        worst[:] = 0.0
        taken[:] = 0.0
        for i in range(nodes):
            room[i] = 1.0 - (fixed.taken[i] + fixed.units[unit]) / fixed.capacities[i]
        for k in range(width):
            load = rows[unit, k]
            for i in range(nodes):
                weight = (used[k, i] + load) * scales[k, i]
                norms[i] += weight * weight
                worst[i] = max(worst[i], weight)
            if bounded:
                for i in range(nodes):
                    taken[i] += (used[k, i] + load) * scales[k, i] * low[k]
        for at in range(starts[unit], starts[unit + 1]):
            if assignment[neighbours[at]] >= 0:
                near[assignment[neighbours[at]]] += 1
        chosen = _first_class(worst, room, fixed.ideal_room, near)
        if chosen < 0:
            is_plain = not (bounded or has_fixed)
            chosen = _shortest(norms) if is_plain else _farthest(norms, room - taken)
        for at in range(starts[unit], starts[unit + 1]):
            if assignment[neighbours[at]] >= 0:
                near[assignment[neighbours[at]]] = 0
        assignment[unit] = chosen
        fixed.taken[chosen] += fixed.units[unit]
        for k in range(width):
            used[k, chosen] += rows[unit, k]


@compiled
def _first_class(worst: Floats, room: Floats, ideal_room: float, near: Ints) -> int:
    """Of the nodes that do not cut into the ideal set the one with most neighbours; -1 if none."""
    chosen, most = -1, -1
    for i in range(len(worst)):
        if worst[i] * ideal_room <= room[i] * (1.0 + ROUNDING) and near[i] > most:
            chosen, most = i, near[i]
    return chosen


@compiled
def _shortest(norms: Floats) -> int:
    """The node with the shortest row of weights, whose hyperplane is farthest from the origin."""
    limit = norms.min() * (1.0 + 2.0 * ROUNDING)
    for i in range(len(norms)):
        if norms[i] <= limit:
            return i
    return 0


@compiled
def _farthest(norms: Floats, room: Floats) -> int:
    """The node whose hyperplane is farthest from the lower bound."""
    farthest = -np.inf
    for i in range(len(norms)):
        farthest = max(farthest, _distance(norms[i], room[i]))
    limit = farthest - abs(farthest) * ROUNDING
    for i in range(len(norms)):
        if _distance(norms[i], room[i]) >= limit:
            return i
    return 0


@compiled
def _distance(norm: float, room: float) -> float:
    """How far a hyperplane is; a node that no stream reaches has none, but may be overfull."""
    if norm == 0.0:
        return np.inf if room >= 0.0 else -np.inf
    return float(room / np.sqrt(norm))
