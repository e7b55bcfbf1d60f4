"""The source's loops, written down plainly: what the fast planners must agree with."""

from __future__ import annotations

import math

from penstock.load.problem import Problem

ROUNDING = 1e-9


def plain_rod(problem: Problem) -> list[int]:
    """Figure 4.9 with the maximum plane distance, lower bounds as in 4.4.1."""
    rows = problem.rows.tolist()
    m, n, d = problem.size
    capacity = problem.capacities.tolist()
    total_capacity = sum(capacity)
    total = [sum(rows[j][k] for j in range(m)) for k in range(d)]
    low = [problem.lower[k] * total[k] / total_capacity for k in range(d)]
    streams = list(zip(problem.arcs.sources.tolist(), problem.arcs.targets.tolist(), strict=True))
    near: list[list[int]] = [[] for _ in range(m)]
    for u, v in streams:
        near[u].append(v)
        near[v].append(u)
    load = [[0.0] * d for _ in range(n)]
    place = [-1] * m
    for j, node in enumerate(problem.pinned.tolist()):
        if node >= 0:
            place[j] = node
            for k in range(d):
                load[node][k] += rows[j][k]
    order = sorted(range(m), key=lambda j: -math.sqrt(sum(one**2 for one in rows[j])))
    for j in order:
        if place[j] >= 0:
            continue
        class_one, distances = [], []
        for i in range(n):
            weight = [
                ((load[i][k] + rows[j][k]) / total[k]) / (capacity[i] / total_capacity)
                for k in range(d)
            ]
            if all(one <= 1 + ROUNDING for one in weight):
                class_one.append(i)
            norm = math.sqrt(sum(one**2 for one in weight))
            room = 1 - sum(weight[k] * low[k] for k in range(d))
            distances.append(room / norm if norm else math.inf)
        if class_one:
            cut = {i: sum(place[o] >= 0 and place[o] != i for o in near[j]) for i in class_one}
            chosen = min(class_one, key=lambda i: (cut[i], i))
        else:
            chosen = max(range(n), key=lambda i: (distances[i], -i))
        place[j] = chosen
        for k in range(d):
            load[chosen][k] += rows[j][k]
    return place


def plain_clusters(
    problem: Problem, least_cpu: float, least_bytes: float, most_weight: float, order: str
) -> list[frozenset[int]]:
    """Figures 4.15 and 4.19, combined as the text says: look at all streams after every merge."""
    clusters = [frozenset([j]) for j in range(len(problem.rows))]
    while True:
        found = []
        for t in range(len(problem.arcs)):
            u = next(one for one in clusters if problem.arcs.sources[t] in one)
            v = next(one for one in clusters if problem.arcs.targets[t] in one)
            if u != v:
                place = _place_in_queue(problem, t, u, v, least_cpu, least_bytes, order)
                if place is not None and _weight(problem, u | v) < most_weight:
                    found.append((place, t, u, v))
        if not found:
            return clusters
        _, _, u, v = min(found, key=lambda one: one[:2])
        clusters = [one for one in clusters if one not in (u, v)] + [u | v]


def _load(problem: Problem, cluster: frozenset[int]) -> list[float]:
    return [sum(float(problem.rows[j, k]) for j in sorted(cluster)) for k in range(problem.size[2])]


def _weight(problem: Problem, cluster: frozenset[int]) -> float:
    load = _load(problem, cluster)
    return max(len(problem.nodes) * load[k] / float(problem.totals[k]) for k in range(len(load)))


def _ratio(moved: list[float], load: list[float]) -> float:
    return max(
        (one / two if two else math.inf) if one else 0.0
        for one, two in zip(moved, load, strict=True)
    )


def _place_in_queue(
    problem: Problem,
    t: int,
    u: frozenset[int],
    v: frozenset[int],
    least_cpu: float,
    least_bytes: float,
    order: str,
) -> tuple[float, float] | None:
    cpu, bytes_ = problem.arcs.cpu[t].tolist(), problem.arcs.bytes[t].tolist()
    ends = _load(problem, u), _load(problem, v)
    cpu_ratio = max(_ratio(cpu, end) for end in ends)
    bytes_ratio = max(_ratio(bytes_, end) for end in ends)
    by_cpu, by_bytes = cpu_ratio > least_cpu, bytes_ratio > least_bytes
    if not by_cpu and not by_bytes:
        return None
    if order == "WEIGHT_FIRST":
        return (1, _weight(problem, u | v))
    if order == "BANDWIDTH_FIRST":
        by_cpu, by_bytes, cpu_ratio, bytes_ratio = by_bytes, by_cpu, bytes_ratio, cpu_ratio
    if by_cpu and by_bytes:
        return (1, -cpu_ratio)
    return (2, -cpu_ratio) if by_cpu else (3, -bytes_ratio)
