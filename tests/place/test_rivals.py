"""Rivals: what each is known for, and what all have in common."""

from dataclasses import replace

import numpy as np
import pytest

from load.abstract_networks import network_of, random_problem
from penstock.load.feasible import cut_arcs
from penstock.load.problem import Problem, placement_problem
from penstock.model.abstract import AbstractOperator
from penstock.place.connected import Connected
from penstock.place.first_fit import FirstFit
from penstock.place.llf import LargestLoadFirst
from penstock.place.max_rate import MaxRate
from penstock.place.packing import Packing
from penstock.place.plan import judge_assignment
from penstock.place.random_plan import Random
from penstock.place.registry import OWN
from penstock.place.rod import rod
from penstock.place.strategy import Strategy, check_assignment

SMALL = [one for one in OWN if one.name != "exhaustive"]


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize("strategy", SMALL)
@pytest.mark.parametrize("kind", [{}, {"transfer": 0.3, "bandwidth": 300.0, "lower": True}])
def test_every_strategy_keeps_pins_and_gives_a_plan(
    strategy: type[Strategy], kind: dict[str, float]
) -> None:
    problem = random_problem(1, units=18, **kind)  # type: ignore[arg-type]
    problem = replace(problem, pinned=np.where(np.arange(18) % 5 == 0, 2, -1))
    plan = check_assignment(problem, strategy().place(problem, rng()), strategy.name)
    assert (
        plan == check_assignment(problem, strategy().place(problem, rng()), strategy.name)
    ).all()


def test_random_deals_equal_numbers() -> None:
    problem = random_problem(1, units=18)
    plan = Random().place(problem, rng())
    assert sorted(np.bincount(plan)) == [4, 4, 5, 5]
    assert (plan != Random().place(problem, np.random.default_rng(1))).any()


def chain_problem() -> Problem:
    operators = [
        AbstractOperator(f"{name}{at}", (f"{name}{at - 1}" if at else name,), 1.0)
        for name in "AB"
        for at in range(3)
    ]
    return placement_problem(network_of(operators))


def test_connected_keeps_chains_together() -> None:
    problem = chain_problem()
    plan = Connected().place(problem, rng())
    assert plan.tolist() == [0, 0, 0, 1, 1, 1]
    assert not len(cut_arcs(problem, plan))


def test_largest_load_first_balances_typical_rates() -> None:
    problem = random_problem(3, units=200)
    loads = problem.rows @ problem.rates
    plan = LargestLoadFirst().place(problem, rng())
    relative = np.bincount(plan, loads) / problem.capacities
    assert relative.max() / relative.min() < 1.03


def test_max_rate_balances_greatest_rates() -> None:
    problem = random_problem(3, units=200)
    problem = replace(problem, peaks=problem.rates * np.array([1.0, 10.0, 1.0]))
    loads = problem.rows @ problem.peaks
    relative = np.bincount(MaxRate().place(problem, rng()), loads) / problem.capacities
    assert relative.max() / relative.min() < 1.03


def test_first_fit_fills_the_first_nodes() -> None:
    problem = replace(random_problem(3, units=30, nodes=8), rates=np.full(3, 0.1))
    used = set(FirstFit().place(problem, rng()).tolist())
    assert used == set(range(len(used))) and len(used) < 8


def test_packing_prefers_neighbours_and_never_overfills_while_there_is_room() -> None:
    problem = random_problem(3, units=60, nodes=6, equal=True)
    problem = replace(problem, rates=problem.rates * 0.5)
    plan = Packing().place(problem, rng())
    loads = np.bincount(plan, problem.rows @ problem.rates, minlength=6)
    assert (loads <= problem.capacities).all()
    assert len(cut_arcs(problem, plan)) < len(cut_arcs(problem, Random().place(problem, rng())))


def test_rod_beats_them_all_on_average() -> None:
    """The source's claim, on a small scale; the studies measure it."""
    volumes: dict[str, list[float]] = {}
    for seed in range(8):
        problem = random_problem(seed, units=60, nodes=5, equal=True)
        for strategy in (LargestLoadFirst, Connected, Random, FirstFit, Packing):
            found = judge_assignment(
                problem, strategy().place(problem, np.random.default_rng(seed))
            ).volume
            assert found is not None
            volumes.setdefault(strategy.name, []).append(found.ratio)
        ours = judge_assignment(problem, rod(problem)).volume
        assert ours is not None
        volumes.setdefault("rod", []).append(ours.ratio)
    means = {name: np.mean(found) for name, found in volumes.items()}
    assert max(means, key=lambda name: means[name]) == "rod"
