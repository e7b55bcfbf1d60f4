"""The inner loop of the exhaustive search, compiled."""

from __future__ import annotations

import numpy as np

from penstock.load.arrays import Flags, Floats, Ints
from penstock.load.compiled import compiled
from penstock.place.search_kernel import Rays, Weights, along, power, seen_from


@compiled
def best_plan(
    order: Ints,
    pinned: Ints,
    limits: Floats,
    to_beat: float,
    alike: bool,
    weights: Weights,
    rays: Rays,
) -> tuple[float, Ints]:
    """The plan of largest volume, and that volume as a sum; ``to_beat`` if none is larger.

    Goes through all plans depth first. Adding a unit never enlarges the feasible set, so a part of
    a plan that is already no larger than the best whole plan is not gone into. ``alike`` says that
    nodes can be told apart by what is on them alone: then only one of the empty ones is tried.
    """
    depths, nodes = len(order), weights.scales.shape[1]
    stack = np.zeros((depths + 1, *limits.shape))
    stack[0] = limits
    tried = np.full(depths + 1, -1)
    opened = np.zeros(depths + 1, dtype=np.int64)
    seen = np.zeros_like(limits)
    here = np.full(len(pinned), -1)
    best, found = to_beat, here.copy()
    depth = 0
    while depth >= 0:
        if depth == depths:
            found[:] = here
            best = _total(stack[depth], rays, seen)
            depth -= 1
            continue
        unit = order[depth]
        tried[depth] += 1
        here[unit] = -1
        if tried[depth] >= nodes or (alike and tried[depth] > opened[depth]):
            tried[depth] = -1
            depth -= 1
            continue
        node = tried[depth]
        if pinned[unit] >= 0 and pinned[unit] != node:
            continue
        stack[depth + 1] = stack[depth]
        _put(unit, node, here, stack[depth + 1], weights)
        if _total(stack[depth + 1], rays, seen) > best:
            here[unit] = node
            opened[depth + 1] = max(opened[depth], node + 1)
            depth += 1
    return best, found


@compiled
def _put(unit: int, node: int, here: Ints, limits: Floats, weights: Weights) -> None:
    """Adds a unit, its streams to those that are already placed, and what it opens there."""
    rows, scales, starts, neighbours, streams, cpu, link, openings, opens = weights
    nodes, width = scales.shape[1], rows.shape[1]
    for k in range(width):
        limits[node, k] += rows[unit, k] * scales[0, node, k]
    for opening in range(len(openings)):
        if opens[unit, opening] and not _is_open(opening, node, here, opens):
            for k in range(width):
                limits[node, k] += openings[opening, k] * scales[0, node, k]
    for at in range(starts[unit], starts[unit + 1]):
        other, stream = here[neighbours[at]], streams[at]
        if other < 0 or other == node:
            continue
        for k in range(width):
            for end in (node, other):
                limits[end, k] += cpu[stream, k] * scales[0, end, k]
                limits[nodes + end, k] += link[stream, k] * scales[1, end, k]
            limits[2 * nodes, k] += link[stream, k] * scales[2, 0, k]


@compiled
def _is_open(opening: int, node: int, here: Ints, opens: Flags) -> bool:
    found = False
    for unit in range(len(here)):
        found |= here[unit] == node and opens[unit, opening]
    return bool(found)


@compiled
def _total(limits: Floats, rays: Rays, seen: Floats) -> float:
    if not seen_from(limits, rays, seen):
        return 0.0
    directions = rays.directions
    points, width = directions.shape
    total = 0.0
    for p in range(points):
        load = 0.0
        for row in range(len(seen)):
            load = max(load, along(seen[row], directions[p]))
        total += power(load, width)
    return total
