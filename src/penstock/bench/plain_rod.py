"""ROD as its source writes it down: plain loops, to compare the fast one with."""

from __future__ import annotations

import math

from penstock.load.problem import Problem

ROUNDING = 1e-9


def plain_rod(problem: Problem) -> list[int]:
    """Figure 4.9 with the maximum plane distance, lower bounds as in 4.4.1.

    With fixed loads the half-space of node i is w x <= 1 - f, and the ideal set ends at 1 - F.
    """
    rows, fixed = problem.rows.tolist(), problem.fixed.tolist()
    m, n, d = problem.size
    capacity = problem.capacities.tolist()
    total_capacity = sum(capacity)
    total = [sum(rows[j][k] for j in range(m)) for k in range(d)]
    low = [float(problem.lower[k]) * total[k] / total_capacity for k in range(d)]
    near = _neighbours(problem)
    all_fixed = sum(fixed)
    ideal_room = 1 - all_fixed / total_capacity
    load = [[0.0] * d for _ in range(n)]
    taken = [0.0] * n
    place: list[int] = problem.pinned.tolist()
    for j in range(m):
        if place[j] >= 0:
            taken[place[j]] += fixed[j]
            for k in range(d):
                load[place[j]][k] += rows[j][k]
    # The load of unit j per unit of rate k where that stream alone fills the ideal plan.
    full = [
        [rows[j][k] + fixed[j] * total[k] / (total_capacity - all_fixed) for k in range(d)]
        for j in range(m)
    ]
    order = sorted(
        range(m), key=lambda j: -math.sqrt(sum(coefficient**2 for coefficient in full[j]))
    )
    for j in [number for number in order if place[number] < 0]:
        class_one, distances = [], []
        for i in range(n):
            weight = [
                ((load[i][k] + rows[j][k]) / total[k]) / (capacity[i] / total_capacity)
                for k in range(d)
            ]
            room = 1 - (taken[i] + fixed[j]) / capacity[i]
            if all(share * ideal_room <= room * (1 + ROUNDING) for share in weight):
                class_one.append(i)
            norm = math.sqrt(sum(share**2 for share in weight))
            room -= sum(weight[k] * low[k] for k in range(d))
            distances.append(room / norm if norm else math.copysign(math.inf, room))
        if class_one:
            cut = {i: sum(place[o] >= 0 and place[o] != i for o in near[j]) for i in class_one}
            chosen = min(class_one, key=lambda i: (cut[i], i))
        else:
            farthest = max(distances)
            limit = farthest - abs(farthest) * ROUNDING if math.isfinite(farthest) else farthest
            chosen = min(i for i in range(n) if distances[i] >= limit)
        place[j] = chosen
        taken[chosen] += fixed[j]
        for k in range(d):
            load[chosen][k] += rows[j][k]
    return place


def _neighbours(problem: Problem) -> list[list[int]]:
    near: list[list[int]] = [[] for _ in problem.units]
    for u, v in zip(problem.arcs.sources.tolist(), problem.arcs.targets.tolist(), strict=True):
        near[u].append(v)
        near[v].append(u)
    return near
