"""Two-dimensional slices through feasible sets, to be looked at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.load.arrays import Floats, Ints
from penstock.load.feasible import rooms, weights
from penstock.load.problem import Problem
from penstock.load.volume import clipped


@dataclass(frozen=True, eq=False)
class Slice:
    """The feasible and the ideal set in the plane of two variables, as corners in rates.

    ``lines`` are the nodes' hyperplanes in that plane, a x + b y = c for each row (a, b, c).
    """

    feasible: Floats
    ideal: Floats
    lines: Floats


def main_axes(problem: Problem) -> tuple[int, int]:
    """The two variables that make most load at typical rates, in the order given."""
    order = np.argsort(-(problem.rates * problem.totals), kind="stable")[:2]
    first, second = sorted(int(axis) for axis in order)
    return first, second


def slice_point(problem: Problem, axes: tuple[int, int]) -> Floats:
    """Where the other variables are held: at typical rates, or lower if those leave no room."""
    typical = problem.rates * problem.totals / problem.capacity
    held = np.maximum(typical, problem.lower_point)
    held[list(axes)] = 0.0
    if held.sum() < 0.9 * problem.ideal_room:
        return held
    low = problem.lower_point.copy()
    low[list(axes)] = 0.0
    return low


def plan_slice(problem: Problem, assignment: Ints, axes: tuple[int, int]) -> Slice:
    """The slice of a plan along two variables; exact, and all there is if there are only two."""
    held, chosen = slice_point(problem, axes), list(axes)
    low_x, low_y = problem.lower_point[chosen]
    room = problem.ideal_room - held.sum()
    corners = np.array([(low_x, low_y), (room - low_y, low_y), (low_x, room - low_x)])
    rows = weights(problem, assignment)
    limits = rooms(problem, assignment) - rows @ held
    feasible = corners
    for row, limit in zip(rows[:, chosen], limits, strict=True):
        feasible = clipped(feasible, row, limit)
    to_rates = (problem.capacity / problem.totals)[chosen]
    lines = np.column_stack((rows[:, chosen] / to_rates, limits))
    return Slice(feasible * to_rates, corners * to_rates, lines)
