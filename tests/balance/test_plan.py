"""Plans carry the numbers they were made from."""

import numpy as np
import pytest

from penstock.balance.plan import balance_of, move_plan
from penstock.balance.situation import Situation, Thresholds
from penstock.errors import InputError

EARLY, LATE = [0.4, 0.1], [0.1, 0.4]


def test_a_move_says_what_it_was_decided_by() -> None:
    situation = Situation.of([EARLY, EARLY, LATE], [0, 0, 1], [1.0, 1.0])
    plan = move_plan("by hand", situation, np.array([0, 1, 1]))
    (move,) = plan.moves
    assert (move.operator, move.source, move.target) == (1, 0, 1)
    assert move.load == pytest.approx(0.25)
    assert (move.source_correlation, move.target_correlation) == pytest.approx((1.0, -1.0))
    assert move.score == pytest.approx(1.0)
    assert (move.source_before, move.source_after) == pytest.approx((0.5, 0.25), abs=1e-5)
    assert (move.target_before, move.target_after) == pytest.approx((0.25, 0.5), abs=1e-5)
    assert plan.moved_load == pytest.approx(0.25)


def test_only_operators_whose_node_changed_move_and_pairs_stay_together() -> None:
    situation = Situation.of(np.full((5, 1), 0.1), [0, 1, 2, 3, 0], [1.0] * 4)
    plan = move_plan("by hand", situation, np.array([1, 0, 3, 3, 2]))
    pairs = [[(move.source, move.target) for move in batch] for batch in plan.batches]
    assert pairs == [[(0, 1), (1, 0)], [(0, 2)], [(2, 3)]]


def test_before_and_after_are_told() -> None:
    situation = Situation.of([EARLY, EARLY, LATE, LATE], [0, 0, 1, 1], [1.0, 1.0])
    plan = move_plan("by hand", situation, np.array([0, 1, 0, 1]))
    assert plan.before.mean_correlation == -1.0
    assert plan.before.mean_deviation == pytest.approx(0.3, abs=1e-4)
    assert plan.after.mean_deviation == pytest.approx(0.0, abs=1e-4)
    assert plan.before.least_deviation == plan.after.least_deviation
    assert balance_of(situation).highest_load == pytest.approx(0.5, abs=1e-4)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Situation.of([[0.1]], [0, 0], [1.0]),
            "1 operators, 2 places and 1 flags of who may move. Give one of each per operator.",
        ),
        (
            lambda: Situation.of([[0.1]], [1], [1.0]),
            "an operator on node 1 of 1. "
            "Nodes count from 0; -1 is for an operator whose node has left.",
        ),
        (
            lambda: Situation.of([[0.1]], [0], [1.0, 0.0]),
            "capacities [1.0, 0.0]. Give at least one node, each more than zero.",
        ),
        (
            lambda: Situation.of([0.1], [0], [1.0]),
            "load samples in an array of shape (1,). "
            "Give a row per operator and a column per period, at least one.",
        ),
        (lambda: Thresholds(delta=2), "delta is 2. Give a number from 0 to 1."),
    ],
)
def test_what_cannot_be_is_refused(make, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError) as error:
        make()
    assert str(error.value) == message
