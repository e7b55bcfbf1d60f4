"""The source's algorithms for all nodes (pairing, Figs. 5.5 to 5.7, slips corrected)."""

from __future__ import annotations

import math
from collections.abc import Callable

from penstock.bench.plain.pairs import PairsWorld, one_way, two_way
from penstock.bench.plain.series import correlation, covariance, mean, plus

PairAlgorithm = Callable[[PairsWorld, int, int], None]


def pairwise(world: PairsWorld, epsilon: float, algorithm: PairAlgorithm) -> None:
    """One period: the i-th heaviest node with the i-th lightest, if they differ enough."""
    nodes = range(len(world.capacities))
    relative = [world.relative(world.total(i), i) for i in nodes]
    order = sorted(nodes, key=lambda i: -relative[i])
    for k in range(len(order) // 2):
        heavy, light = order[k], order[-1 - k]
        if relative[heavy] - relative[light] > epsilon:
            algorithm(world, heavy, light)


def improved(
    world: PairsWorld, epsilon: float, theta: float, algorithm: PairAlgorithm, one: float
) -> None:
    """Fig. 5.5; ``one`` is the load of a fully used node of capacity 1."""
    pairwise(world, epsilon, algorithm)
    nodes = range(len(world.capacities))
    for i in nodes:
        x = world.total(i)
        deviation = math.sqrt(covariance(x, x)) / len(x)
        if not (mean(x) + deviation) / world.capacities[i] > one:
            continue
        least, selected = theta, None
        for j in nodes:
            if j != i and correlation(x, world.total(j)) < least:
                least, selected = correlation(x, world.total(j)), j
        if selected is None:
            continue
        old = list(world.plan)
        algorithm(world, i, selected)
        if correlation(world.total(i), world.total(selected)) <= least:
            world.plan[:] = old


def global_plan(world: PairsWorld, theta: float) -> None:
    """Figs. 5.6 and 5.7, from the operators that may not move."""
    for o in range(len(world.plan)):
        if world.movable[o]:
            world.plan[o] = -1
    deal_out(world)
    pairwise(world, 0.0, one_way)
    improve(world, theta)


def deal_out(world: PairsWorld) -> None:
    """The greedy step of Fig. 5.6."""
    nodes = range(len(world.capacities))
    x = [world.total(i) for i in nodes]
    waiting = [o for o, where in enumerate(world.plan) if where < 0]
    rho = {o: [correlation(world.loads[o], x[i]) for i in nodes] for o in waiting}
    while waiting:
        target = min(nodes, key=lambda i: world.relative(x[i], i))
        scores = {o: sum(rho[o]) / len(x) - rho[o][target] for o in waiting}
        chosen = max(waiting, key=lambda o: scores[o])
        waiting.remove(chosen)
        world.plan[chosen] = target
        x[target] = plus(x[target], world.loads[chosen])
        for o in waiting:
            rho[o][target] = correlation(world.loads[o], x[target])


def improve(world: PairsWorld, theta: float) -> None:
    """Fig. 5.7; pairs of both changed nodes are considered again."""
    n = len(world.capacities)
    x = [world.total(i) for i in range(n)]
    waiting = {}
    for i in range(n):
        for j in range(i + 1, n):
            waiting[i, j] = correlation(x[i], x[j])
    waiting = {pair: rho for pair, rho in waiting.items() if rho < theta}
    count = n * (n - 1)
    while count > 0 and waiting:
        i, j = min(waiting, key=lambda pair: (waiting[pair], pair))
        old_rho = waiting.pop((i, j))
        old_plan = list(world.plan)
        two_way(world, i, j)
        if correlation(world.total(i), world.total(j)) > old_rho:
            x[i], x[j] = world.total(i), world.total(j)
            for k in range(n):
                for member in (i, j):
                    if k not in (i, j):
                        pair = (min(member, k), max(member, k))
                        waiting.pop(pair, None)
                        rho = correlation(x[member], x[k])
                        if rho < theta:
                            waiting[pair] = rho
        else:
            world.plan[:] = old_plan
        count -= 1
