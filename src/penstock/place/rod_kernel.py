"""The inner loops of ROD, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from penstock.load.arrays import Flags, Floats, Ints
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


class Opened(NamedTuple):
    """What nodes pay once for some of their units.

    ``rows`` (k x d) and ``fixed`` are the openings' loads, ``sizes`` what they are at typical
    rates; ``needed`` (m x k) says which units need which, ``paid`` (n x k) what nodes have so far.
    """

    rows: Floats
    fixed: Floats
    sizes: Floats
    needed: Flags
    paid: Flags


@compiled
def assign(
    order: Ints,
    rows: Floats,
    scales: Floats,
    low: Floats,
    fixed: Fixed,
    opened: Opened,
    starts: Ints,
    neighbours: Ints,
    assignment: Ints,
    used: Floats,
) -> None:
    """Places the units of ``order`` one by one; fills ``assignment``, ``used`` (d x n),
    ``fixed.taken`` and ``opened.paid``.

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
    new_rows = np.zeros((width, nodes))
    new_fixed = np.zeros(nodes)
    new_size = np.zeros(nodes)
    bounded = low.max() > 0.0
    has_fixed = fixed.units.max() > 0.0 or opened.fixed.sum() > 0.0
    for unit in order:
        _open(unit, opened, new_rows, new_fixed, new_size)
        norms[:] = 0.0
        worst[:] = 0.0
        taken[:] = 0.0
        for i in range(nodes):
            more = fixed.units[unit] + new_fixed[i]
            room[i] = 1.0 - (fixed.taken[i] + more) / fixed.capacities[i]
        for k in range(width):
            load = rows[unit, k]
            for i in range(nodes):
                weight = (used[k, i] + load + new_rows[k, i]) * scales[k, i]
                norms[i] += weight * weight
                worst[i] = max(worst[i], weight)
            if bounded:
                for i in range(nodes):
                    taken[i] += (used[k, i] + load + new_rows[k, i]) * scales[k, i] * low[k]
        for at in range(starts[unit], starts[unit + 1]):
            if assignment[neighbours[at]] >= 0:
                near[assignment[neighbours[at]]] += 1
        chosen = _first_class(worst, room, fixed.ideal_room, near, new_size)
        if chosen < 0:
            is_plain = not (bounded or has_fixed)
            chosen = _shortest(norms) if is_plain else _farthest(norms, room - taken)
        for at in range(starts[unit], starts[unit + 1]):
            if assignment[neighbours[at]] >= 0:
                near[assignment[neighbours[at]]] = 0
        assignment[unit] = chosen
        fixed.taken[chosen] += fixed.units[unit] + new_fixed[chosen]
        for k in range(width):
            used[k, chosen] += rows[unit, k] + new_rows[k, chosen]
        for opening in range(len(opened.fixed)):
            opened.paid[chosen, opening] |= opened.needed[unit, opening]


@compiled
def _open(unit: int, opened: Opened, new_rows: Floats, new_fixed: Floats, new_size: Floats) -> None:
    """What each node would have to pay for the first time with this unit."""
    new_rows[:] = 0.0
    new_fixed[:] = 0.0
    new_size[:] = 0.0
    for opening in range(len(opened.fixed)):
        if not opened.needed[unit, opening]:
            continue
        for i in range(len(new_fixed)):
            if not opened.paid[i, opening]:
                new_fixed[i] += opened.fixed[opening]
                new_size[i] += opened.sizes[opening]
                for k in range(len(new_rows)):
                    new_rows[k, i] += opened.rows[opening, k]


@compiled
def _first_class(
    worst: Floats, room: Floats, ideal_room: float, near: Ints, new_size: Floats
) -> int:
    """Of the nodes that do not cut into the ideal set one that opens least; -1 if none.

    Of several that one with most neighbours.
    """
    chosen, most, least = -1, -1, np.inf
    for i in range(len(worst)):
        if worst[i] * ideal_room > room[i] * (1.0 + ROUNDING):
            continue
        if new_size[i] < least or (new_size[i] == least and near[i] > most):
            chosen, most, least = i, near[i], new_size[i]
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
