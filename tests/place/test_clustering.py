"""Clustering: equal to the source's loops, and worth it where streams are dear."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws import tried
from load.abstract_networks import random_assignment, random_problem
from penstock.load.bandwidth import is_abundant
from penstock.load.feasible import plane_distance, rooms, weights
from penstock.load.volume import polytope_volume
from penstock.place.clustering import (
    MergeThresholds,
    Order,
    by_distance,
    candidates,
    cluster,
    clustered_rod,
    merged_units,
    sweep,
)
from penstock.place.rod import rod
from place.transcription import plain_clusters


@given(
    st.integers(0, 100_000),
    st.sampled_from([0.0, 0.3, 1.0, np.inf]),
    st.sampled_from([0.0, 80.0, 200.0, np.inf]),
    st.sampled_from([0.5, 1.0, 2.0]),
    st.sampled_from(list(Order)),
    st.sampled_from([0.0, 0.4]),
)
@tried(60)
def test_equal_to_the_source_s_loops(
    seed: int,
    least_cpu: float,
    least_bytes: float,
    most_weight: float,
    order: Order,
    fixed: float,
) -> None:
    problem = random_problem(seed, units=14, transfer=0.5, fixed=fixed)
    labels = cluster(problem, MergeThresholds(least_cpu, least_bytes, most_weight, order))
    ours = {frozenset(np.flatnonzero(labels == one).tolist()) for one in set(labels.tolist())}
    assert ours == set(plain_clusters(problem, least_cpu, least_bytes, most_weight, order.name))


@given(st.integers(0, 100_000))
@tried(20)
def test_clusters_keep_the_load_and_what_lies_between_them(seed: int) -> None:
    problem = random_problem(seed, transfer=0.5, bandwidth=100.0, fixed=0.3)
    labels = cluster(problem, MergeThresholds(0.0, 0.0, 1.0, Order.WEIGHT_FIRST))
    merged = merged_units(problem, labels)
    plan = random_assignment(merged, seed)
    assert weights(merged, plan) == pytest.approx(weights(problem, plan[labels]))
    assert rooms(merged, plan) == pytest.approx(rooms(problem, plan[labels]))


def test_dear_streams_are_worth_clustering() -> None:
    gains = []
    for seed in range(5):
        problem = random_problem(seed, units=40, transfer=0.8, equal=True)
        plain = polytope_volume(weights(problem, rod(problem)))
        gains.append(polytope_volume(weights(problem, clustered_rod(problem))) / plain)
    assert np.mean(gains) > 1.3


@pytest.mark.parametrize(("transfer", "bandwidth"), [(0.0, 60.0), (0.5, np.inf), (0.5, 60.0)])
def test_the_plan_kept_is_the_best(transfer: float, bandwidth: float) -> None:
    problem = random_problem(3, transfer=transfer, bandwidth=bandwidth)
    plans = list(candidates(problem))
    assert len(plans) > 3
    farthest = plane_distance(weights(problem, clustered_rod(problem, by_distance)))
    assert farthest == max(plane_distance(weights(problem, plan)) for plan in plans)
    largest = polytope_volume(weights(problem, clustered_rod(problem)))
    assert largest >= max(polytope_volume(weights(problem, plan)) for plan in plans) - 1e-3


def test_orders_by_what_counts() -> None:
    assert not list(sweep(random_problem(1)))
    both = {one.order for one in sweep(random_problem(1, transfer=0.5, bandwidth=60.0))}
    assert both == set(Order)
    assert {one.order for one in sweep(random_problem(1, transfer=0.5))} == {
        Order.RATIO_FIRST,
        Order.WEIGHT_FIRST,
    }


@given(st.integers(0, 100_000), st.floats(100.0, 20_000.0))
@tried(40)
def test_theorem_3_abundant_bandwidth_never_limits(seed: int, bandwidth: float) -> None:
    problem = random_problem(seed, units=8, bandwidth=bandwidth)
    cpu_and_links = weights(problem, random_assignment(problem, seed))
    nodes = len(problem.nodes)
    if is_abundant(problem):
        assert (cpu_and_links[nodes:-1] <= cpu_and_links[:nodes]).all()
        assert (cpu_and_links[-1] <= 1).all()


def test_theorem_3_otherwise_some_unit_alone_saturates_a_link_first() -> None:
    problem = random_problem(4, units=8, bandwidth=200.0, equal=True)
    assert not is_abundant(problem)
    nodes, found = len(problem.nodes), False
    for unit in range(8):
        plan = np.ones(8, dtype=np.int64)
        plan[unit] = 0
        rows = weights(problem, plan)
        found = found or bool((rows[nodes] > rows[0]).any())
    assert found
