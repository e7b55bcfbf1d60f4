"""Volumes: exact ones, estimates and their errors, and the two bounds from below."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws import tried
from load.abstract_networks import random_assignment, random_problem, random_weights
from penstock.load.feasible import anchored, axis_product, plane_distance, weights
from penstock.load.volume import (
    MOST_VARIABLES,
    ball_bound,
    directions,
    estimated_volume,
    polygon_volume,
    polytope_volume,
    volume,
)


@pytest.mark.parametrize(("width", "log2_points"), [(3, 10), (4, 12), (5, 12)])
def test_estimates_agree_with_half_space_intersection(width: int, log2_points: int) -> None:
    rng = np.random.default_rng(width)
    for _ in range(20):
        rows = random_weights(rng, 8, width)
        found = estimated_volume(rows, directions(width, log2_points))
        exact = polytope_volume(rows)
        assert abs(found.ratio - exact) <= found.error + 1e-9
        assert found.error < 0.02 * exact + 1e-9


def test_two_variables_three_ways() -> None:
    rng = np.random.default_rng(7)
    for _ in range(50):
        rows = random_weights(rng, 6, 2)
        exact = polygon_volume(rows)
        assert exact == pytest.approx(polytope_volume(rows), rel=1e-9)
        assert exact == pytest.approx(estimated_volume(rows).ratio, rel=1e-5)


def test_the_worked_example_s_polygons() -> None:
    # Plan (a): each stream on a node of its own; half of the triangle.
    assert polygon_volume(np.array([[2.0, 0.0], [0.0, 2.0]])) == pytest.approx(0.5)
    # Plan (c): one node is below the other nearly everywhere.
    rows = np.array([[1.4, 14 / 16], [0.6, 18 / 16]])
    assert polygon_volume(rows) == pytest.approx(polytope_volume(rows))


def test_counting_points_inside_gives_the_same() -> None:
    rng = np.random.default_rng(3)
    rows = random_weights(rng, 5, 3)
    points = np.diff(np.sort(rng.random((200_000, 3)), axis=1), axis=1, prepend=0.0)
    inside = (points @ rows.T <= 1).all(axis=1).mean()
    assert estimated_volume(rows).ratio == pytest.approx(inside, abs=0.005)


def test_the_ideal_is_one_and_nothing_is_larger() -> None:
    assert estimated_volume(np.ones((4, 5))).ratio == pytest.approx(1.0)
    assert polytope_volume(np.ones((4, 3))) == pytest.approx(1.0)


@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(2, 6))
@tried(40)
def test_both_bounds_hold(seed: int, width: int, nodes: int) -> None:
    rows = random_weights(np.random.default_rng(seed), nodes, width)
    exact = polytope_volume(rows)
    assert axis_product(rows) <= exact + 1e-9
    assert ball_bound(plane_distance(rows), width) <= exact + 1e-9


@given(st.integers(0, 10_000))
@tried(25)
def test_theorem_1_no_plan_is_larger_than_the_ideal(seed: int) -> None:
    """The capacity-weighted mean of the rows is the ideal hyperplane, so it contains every set."""
    problem = random_problem(seed)
    rows = weights(problem, random_assignment(problem, seed))
    assert problem.shares @ rows == pytest.approx(np.ones(3))
    assert polytope_volume(rows) <= 1 + 1e-9


@given(st.integers(0, 10_000))
@tried(25)
def test_theorem_2_axis_distances_are_greatest_when_evenly_shared(seed: int) -> None:
    problem = random_problem(seed)
    rows = weights(problem, random_assignment(problem, seed))
    assert (1 / rows.max(axis=0) <= 1 + 1e-9).all()


@given(st.integers(0, 10_000))
@tried(25)
def test_a_lower_bound_only_moves_the_origin(seed: int) -> None:
    """Against rejection: points above the lower bound, inside the ideal, that fit the plan."""
    problem = random_problem(seed, lower=True)
    rows = weights(problem, random_assignment(problem, seed))
    low = problem.lower_point
    spread = np.diff(np.sort(np.random.default_rng(seed).random((4_000, 3))), prepend=0.0)
    points = low + (1 - low.sum()) * spread
    inside = (points @ rows.T <= 1).all(axis=1).mean()
    moved = anchored(rows, low)
    found = 0.0 if moved is None else polytope_volume(moved)
    assert found == pytest.approx(inside, abs=0.05)


def test_too_many_variables_are_not_integrated() -> None:
    assert volume(np.ones((2, MOST_VARIABLES + 1))) is None


def test_one_variable() -> None:
    found = volume(np.array([[2.0], [0.5]]))
    assert found is not None and (found.ratio, found.error) == (0.5, 0.0)
    assert estimated_volume(np.array([[2.0]])).ratio == 0.5
