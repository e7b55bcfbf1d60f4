"""What the rivals that balance load at one rate point share."""

from __future__ import annotations

import numpy as np

from penstock.load.arrays import Floats, Ints
from penstock.load.problem import UNPINNED, Problem


def with_pinned(problem: Problem, loads: Floats) -> tuple[Ints, Floats]:
    """An assignment with only the pinned units in it, and the load of the nodes so far."""
    assignment = problem.pinned.copy()
    used = np.zeros(len(problem.nodes))
    placed = np.flatnonzero(assignment != UNPINNED)
    np.add.at(used, assignment[placed], loads[placed])
    return assignment, used


def heaviest_first(loads: Floats, assignment: Ints) -> Ints:
    """The units that have no node yet, by load, ties in the order given."""
    order = np.argsort(-loads, kind="stable")
    free: Ints = order[assignment[order] == UNPINNED]
    return free


def largest_load_first(problem: Problem, rates: Floats) -> Ints:
    """Every unit, heaviest first, to the node that is least loaded for its size at ``rates``."""
    loads = problem.loads_at(rates)
    assignment, used = with_pinned(problem, loads)
    for unit in heaviest_first(loads, assignment):
        node = int(np.argmin(used / problem.capacities))
        assignment[unit] = node
        used[node] += loads[unit]
    return assignment
