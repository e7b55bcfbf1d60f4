"""The inner loop of clustering, compiled.

As clusters grow, a stream's ratios only fall and its weight only rises. So a stream whose place in
the queue is out of date stands too far in front, never too far behind: it is enough to look at it
again when its turn comes.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from penstock.load.arrays import Floats, Ints
from penstock.load.compiled import compiled

RATIO_FIRST, BANDWIDTH_FIRST, WEIGHT_FIRST = 0, 1, 2


class Limits(NamedTuple):
    """Which streams are joined, and in which order.

    A stream is a candidate while its communication ratio exceeds ``least_cpu`` or its bandwidth
    ratio ``least_bytes``, and its weight on ``nodes`` nodes is below ``most_weight``.
    """

    nodes: int
    least_cpu: float
    least_bytes: float
    most_weight: float
    order: int


@compiled
def clusters(
    rows: Floats,
    pinned: Ints,
    sources: Ints,
    targets: Ints,
    cpu: Floats,
    bytes: Floats,
    totals: Floats,
    limits: Limits,
) -> Ints:
    """The cluster of every unit, by the number of one of its units."""
    load = rows.copy()
    pins = pinned.copy()
    leader = np.arange(len(rows))
    queue = [(0.0, 0.0, -1)]
    queue.pop()
    for stream in range(len(sources)):
        u, v = sources[stream], targets[stream]
        rank, key = _key(load[u], load[v], cpu[stream], bytes[stream], totals, limits)
        if rank < 4.0:
            heapq.heappush(queue, (rank, key, stream))
    while len(queue) > 0:
        old_rank, old_key, stream = heapq.heappop(queue)
        u, v = _leader(leader, sources[stream]), _leader(leader, targets[stream])
        if u == v or (pins[u] >= 0 and pins[v] >= 0 and pins[u] != pins[v]):
            continue
        rank, key = _key(load[u], load[v], cpu[stream], bytes[stream], totals, limits)
        if rank == old_rank and key == old_key:
            kept, gone = min(u, v), max(u, v)
            leader[gone] = kept
            load[kept] += load[gone]
            pins[kept] = max(pins[kept], pins[gone])
        elif rank < 4.0:
            heapq.heappush(queue, (rank, key, stream))
    for unit in range(len(leader)):
        leader[unit] = _leader(leader, unit)
    return leader


@compiled
def _leader(leader: Ints, unit: int) -> int:
    while leader[unit] != unit:
        leader[unit] = leader[leader[unit]]
        unit = leader[unit]
    return unit


@compiled
def _key(
    u: Floats,
    v: Floats,
    cpu: Floats,
    bytes: Floats,
    totals: Floats,
    limits: Limits,
) -> tuple[float, float]:
    """A stream's place in the queue: its class (4 for no candidate) and what orders the class."""
    nodes, least_cpu, least_bytes, most_weight, order = limits
    weight = 0.0
    for k in range(len(u)):
        weight = max(weight, nodes * (u[k] + v[k]) / totals[k])
    if weight >= most_weight:
        return 4.0, 0.0
    cpu_ratio = max(_ratio(cpu, u), _ratio(cpu, v))
    bytes_ratio = max(_ratio(bytes, u), _ratio(bytes, v))
    by_cpu, by_bytes = cpu_ratio > least_cpu, bytes_ratio > least_bytes
    if not by_cpu and not by_bytes:
        return 4.0, 0.0
    if order == WEIGHT_FIRST:
        return 1.0, weight
    if order == BANDWIDTH_FIRST:
        by_cpu, by_bytes = by_bytes, by_cpu
        cpu_ratio, bytes_ratio = bytes_ratio, cpu_ratio
    if by_cpu and by_bytes:
        return 1.0, -cpu_ratio
    return (2.0, -cpu_ratio) if by_cpu else (3.0, -bytes_ratio)


@compiled
def _ratio(moved: Floats, load: Floats) -> float:
    ratio = 0.0
    for k in range(len(moved)):
        if moved[k] > 0.0:
            ratio = max(ratio, moved[k] / load[k] if load[k] > 0.0 else np.inf)
    return ratio
