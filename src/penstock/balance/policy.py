"""What a balancing policy is: one class to subclass.

A policy gets a :class:`~penstock.balance.situation.Situation` and says what moves. It is pure: what
it needs besides is in its own fields or in the random generator it is given. The fields of one that
is a dataclass are settings of its own, beside the common ones under ``balance:``. See
``docs/balancing.md`` for an example of one's own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from penstock.balance.situation import HOMELESS, Situation, Thresholds
from penstock.errors import InputError

if TYPE_CHECKING:
    from penstock.balance.plan import MovePlan


class Policy(ABC):
    """Decides what moves where.

    >>> class AllToTheFirst(Policy):
    ...     name = "all-to-the-first"
    ...     def plan(self, situation, thresholds, rng):
    ...         from penstock.balance.plan import move_plan
    ...         wanted = np.where(situation.free, 0, situation.assignment)
    ...         return move_plan(self.name, situation, wanted)
    >>> situation = Situation.of([[0.3, 0.3], [0.2, 0.2]], [0, 1], [1.0, 1.0])
    >>> plan = AllToTheFirst().plan(situation, Thresholds(), np.random.default_rng(0))
    >>> [(move.operator, move.target) for move in plan.moves]
    [(1, 0)]
    """

    name: ClassVar[str]
    """What people call it: on the command line, in deployment files and in tables."""

    @abstractmethod
    def plan(
        self, situation: Situation, thresholds: Thresholds, rng: np.random.Generator
    ) -> MovePlan:
        """What moves: operators that may not move stay, those without a node get one."""


def check_plan(plan: MovePlan, situation: Situation, name: str) -> MovePlan:
    """The plan, if it is one for this situation; raises what is wrong with it."""
    hint = f"The policy {name} has to be mended."
    if plan.situation is not situation:
        raise InputError(f"policy {name} gave a plan for another situation", hint=hint)
    is_bound = ~situation.movable & (situation.assignment != HOMELESS)
    moved = np.flatnonzero(is_bound & (plan.assignment != situation.assignment))
    if moved.size:
        raise InputError(f"policy {name} moved operator {moved[0]}, which may not move", hint=hint)
    return plan
