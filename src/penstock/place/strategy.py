"""What a placement strategy is: one class to subclass.

A strategy gets a :class:`~penstock.load.problem.Problem` and says which node every unit goes to.
It is pure: what it needs besides the problem is in its own fields or in the random generator it is
given. See ``docs/placement.md`` for an example of one's own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from penstock.errors import InputError
from penstock.load.arrays import Ints
from penstock.load.problem import UNPINNED, Problem


class Strategy(ABC):
    """Decides where units go.

    >>> class AllOnTheFirst(Strategy):
    ...     name = "all-on-the-first"
    ...     def place(self, problem, rng):
    ...         return np.zeros(len(problem.units), dtype=np.int64)
    """

    name: ClassVar[str]
    """What people call it: on the command line, in deployment files and in tables."""

    @abstractmethod
    def place(self, problem: Problem, rng: np.random.Generator) -> Ints:
        """The number of the node of every unit; pinned units must be where they are pinned."""


def check_assignment(problem: Problem, assignment: Ints, name: str) -> Ints:
    """The assignment, if it is one; raises what is wrong with it."""
    units, nodes, _ = problem.size
    given = np.asarray(assignment)
    hint = f"The strategy {name} has to be mended."
    if given.shape != (units,) or not np.issubdtype(given.dtype, np.integer):
        raise InputError(
            f"strategy {name} gave {given.dtype} {given.shape}, not one number for each of "
            f"{units} units",
            hint=hint,
        )
    outside = np.flatnonzero((given < 0) | (given >= nodes))
    if len(outside):
        raise InputError(
            f"strategy {name} put {problem.units[outside[0]]} on node {given[outside[0]]}; "
            f"there are {nodes}, counted from 0",
            hint=hint,
        )
    moved = np.flatnonzero((problem.pinned != UNPINNED) & (problem.pinned != given))
    if len(moved):
        raise InputError(
            f"strategy {name} moved {problem.units[moved[0]]}, which is pinned to "
            f"{problem.nodes[problem.pinned[moved[0]]]}",
            hint=hint,
        )
    return given.astype(np.int64)
