"""Cooldown, cap and patience."""

import numpy as np
import pytest

from penstock.balance.guards import Guards, GuardState, apply_guards, without_resting
from penstock.balance.pairwise import one_way
from penstock.balance.plan import move_plan
from penstock.balance.situation import Situation
from penstock.errors import InputError

NAMES = [f"o{i}" for i in range(8)]


def _uneven() -> Situation:
    return Situation.of(np.full((8, 2), 0.1), [0] * 8, [1.0, 1.0])


def test_an_operator_that_moved_rests() -> None:
    guards = Guards(cooldown_s=10)
    state = GuardState({"o0": 100.0, "o1": 91.0, "o2": 80.0})
    movable = without_resting(_uneven(), NAMES, guards, state, now_s=101.0).movable
    assert movable.tolist() == [False, True] + [True] * 6


def test_moves_are_remembered_and_operators_that_are_gone_forgotten() -> None:
    plan = one_way(_uneven())
    _, state = apply_guards(plan, NAMES, Guards(), GuardState({"gone": 1.0, "o7": 2.0}), now_s=5.0)
    moved = {NAMES[move.operator] for move in plan.moves}
    assert state.moved_at_s == {"o7": 2.0} | dict.fromkeys(moved, 5.0)


@pytest.mark.parametrize("cap", [0.0, 0.05, 0.1, 0.25, 1.0])
def test_no_more_load_moves_in_a_period_than_the_cap(cap: float) -> None:
    plan, _ = apply_guards(
        one_way(_uneven()), NAMES, Guards(most_load=cap), GuardState(), now_s=0.0
    )
    assert plan.moved_load <= cap + 1e-9
    assert len(plan.moves) == min(3, int(cap / 0.1 + 1e-6))


def test_half_an_exchange_that_would_overload_is_left_out() -> None:
    situation = Situation.of([[0.7], [0.6], [0.35]], [0, 1, 1], [1.0, 1.0])
    swap = move_plan("by hand", situation, np.array([1, 0, 1]))
    plan, _ = apply_guards(swap, NAMES[:3], Guards(most_load=0.8), GuardState(), now_s=0.0)
    assert plan.moves == ()


def test_a_wish_must_last() -> None:
    guards, state = Guards(patience=3), GuardState()
    moved = []
    for now_s in (1.0, 2.0, 3.0):
        plan, state = apply_guards(one_way(_uneven()), NAMES, guards, state, now_s)
        moved.append(len(plan.moves))
    assert moved == [0, 0, 3]
    calm = move_plan("by hand", _uneven(), np.zeros(8, np.int64))
    _, state = apply_guards(calm, NAMES, guards, state, 4.0)
    assert state.wanted == 0


def test_operators_whose_node_left_do_not_wait() -> None:
    situation = Situation.of(np.full((3, 2), 0.4), [0, 0, -1], [1.0, 1.0])
    guards = Guards(most_load=0.0, patience=5)
    plan, _ = apply_guards(one_way(situation), NAMES[:3], guards, GuardState(), now_s=0.0)
    assert [move.operator for move in plan.moves] == [2]


def test_guards_are_checked() -> None:
    with pytest.raises(InputError) as error:
        Guards(patience=0)
    assert str(error.value) == (
        "a cooldown of 0.0 s, at most inf moved a period, patience 0. "
        "Give zero or more, zero or more, and at least one."
    )
