"""Resilient operator distribution: the plan that takes most bursting without moving anything.

Units are placed in the order of the Euclidean norm of their load rows, largest first; fixed loads
count in them as where the ideal plan is full (``Problem.full_rows``). Where the hyperplanes of some
nodes would stay outside the ideal set, nothing is lost by choosing one of them, and the one that
cuts fewest streams is taken (ties: the first). Without fixed loads these are the nodes with no
weight above 1; with them, with none above what they leave of the node, as a part of what they
leave of all nodes. Otherwise the node whose hyperplane stays farthest from the lower bound of the
rates is taken. What a node has to pay for its first unit of some kind (``Problem.openings``) counts
with the unit there; of the nodes where nothing is lost, one that opens least is taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from penstock.load.arrays import Floats, Ints, sums_by
from penstock.load.problem import UNPINNED, Problem
from penstock.place.strategy import Strategy

if TYPE_CHECKING:
    from penstock.place.rod_kernel import Opened


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
    opened = _opened(problem, pinned)
    used += opened.paid @ opened.rows
    taken = taken + opened.paid @ opened.fixed
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
        opened,
        starts,
        neighbours,
        assignment,
        np.ascontiguousarray(used.T),
    )
    return assignment


def _opened(problem: Problem, pinned: Ints) -> Opened:
    """The openings of a problem, those of pinned units paid."""
    from penstock.place.rod_kernel import Opened

    paid = np.zeros((len(problem.nodes), len(problem.openings)), dtype=np.bool_)
    np.logical_or.at(paid, problem.pinned[pinned], problem.opens[pinned])
    fixed = np.array([opening.fixed for opening in problem.openings], dtype=np.float64)
    sizes = problem.opening_rows @ problem.rates + fixed
    return Opened(np.array(problem.opening_rows), fixed, sizes, np.array(problem.opens), paid)


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
