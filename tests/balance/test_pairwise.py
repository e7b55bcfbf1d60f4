"""Pairwise algorithms: equal to the source's loops on random situations full of ties."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from balance.worlds import series_of, worlds
from laws import tried
from penstock.balance import pairwise
from penstock.balance.plan import MovePlan
from penstock.balance.situation import LEAST_KNOWN, Situation, Thresholds
from penstock.bench.plain import cluster, pairs
from penstock.bench.plain.pairs import PairsWorld

LIMITS = Thresholds(epsilon=0.1, delta=0.2, theta=0.8)
Fast = Callable[[Situation, Thresholds], MovePlan]

exchange = partial(pairs.selective_exchange, delta=LIMITS.delta)
ALGORITHMS = [
    (pairwise.one_way, partial(cluster.pairwise, epsilon=0.1, algorithm=pairs.one_way)),
    (pairwise.redistribution, partial(cluster.pairwise, epsilon=0.1, algorithm=pairs.two_way)),
    (pairwise.selective_exchange, partial(cluster.pairwise, epsilon=0.1, algorithm=exchange)),
    (
        pairwise.improved_redistribution,
        partial(cluster.improved, epsilon=0.1, theta=0.8, algorithm=pairs.two_way, one=1.0),
    ),
    (
        pairwise.improved_selective_exchange,
        partial(cluster.improved, epsilon=0.1, theta=0.8, algorithm=exchange, one=1.0),
    ),
]


def _situation(world: PairsWorld) -> Situation:
    return Situation.of(series_of(world), world.plan, world.capacities, world.movable)


@pytest.mark.parametrize(
    ("fast", "plain"), ALGORITHMS, ids=lambda one: getattr(one, "__name__", "")
)
@given(world=worlds())
@tried(30)
def test_plans_are_those_of_the_plain_transcription(
    fast: Fast, plain: Callable[[PairsWorld], None], world: PairsWorld
) -> None:
    situation = _situation(world)
    # Operators without any load have nothing to give and stay.
    world.movable = situation.free.tolist()
    plan = fast(situation, LIMITS)
    plain(world)
    assert plan.assignment.tolist() == world.plan


@given(worlds())
@tried(30)
def test_one_way_never_moves_an_operator_heavier_than_the_gap(world: PairsWorld) -> None:
    situation = _situation(world)
    for move in pairwise.one_way(situation, LIMITS).moves:
        source, target = move.source, move.target
        gap = move.source_before - move.target_before
        assert gap > LIMITS.epsilon
        assert move.load < gap * min(situation.capacities[source], situation.capacities[target])
        assert move.source_after >= move.target_after - 1e-9


@given(worlds())
@tried(30)
def test_after_one_way_only_operators_too_heavy_to_move_keep_a_pair_apart(
    world: PairsWorld,
) -> None:
    situation = _situation(world)
    after = pairwise.one_way(situation, LIMITS).assignment
    balanced = Situation(situation.series, after, situation.capacities, situation.movable)
    order = np.argsort(-situation.node_loads, kind="stable")
    for k in range(situation.nodes // 2):
        heavy, light = order[k], order[-1 - k]
        if situation.node_loads[heavy] - situation.node_loads[light] <= LIMITS.epsilon:
            continue
        c1, c2 = situation.capacities[[heavy, light]]
        l1, l2 = balanced.node_loads[[heavy, light]] * (c1, c2)
        gap = (l1 * c2 - l2 * c1) / (c1 + c2)
        candidates = situation.free & (after == heavy)
        assert np.all(situation.series.means[candidates] >= gap - 1e-9)


@given(worlds(), st.integers(0, 2**32))
@tried(30)
def test_with_one_sample_correlation_plays_no_part(world: PairsWorld, seed: int) -> None:
    """h = 1: the choice is arbitrary, here the first operator that fits."""
    world.loads = [series[:1] for series in world.loads]
    situation = _situation(world)
    plan = pairwise.one_way(situation, LIMITS)
    assert all(move.score == 0 for move in plan.moves)
    by_number = -np.arange(len(world.plan), dtype=np.float64)
    same = pairwise.balanced_by_priority("first", situation, LIMITS, by_number)
    assert plan.assignment.tolist() == same.assignment.tolist()


def test_constant_series_are_balanced_by_load_alone() -> None:
    situation = Situation.of(np.full((6, 5), 0.1), [0] * 6, [1.0, 1.0])
    plan = pairwise.improved_selective_exchange(situation)
    assert np.bincount(plan.assignment).tolist() == [4, 2]
    assert {move.score for move in plan.moves} == {0.0}


def test_operators_without_load_or_hardly_known_stay() -> None:
    nan = float("nan")
    loads = [[0.0] * 4, [nan, nan, nan, 0.3], [0.3] * 4, [0.3] * 4, [nan, nan, 0.3, 0.3]]
    situation = Situation.of(loads, [0] * 5, [1.0, 1.0])
    assert situation.free.tolist() == [False, LEAST_KNOWN <= 1 / 4, True, True, True]
    moved = {move.operator for move in pairwise.redistribution(situation).moves}
    assert moved <= {2, 3, 4}
    assert moved


def test_a_faulty_node_that_reports_nan_steers_nothing() -> None:
    loads = np.full((4, 3), 0.2)
    loads[0] = float("nan")
    situation = Situation.of(loads, [0, 1, 1, 1], [1.0, 1.0])
    plan = pairwise.improved_redistribution(situation)
    assert np.isfinite(situation.node_loads).all()
    assert plan.assignment[0] == 0


def test_operators_of_a_node_that_left_get_a_new_one() -> None:
    early, late = [0.4, 0.1], [0.1, 0.4]
    situation = Situation.of([[0.5, 0.1], late, early], [0, 1, -1], [1.0, 1.0])
    plan = pairwise.one_way(situation)
    assert [(move.operator, move.source, move.target) for move in plan.moves] == [(2, -1, 1)]
    assert np.isnan(plan.moves[0].source_before)


def test_a_node_that_joined_takes_load_over() -> None:
    rng = np.random.default_rng(1)
    situation = Situation.of(rng.uniform(0.05, 0.1, (12, 5)), [0] * 6 + [1] * 6, [1.0] * 3)
    plan = pairwise.one_way(situation)
    assert 2 in plan.assignment


def test_nothing_to_do_is_no_plan() -> None:
    situation = Situation.of(np.zeros((0, 3)), [], [1.0, 1.0])
    assert pairwise.improved_selective_exchange(situation).moves == ()
    idle = Situation.of(np.zeros((3, 3)), [0, 0, 0], [1.0, 1.0])
    assert pairwise.improved_redistribution(idle).moves == ()
