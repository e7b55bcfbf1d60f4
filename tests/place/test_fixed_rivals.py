"""Fixed loads and every strategy: those that go by one rate point, and files that have none."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws import tried
from load.abstract_networks import random_problem
from penstock.balance.global_correlation import global_assignment
from penstock.lang.abstract import parse_abstract
from penstock.load.problem import Problem, placement_problem
from penstock.place.connected import Connected
from penstock.place.correlated import GlobalCorrelation
from penstock.place.exhaustive import Exhaustive
from penstock.place.first_fit import FirstFit
from penstock.place.llf import LargestLoadFirst
from penstock.place.local_search import LocalSearch
from penstock.place.max_rate import MaxRate
from penstock.place.packing import Packing
from penstock.place.plan import make_plan
from penstock.place.random_plan import Random
from penstock.place.registry import OWN
from penstock.place.rod import rod
from penstock.place.strategy import Strategy, check_assignment

AT_ONE_POINT = (LargestLoadFirst, MaxRate, Connected, FirstFit, Packing, Random)


def as_a_variable(problem: Problem) -> Problem:
    """The same, with fixed loads written as those of one more stream whose rate is always 1."""
    return replace(
        problem,
        rows=np.column_stack((problem.rows, problem.fixed)),
        fixed=np.zeros(len(problem.rows)),
        arcs=replace(
            problem.arcs,
            cpu=np.column_stack((problem.arcs.cpu, np.zeros(len(problem.arcs)))),
            bytes=np.column_stack((problem.arcs.bytes, np.zeros(len(problem.arcs)))),
        ),
        variables=(*problem.variables, "always"),
        lower=np.append(problem.lower, 0.0),
        rates=np.append(problem.rates, 1.0),
        peaks=np.append(problem.peaks, 1.0),
    )


@given(st.integers(0, 10_000), st.sampled_from([0.1, 0.5, 0.9]), st.sampled_from(AT_ONE_POINT))
@tried(80)
def test_a_fixed_load_is_one_of_a_stream_that_never_changes(
    seed: int, fixed: float, strategy: type[Strategy]
) -> None:
    problem = random_problem(seed, fixed=fixed)
    plan = strategy().place(problem, np.random.default_rng(seed))
    same = strategy().place(as_a_variable(problem), np.random.default_rng(seed))
    assert plan.tolist() == same.tolist()


@given(st.integers(0, 10_000))
@tried(10)
def test_correlation_sees_fixed_loads_in_every_sample(seed: int) -> None:
    problem = random_problem(seed, fixed=0.4)
    plan = GlobalCorrelation().place(problem, np.random.default_rng(seed))
    rates = np.random.default_rng(seed).uniform(0.0, 2.0, (3, 20)) * problem.rates[:, np.newaxis]
    samples = np.array([problem.loads_at(rates[:, at]) for at in range(20)]).T
    assert plan.tolist() == global_assignment(samples, problem.capacities).tolist()


@pytest.mark.parametrize("strategy", [one for one in OWN if one is not Exhaustive])
def test_every_strategy_keeps_pins(strategy: type[Strategy]) -> None:
    problem = random_problem(1, units=18, transfer=0.3, bandwidth=300.0, lower=True, fixed=0.3)
    problem = replace(problem, pinned=np.where(np.arange(18) % 5 == 0, 2, -1))
    check_assignment(problem, strategy().place(problem, np.random.default_rng(0)), strategy.name)


def test_rod_spreads_fixed_loads_that_would_fill_one_node() -> None:
    """Eight equal fragments that cost next to nothing a row, on four nodes: two on each."""
    text = {
        "inputs": {"A": {"rate": 1.0}},
        "operators": {f"o{at}": {"inputs": ["A"], "cost": 1e-6, "fixed": 0.3} for at in range(8)},
        "nodes": {f"n{at}": {} for at in range(4)},
    }
    problem = placement_problem(parse_abstract(json.dumps(text), "even.json"))
    assert np.bincount(rod(problem)).tolist() == [2, 2, 2, 2]


@st.composite
def files(draw: st.DrawFn) -> dict[str, dict[str, dict[str, object]]]:
    """Small abstract networks as people write them, without fixed loads."""
    inputs = draw(st.integers(1, 3))
    number = st.floats(0.001, 0.02)
    operators: dict[str, dict[str, object]] = {}
    for at in range(draw(st.integers(inputs, 9))):
        all_inputs = [f"I{one}" for one in range(inputs)]
        read = draw(st.sampled_from([*all_inputs, *operators])) if at >= inputs else f"I{at}"
        operators[f"o{at}"] = {"inputs": [read], "cost": draw(number), "selectivity": 0.5}
    return {
        "inputs": {f"I{one}": {"rate": draw(st.floats(1.0, 9.0))} for one in range(inputs)},
        "operators": operators,
        "nodes": {f"n{at}": {"cpu": draw(st.sampled_from([1, 2]))} for at in range(3)},
        "network": {"transfer_cost": draw(st.sampled_from([0.0, 0.002]))},
    }


@given(files(), st.sampled_from([one for one in OWN if one is not Exhaustive]))
@tried(40)
def test_a_file_with_fixed_0_gives_the_same_plan_to_the_byte(
    text: dict[str, dict[str, dict[str, object]]], strategy: type[Strategy]
) -> None:
    chosen = LocalSearch(effort=1e5) if strategy is LocalSearch else strategy()
    zeros = {name: {**one, "fixed": 0} for name, one in text["operators"].items()}
    seen = []
    for written in (text, {**text, "operators": zeros}):
        problem = placement_problem(parse_abstract(json.dumps(written), "a.json"))
        plan = make_plan(problem, chosen, lambda: 0.0, seed=1)
        seen.append((plan.assignment.tobytes(), repr(plan.quality)))
    assert seen[0] == seen[1]
