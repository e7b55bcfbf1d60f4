"""Largest-load-first and random selection."""

import numpy as np
from hypothesis import given

from balance.worlds import series_of, worlds
from laws import tried
from penstock.balance import rivals
from penstock.balance.deciding import decide
from penstock.balance.policies import policies
from penstock.balance.situation import Situation, Thresholds
from penstock.bench.plain.pairs import PairsWorld


def _largest_first(world: PairsWorld, epsilon: float) -> None:
    """Largest-load-first between the pairs of a period, written plainly."""
    nodes = range(len(world.capacities))
    load = [sum(series) for series in world.loads]
    h = len(world.loads[0])
    total = [sum(load[o] for o in world.on(i)) for i in nodes]
    relative = [total[i] / h / world.capacities[i] for i in nodes]
    order = sorted(nodes, key=lambda i: -relative[i])
    for k in range(len(order) // 2):
        a, b = order[k], order[-1 - k]
        if relative[a] - relative[b] <= epsilon:
            continue
        c1, c2 = world.capacities[a], world.capacities[b]
        left = (total[a] / h * c2 - total[b] / h * c1) / (c1 + c2)
        for o in sorted(world.on(a), key=lambda o: -load[o]):
            if world.movable[o] and load[o] / h < left:
                world.plan[o] = b
                left -= load[o] / h


@given(worlds())
@tried(40)
def test_largest_load_first_between_pairs(world: PairsWorld) -> None:
    situation = Situation.of(series_of(world), world.plan, world.capacities, world.movable)
    world.movable = situation.free.tolist()
    plan = rivals.largest_load_first(situation, Thresholds(epsilon=0.1))
    _largest_first(world, 0.1)
    assert plan.assignment.tolist() == world.plan


def test_largest_load_first_for_all() -> None:
    situation = Situation.of([[0.2], [0.5], [0.4], [0.3]], [0, 0, 0, 0], [1.0, 1.0])
    assert rivals.global_largest_load_first(situation).assignment.tolist() == [0, 0, 1, 1]


def test_random_selection_depends_on_the_seed_alone() -> None:
    situation = Situation.of(np.full((40, 2), 0.05), [0] * 40, [1.0] * 4)
    for policy in ("random", "global-random"):
        plans = [
            decide(policy, situation, np.random.default_rng(seed)).assignment.tolist()
            for seed in (1, 1, 2)
        ]
        assert plans[0] == plans[1] != plans[2]


def test_every_policy_leaves_pinned_operators_and_finds_homes() -> None:
    rng = np.random.default_rng(3)
    loads = rng.uniform(0.05, 0.3, (20, 6))
    start = np.array([0] * 10 + [1] * 8 + [-1] * 2)
    movable = np.arange(20) % 4 != 0
    situation = Situation.of(loads, start, [1.0] * 4, movable)
    for policy in policies():
        after = decide(policy, situation, rng).assignment
        pinned = ~movable & (start >= 0)
        assert (after[pinned] == start[pinned]).all(), policy
        assert (after >= 0).all(), policy
