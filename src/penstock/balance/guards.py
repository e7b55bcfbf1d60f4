"""Guards against oscillation: what of a plan is carried out now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from penstock.balance.situation import HOMELESS, Situation
from penstock.errors import InputError

if TYPE_CHECKING:
    from penstock.balance.plan import MovePlan, PlannedMove


@dataclass(frozen=True)
class Guards:
    """How much may move how often.

    ``cooldown_s``: an operator that moved stays for so long. ``most_load``: mean load, in units of
    capacity, that may move in one period. ``patience``: periods in a row in which a policy must
    have wanted to move something before anything moves.
    """

    cooldown_s: float = 0.0
    most_load: float = float("inf")
    patience: int = 1

    def __post_init__(self) -> None:
        if not (self.cooldown_s >= 0 and self.most_load >= 0 and self.patience >= 1):
            raise InputError(
                f"a cooldown of {self.cooldown_s} s, at most {self.most_load} moved a period, "
                f"patience {self.patience}",
                hint="Give zero or more, zero or more, and at least one.",
            )


@dataclass(frozen=True)
class GuardState:
    """What the guards remember: when each operator last moved, for how long moves were wanted."""

    moved_at_s: Mapping[str, float] = field(default_factory=dict)
    wanted: int = 0


def without_resting(
    situation: Situation, names: list[str], guards: Guards, state: GuardState, now_s: float
) -> Situation:
    """The situation with operators that moved lately as not movable."""
    never = -float("inf")
    since = np.array([now_s - state.moved_at_s.get(name, never) for name in names])
    return replace(situation, movable=situation.movable & (since >= guards.cooldown_s))


def apply_guards(
    plan: MovePlan, names: list[str], guards: Guards, state: GuardState, now_s: float
) -> tuple[MovePlan, GuardState]:
    """What of a plan is carried out now, and the memory afterwards.

    Operators whose node has left are always moved: for them no guard applies.
    """
    # Only now: settings have guards, and who only reads settings need not wait for a compiler.
    from penstock.balance.plan import move_plan

    urgent = tuple(move for move in plan.moves if move.source == HOMELESS)
    others = tuple(move for move in plan.moves if move.source != HOMELESS)
    wanted = state.wanted + 1 if others else 0
    patient = wanted >= guards.patience
    chosen = urgent + (_within_cap(plan.situation, others, guards.most_load) if patient else ())
    moved_at_s = {name: at for name, at in state.moved_at_s.items() if name in set(names)}
    moved_at_s |= {names[move.operator]: now_s for move in chosen}
    if len(chosen) == len(plan.moves):
        return plan, GuardState(moved_at_s, wanted)
    after = plan.situation.assignment.copy()
    for move in chosen:
        after[move.operator] = move.target
    return move_plan(plan.policy, plan.situation, after), GuardState(moved_at_s, wanted)


def _within_cap(
    situation: Situation, moves: tuple[PlannedMove, ...], most_load: float
) -> tuple[PlannedMove, ...]:
    """As many moves as fit under the cap; the best-scoring of the most uneven nodes first.

    If not all fit, a move is left out that alone would leave its target more loaded than both
    nodes were: half an exchange may be worse than none.
    """
    if sum(move.load for move in moves) <= most_load:
        return moves
    loads = situation.node_loads.copy()
    taken: list[PlannedMove] = []
    left = most_load
    for move in sorted(
        moves, key=lambda move: (move.target_before - move.source_before, -move.score)
    ):
        share = move.load / situation.capacities[move.target]
        fits = loads[move.target] + share <= max(loads[move.source], loads[move.target], 1.0)
        if move.load <= left and fits:
            taken.append(move)
            left -= move.load
            loads[move.target] += share
            loads[move.source] -= move.load / situation.capacities[move.source]
    return tuple(taken)
