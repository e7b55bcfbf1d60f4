"""Judging plans, checking what strategies give, finding strategies by name."""

from dataclasses import replace
from importlib.metadata import EntryPoint

import numpy as np
import pytest

from load.abstract_networks import network_of, random_problem, worked_example
from penstock.errors import InputError
from penstock.load.problem import placement_problem
from penstock.model.abstract import AbstractOperator
from penstock.place.plan import best_first, judge_assignment, make_plan, misfits, nodes_by_operator
from penstock.place.registry import GROUP, strategies, strategy_called
from penstock.place.rod import Rod
from penstock.place.strategy import Strategy, check_assignment


class Backwards(Strategy):
    """A strategy of one's own, as an entry point would name it."""

    name = "backwards"

    def place(self, problem: object, rng: object) -> np.ndarray:
        return np.zeros(4, dtype=np.int64)


class Wrong(Strategy):
    name = "rod"

    def place(self, problem: object, rng: object) -> np.ndarray:
        return np.zeros(1)


def entry(value: str) -> EntryPoint:
    return EntryPoint("mine", value, GROUP)


def test_the_worked_example_judged() -> None:
    problem = placement_problem(worked_example())
    quality = judge_assignment(problem, np.array([0, 0, 1, 1]))
    assert quality.volume is not None
    assert (quality.volume.ratio, quality.volume.error) == (pytest.approx(0.5), 0.0)
    assert quality.axis_product == pytest.approx(0.25)
    assert quality.plane_distance == pytest.approx(0.5 * np.sqrt(2))
    assert quality.cut_streams == 0


def test_plans_are_told_apart() -> None:
    problem = placement_problem(worked_example())
    ticks = iter(range(10))
    plans = [make_plan(problem, one(), lambda: float(next(ticks))) for one in (Backwards, Rod)]
    assert [plan.algorithm for plan in best_first(plans)] == ["rod", "backwards"]
    assert plans[0].seconds == 1.0
    assert nodes_by_operator(problem, plans[0]) == dict.fromkeys(("o1", "o2", "o3", "o4"), "n1")


def test_a_plan_that_cannot_carry_the_lower_bound_is_flagged() -> None:
    problem = random_problem(1, units=6, nodes=3, lower=True)
    problem = replace(problem, lower=problem.lower * 0.9 / problem.lower_point.sum())
    quality = judge_assignment(problem, np.zeros(6, dtype=np.int64))
    assert quality.volume is not None and quality.volume.ratio == 0.0
    assert quality.notes[0] == "overloaded at the lower bound of the rates: nothing is feasible"


def test_what_is_too_much_at_typical_rates_is_flagged() -> None:
    operators = [AbstractOperator("a", ("A",), 0.15), AbstractOperator("b", ("A",), 0.01)]
    problem = placement_problem(network_of(operators, "A"))
    assert misfits(problem) == ("fits on no node at typical rates: a (needs 1.50 of 1)",)
    assert judge_assignment(problem, np.array([0, 0])).notes == (
        "overloaded at typical rates: n1 (1.60 of its CPU)",
    )


def test_too_many_variables_are_flagged() -> None:
    problem = random_problem(1, units=60, width=30)
    quality = judge_assignment(problem, np.zeros(60, dtype=np.int64))
    assert quality.volume is None
    assert quality.notes[-1] == (
        "30 variables are more than the 24 that can be integrated: no volume"
    )


@pytest.mark.parametrize(
    ("plan", "text"),
    [
        (np.zeros(3, dtype=np.int64), "int64 (3,), not one number for each of 4 units"),
        (np.zeros(4), "float64 (4,), not one number for each of 4 units"),
        (np.array([0, 0, 2, 0]), "strategy x put o3 on node 2; there are 2, counted from 0"),
        (np.array([1, 0, 0, 0]), "strategy x moved o1, which is pinned to n1"),
    ],
)
def test_what_is_no_plan_is_refused(plan: np.ndarray, text: str) -> None:
    problem = placement_problem(worked_example())
    problem = replace(problem, pinned=np.array([0, -1, -1, -1]))
    with pytest.raises(InputError, match=r"The strategy x has to be mended\.$") as raised:
        check_assignment(problem, plan, "x")
    assert text in str(raised.value)


def test_strategies_of_other_packages() -> None:
    known = strategies([entry("place.test_plan_quality:Backwards")])
    assert strategy_called("backwards", known).name == "backwards"
    assert "rod" in known


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("place.test_plan_quality:Wrong", "two strategies are called rod; the second is place."),
        ("place.nowhere:X", "the strategy mine cannot be loaded from place.nowhere:X: No module"),
        ("place.test_plan_quality:entry", "which is no named Strategy class. Subclass penstock."),
    ],
)
def test_unfit_strategies_of_other_packages(value: str, text: str) -> None:
    with pytest.raises(InputError) as raised:
        strategies([entry(value)])
    assert text in str(raised.value)


def test_an_unknown_strategy() -> None:
    with pytest.raises(InputError) as raised:
        strategy_called("rood", strategies())
    assert str(raised.value).startswith("no placement strategy rood. There are rod, rod-clustered")
    assert str(raised.value).endswith("Did you mean rod?")
