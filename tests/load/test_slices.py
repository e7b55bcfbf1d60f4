"""Slices through feasible sets."""

import numpy as np
import pytest

from load.abstract_networks import random_assignment, random_problem, worked_example
from penstock.load.feasible import weights
from penstock.load.problem import placement_problem
from penstock.load.slices import main_axes, plan_slice, slice_point


def area(corners: np.ndarray) -> float:
    x, y = corners.T
    return 0.5 * abs(float(x @ np.roll(y, -1) - y @ np.roll(x, -1)))


def test_two_variables_are_all_there_is() -> None:
    problem = placement_problem(worked_example())
    part = plan_slice(problem, np.array([0, 0, 1, 1]), (0, 1))
    assert part.ideal.tolist() == [[0, 0], [pytest.approx(0.1), 0], [0, pytest.approx(0.125)]]
    assert area(part.feasible) / area(part.ideal) == pytest.approx(0.5)


def test_points_of_a_slice_are_feasible() -> None:
    for seed in range(10):
        problem = random_problem(seed, width=4, lower=seed % 2 == 1)
        plan = random_assignment(problem, seed)
        axes = main_axes(problem)
        part = plan_slice(problem, plan, axes)
        point = slice_point(problem, axes)
        for corner in part.feasible:
            point[list(axes)] = corner * problem.totals[list(axes)] / problem.capacity
            assert (weights(problem, plan) @ point <= 1 + 1e-9).all()
            assert (point >= problem.lower_point - 1e-9)[list(axes)].all()


def test_the_main_axes_make_most_load() -> None:
    problem = random_problem(1, width=4)
    loads = problem.rates * problem.totals
    assert set(main_axes(problem)) == set(np.argsort(loads)[-2:].tolist())
