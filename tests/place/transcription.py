"""The source's loops, written down plainly: what the fast planners must agree with."""

from __future__ import annotations

import math

from penstock.load.problem import Problem


def plain_clusters(
    problem: Problem, least_cpu: float, least_bytes: float, most_weight: float, order: str
) -> list[frozenset[int]]:
    """Figures 4.15 and 4.19, combined as the text says: look at all streams after every merge."""
    clusters = [frozenset([j]) for j in range(len(problem.rows))]
    while True:
        found = []
        for t in range(len(problem.arcs)):
            u = next(cluster for cluster in clusters if problem.arcs.sources[t] in cluster)
            v = next(cluster for cluster in clusters if problem.arcs.targets[t] in cluster)
            if u != v:
                place = _place_in_queue(problem, t, u, v, least_cpu, least_bytes, order)
                if place is not None and _weight(problem, u | v) < most_weight:
                    found.append((place, t, u, v))
        if not found:
            return clusters
        _, _, u, v = min(found, key=lambda one: one[:2])
        clusters = [cluster for cluster in clusters if cluster not in (u, v)] + [u | v]


def _load(problem: Problem, cluster: frozenset[int]) -> list[float]:
    """By stream: the load of a cluster per tuple where that stream alone fills the ideal plan."""
    left = float(problem.capacities.sum() - problem.fixed.sum())
    most = [left / float(problem.rows[:, k].sum()) for k in range(problem.size[2])]
    return [
        sum(float(problem.rows[j, k]) + float(problem.fixed[j]) / most[k] for j in sorted(cluster))
        for k in range(problem.size[2])
    ]


def _weight(problem: Problem, cluster: frozenset[int]) -> float:
    load, all_load = _load(problem, cluster), _load(problem, frozenset(range(len(problem.rows))))
    return max(len(problem.nodes) * load[k] / all_load[k] for k in range(len(load)))


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
