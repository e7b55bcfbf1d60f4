"""Resilient operator distribution: the plan that takes most bursting without moving anything.

Units are placed in the order of the Euclidean norm of their load rows, largest first; fixed loads
count in them as where the ideal plan is full (``Problem.full_rows``). Where the hyperplanes of some
nodes would stay outside the ideal set, nothing is lost by choosing one of them, and the one that
cuts fewest streams is taken (ties: the first). Without fixed loads these are the nodes with no
weight above 1; with them, with none above what they leave of the node, as a part of what they
leave of all nodes. Otherwise the node whose hyperplane stays farthest from the lower bound of the
rates is taken.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from penstock.load.arrays import Floats, Ints, sums_by
from penstock.load.problem import UNPINNED, Problem
from penstock.place.strategy import Strategy


class Rod(Strategy):
    """Resilient operator distribution, in time proportional to units x nodes x variables."""

    name: ClassVar[str] = "rod"

    def place(self, problem: Problem, rng: np.random.Generator) -> Ints:
        return rod(problem)


def rod(problem: Problem) -> Ints:
    """The node of every unit. Depends on nothing but the problem; pinned units count first.

    To plan again without moving what may not move, pin it where it is.
    """
    from penstock.place.rod_kernel import Fixed, assign

    _, nodes, width = problem.size
    assignment = problem.pinned.copy()
    used = np.zeros((nodes, width))
    pinned = np.flatnonzero(assignment != UNPINNED)
    np.add.at(used, assignment[pinned], problem.rows[pinned])
    taken = sums_by(assignment[pinned], problem.fixed[pinned], nodes)
    free = placing_order(problem.full_rows)
    starts, neighbours = neighbour_lists(problem)
    assign(
        free[assignment[free] == UNPINNED],
        np.array(problem.rows),
        np.ascontiguousarray(1.0 / (problem.totals[:, np.newaxis] * problem.shares)),
        np.array(problem.lower_point),
        Fixed(
            np.array(problem.fixed), np.array(problem.capacities), taken, float(problem.ideal_room)
        ),
        starts,
        neighbours,
        assignment,
        np.ascontiguousarray(used.T),
    )
    return assignment


def placing_order(rows: Floats) -> Ints:
    """Units by the norm of their rows, largest first; ties in the order given.

    >>> placing_order(np.array([[1.0, 0.0], [3.0, 4.0], [0.0, 2.0]])).tolist()
    [1, 2, 0]
    """
    order: Ints = np.argsort(-np.sqrt((rows**2).sum(axis=1)), kind="stable")
    return order


def neighbour_lists(problem: Problem) -> tuple[Ints, Ints]:
    """For each unit those at the other end of its streams: where its part starts, and all parts."""
    ends = np.concatenate((problem.arcs.sources, problem.arcs.targets))
    others = np.concatenate((problem.arcs.targets, problem.arcs.sources))
    order = np.argsort(ends, kind="stable")
    starts = np.zeros(len(problem.rows) + 1, dtype=np.int64)
    np.cumsum(np.bincount(ends, minlength=len(problem.rows)), out=starts[1:])
    return starts, others[order]
