"""The inner loops of the local search and of the exhaustive one, compiled.

The volume of a plan is the mean over sample directions s of max(1, z(s))^-d, where z is the load
of whatever is loaded most along s: a node's CPU, its link or the network. Moving a unit from a to
b changes only a, b and the network, so the rest is kept as the three most loaded nodes of every
direction, of which at least one is neither a nor b.
"""

from __future__ import annotations

from typing import NamedTuple

from penstock.load.arrays import Flags, Floats, Ints
from penstock.load.compiled import compiled


class Weights(NamedTuple):
    """What units and their streams weigh.

    ``rows`` are those of units; ``cpu`` and ``link`` those of streams: half a transfer, and bytes.
    The last column of each is the part that no rate changes: the fixed load. ``scales`` turn each
    into weights: of CPUs, of links, of the network. The streams of unit u are at ``starts[u]`` to
    ``starts[u + 1]`` of ``streams``, and what is at their other ends, of ``neighbours``.
    ``openings`` are rows of what a node pays once if it has units that need it; which ones do, is
    in ``opens`` (units x openings).
    """

    rows: Floats
    scales: Floats
    starts: Ints
    neighbours: Ints
    streams: Ints
    cpu: Floats
    link: Floats
    openings: Floats
    opens: Flags


class Rays(NamedTuple):
    """Where volumes are measured: along ``directions``, from the lower bound ``low`` on.

    ``low`` has a column more than ``directions``, and a 1 in it: a fixed load is one of a variable
    that is always 1. ``ray`` is what fixed loads and the lower bound leave of the ideal set's edge.
    """

    low: Floats
    ray: float
    directions: Floats


@compiled
def room_of(row: Floats, low: Floats) -> float:
    """What fixed loads and the lower bound leave of a half-space."""
    room = 1.0
    for k in range(len(low)):
        room -= row[k] * low[k]
    return room


@compiled
def is_limit(row: Floats, room: float) -> bool:
    """Whether a half-space is one at all: not if it is just full and no stream reaches it."""
    most = 0.0
    for k in range(len(row) - 1):
        most = max(most, row[k])
    return room != 0.0 or most > 0.0


@compiled
def seen_from(rows: Floats, rays: Rays, seen: Floats) -> bool:
    """The half-spaces as seen from the lower bound, into ``seen``; False if one is full there."""
    low, ray, _ = rays
    for at in range(len(rows)):
        room = room_of(rows[at], low)
        if not is_limit(rows[at], room):
            room = 1.0
        if room <= 0.0:
            return False
        for k in range(len(low)):
            seen[at, k] = rows[at, k] * ray / room
    return True


@compiled
def along(row: Floats, direction: Floats) -> float:
    """The load of a half-space along a direction; fixed loads have no part in it."""
    load = 0.0
    for k in range(len(direction)):
        load += row[k] * direction[k]
    return load


@compiled
def power(load: float, width: int) -> float:
    """max(1, load)^-width."""
    if load <= 1.0:
        return 1.0
    value = 1.0
    for _ in range(width):
        value /= load
    return value


@compiled
def rank(loads: Floats, top: Floats, who: Ints) -> None:
    """The three most loaded nodes of every direction, and their loads; ``loads`` is n x points."""
    nodes, points = loads.shape
    for p in range(points):
        top[:, p] = 0.0
        who[:, p] = -1
        for i in range(nodes):
            at = 3
            while at > 0 and loads[i, p] > top[at - 1, p]:
                at -= 1
            for later in range(2, at, -1):
                top[later, p] = top[later - 1, p]
                who[later, p] = who[later - 1, p]
            if at < 3:
                top[at, p] = loads[i, p]
                who[at, p] = i


@compiled
def shift(
    unit: int,
    a: int,
    b: int,
    nodes_of: Ints,
    counts: Ints,
    weights: Weights,
    changed: Floats,
) -> None:
    """Adds to ``changed`` what moving ``unit`` from a to b does, and moves it in ``nodes_of``.

    ``counts`` (nodes x openings) are how many units of each node need each opening, kept up too.
    ``changed`` holds the CPU row of a, that of b, the link rows of a and of b, and the row of the
    network.
    """
    rows, scales, starts, neighbours, streams, cpu, link, openings, opens = weights
    width = rows.shape[1]
    for opening in range(len(openings)):
        if not opens[unit, opening]:
            continue
        counts[a, opening] -= 1
        counts[b, opening] += 1
        if counts[a, opening] == 0:
            for k in range(width):
                changed[0, k] -= openings[opening, k] * scales[0, a, k]
        if counts[b, opening] == 1:
            for k in range(width):
                changed[1, k] += openings[opening, k] * scales[0, b, k]
    for k in range(width):
        changed[0, k] -= rows[unit, k] * scales[0, a, k]
        changed[1, k] += rows[unit, k] * scales[0, b, k]
    for at in range(starts[unit], starts[unit + 1]):
        other, stream = nodes_of[neighbours[at]], streams[at]
        for k in range(width):
            half, moved = cpu[stream, k], link[stream, k]
            if other == a:
                changed[0, k] += half * scales[0, a, k]
                changed[2, k] += moved * scales[1, a, k]
                changed[4, k] += moved * scales[2, 0, k]
            else:
                changed[0, k] -= half * scales[0, a, k]
                changed[2, k] -= moved * scales[1, a, k]
            if other == b:
                changed[1, k] -= half * scales[0, b, k]
                changed[3, k] -= moved * scales[1, b, k]
                changed[4, k] -= moved * scales[2, 0, k]
            else:
                changed[1, k] += half * scales[0, b, k]
                changed[3, k] += moved * scales[1, b, k]
    nodes_of[unit] = b


@compiled
def value(
    a: int,
    b: int,
    rows: Floats,
    top: Floats,
    who: Ints,
    directions: Floats,
    to_beat: float,
) -> float:
    """The volume with the half-spaces of a and b replaced by ``rows``; -1 if below ``to_beat``.

    ``rows`` are as seen from the lower bound; ``to_beat`` is a sum over all directions.
    """
    points, width = directions.shape
    total, spare = 0.0, points - to_beat
    for p in range(points):
        at = 0
        while who[at, p] == a or who[at, p] == b:
            at += 1
        load = top[at, p] if who[at, p] >= 0 else 0.0
        for row in range(len(rows)):
            load = max(load, along(rows[row], directions[p]))
        term = power(load, width)
        total += term
        spare -= 1.0 - term
        if spare < 0.0:
            return -1.0
    return total
