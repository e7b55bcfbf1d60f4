"""The source's algorithms for two nodes (Figs. 5.2 to 5.4, slips corrected), loop by loop.

Operators are numbers; ``loads[o]`` is the series of operator o, ``plan[o]`` its node. An algorithm
changes the plan of the two nodes it is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.bench.plain.series import Series, correlation, mean, minus, plus


@dataclass
class PairsWorld:
    """What the algorithms work on."""

    loads: Sequence[Series]
    plan: list[int]
    movable: Sequence[bool]
    capacities: Sequence[float]

    def on(self, node: int) -> list[int]:
        return [o for o, where in enumerate(self.plan) if where == node]

    def total(self, node: int) -> list[float]:
        series = [0.0] * len(self.loads[0])
        for operator in self.on(node):
            series = plus(series, self.loads[operator])
        return series

    def relative(self, series: Series, node: int) -> float:
        return mean(series) / self.capacities[node]


def one_way(world: PairsWorld, first: int, second: int) -> None:
    """Fig. 5.2."""
    x = {first: world.total(first), second: world.total(second)}
    heavier = world.relative(x[first], first) > world.relative(x[second], second)
    source, target = (first, second) if heavier else (second, first)
    c1, c2 = world.capacities[source], world.capacities[target]
    remaining = (mean(x[source]) * c2 - mean(x[target]) * c1) / (c1 + c2)
    waiting = [o for o in world.on(source) if world.movable[o] and mean(world.loads[o]) < remaining]
    while waiting:
        scores = {}
        for o in waiting:
            y = world.loads[o]
            at_source = correlation(y, minus(x[source], y))
            scores[o] = (at_source - correlation(y, x[target])) / 2
        chosen = max(waiting, key=lambda o: scores[o])
        y = world.loads[chosen]
        world.plan[chosen] = target
        x[source], x[target] = minus(x[source], y), plus(x[target], y)
        remaining -= mean(y)
        waiting = [o for o in waiting if o != chosen and mean(world.loads[o]) < remaining]


def two_way(world: PairsWorld, first: int, second: int) -> None:
    """Fig. 5.3."""
    waiting = [o for o, where in enumerate(world.plan) if where in (first, second)]
    waiting = [o for o in waiting if world.movable[o]]
    for o in waiting:
        world.plan[o] = -1
    x = {first: world.total(first), second: world.total(second)}
    while waiting:
        lighter = world.relative(x[first], first) < world.relative(x[second], second)
        target, other = (first, second) if lighter else (second, first)
        scores = {}
        for o in waiting:
            y = world.loads[o]
            scores[o] = (correlation(y, x[other]) - correlation(y, x[target])) / 2
        chosen = max(waiting, key=lambda o: scores[o])
        waiting.remove(chosen)
        world.plan[chosen] = target
        x[target] = plus(x[target], world.loads[chosen])
    one_way(world, first, second)


def selective_exchange(world: PairsWorld, first: int, second: int, delta: float) -> None:
    """Fig. 5.4; the receiver gains the operator, which is left out of its own node's series."""
    one_way(world, first, second)
    x = {first: world.total(first), second: world.total(second)}
    count = sum(1 for o in world.on(first) + world.on(second) if world.movable[o])
    while count > 0:
        heavier = world.relative(x[first], first) > world.relative(x[second], second)
        source, target = (first, second) if heavier else (second, first)
        candidates = [o for o in world.on(source) if world.movable[o]]
        if not candidates:
            break
        scores = {}
        for o in candidates:
            y = world.loads[o]
            at_source = correlation(y, minus(x[source], y))
            scores[o] = (at_source - correlation(y, x[target])) / 2
        chosen = max(candidates, key=lambda o: scores[o])
        if not scores[chosen] > delta:
            break
        y = world.loads[chosen]
        world.plan[chosen] = target
        x[source], x[target] = minus(x[source], y), plus(x[target], y)
        count -= 1
    one_way(world, first, second)
