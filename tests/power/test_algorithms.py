"""The four algorithms against their plain transcription, the optimum and the bound."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws import tried
from penstock.bench.plain.cuts import PlainCuts
from penstock.errors import InputError
from penstock.model.devices import ORGANISATIONS
from penstock.power.bose import bose, bose_steps
from penstock.power.cuts import CutTable, cut_table
from penstock.power.energy import energy_of
from penstock.power.exhaustive import MOST_PLANS, exhaustive, is_small, plans_of
from penstock.power.lower_bound import lower_bound_j
from penstock.power.min_data_cut import min_data_cut
from penstock.power.min_power_cut import min_power_cut
from penstock.power.plan import compare
from penstock.power.problem import PowerProblem
from penstock.power.server_ops import server_ops
from power.problems import busy_problem, busy_problems, problems

_BUSY_PROBLEMS = 200
"""Who stays in front of whom among equally long results shows in one of twenty."""


def joules(table: CutTable, plan: np.ndarray) -> float:
    return energy_of(table, plan).total_j


@tried(50)
@given(problems() | busy_problems())
def test_all_as_in_the_plain_transcription(problem: PowerProblem) -> None:
    table, plain = cut_table(problem), PlainCuts(problem)
    cuts = table.cut_numbers
    assert cuts(server_ops(table)).tolist() == [len(query.operators) for query in problem.queries]
    assert cuts(min_data_cut(table)).tolist() == plain.min_data_cut()
    assert cuts(min_power_cut(table)).tolist() == plain.min_power_cut()
    assert cuts(bose(table)).tolist() == plain.bose()


@tried(50)
@given(problems(most_queries=12), st.sampled_from(ORGANISATIONS))
def test_every_step_changes_the_energy_by_what_it_says(
    problem: PowerProblem, organisation: str
) -> None:
    broadcast = replace(problem.broadcast, organisation=organisation)
    _check_steps(cut_table(replace(problem, broadcast=broadcast)))


@pytest.mark.parametrize("organisation", ORGANISATIONS)
def test_so_does_every_one_of_many_steps(organisation: str) -> None:
    steps = [
        _check_steps(cut_table(busy_problem(seed, organisation))) for seed in range(_BUSY_PROBLEMS)
    ]
    assert max(steps) > 4


def _check_steps(table: CutTable) -> int:
    """Holds every step against the energy computed afresh; how many there are."""
    plan = min_data_cut(table)
    start = before = joules(table, plan)
    steps = bose_steps(table)
    for step in steps:
        assert step.entry > plan[step.query]
        plan[step.query] = step.entry
        after = joules(table, plan)
        assert step.change_j == pytest.approx(after - before, abs=1e-11 * start)
        assert step.change_j <= 1e-12 * start
        before = after
    assert plan.tolist() == bose(table).tolist()
    assert before <= start * (1 + 1e-11)
    return len(steps)


@given(problems() | busy_problems())
def test_with_an_index_it_is_min_power_cut(problem: PowerProblem) -> None:
    indexed = replace(problem.broadcast, organisation="indexed")
    table = cut_table(replace(problem, broadcast=indexed))
    assert bose(table).tolist() == min_power_cut(table).tolist()


@tried(50)
@given(problems(most_queries=4, most_operators=3))
def test_nothing_is_below_the_optimum_and_that_not_below_the_bound(problem: PowerProblem) -> None:
    table = cut_table(problem)
    found = compare(table)
    assert found.lower_bound_j == found.best_first[0].energy.total_j
    assert found.plan_of("exhaustive").energy.total_j == pytest.approx(_least(table), rel=1e-11)
    for plan in found.plans:
        assert plan.energy.total_j >= _least(table) * (1 - 1e-11)
        assert plan.energy.total_j >= found.lower_bound_j
    assert lower_bound_j(table, server_ops(table)) <= _least(table) * (1 + 1e-11)


def _least(table: CutTable) -> float:
    ranges = [range(*pair) for pair in zip(table.starts[:-1], table.starts[1:], strict=True)]
    plans = np.stack(np.meshgrid(*ranges, indexing="ij"), axis=-1).reshape(-1, len(ranges))
    return min(joules(table, plan) for plan in plans)


def test_of_equal_optima_the_one_nearest_the_root() -> None:
    """Three operators that neither cost nor change anything: all cuts are the same."""
    table = _uniform(queries=2, cuts=4)
    for algorithm in (min_data_cut, min_power_cut, bose, exhaustive):
        assert algorithm(table).tolist() == table.roots.tolist()


def _uniform(queries: int, cuts: int) -> CutTable:
    from penstock.model.devices import Broadcast

    return CutTable(
        Broadcast("sorted", 1.0),
        tuple(f"q{at}" for at in range(queries)),
        np.arange(0, queries * cuts + 1, cuts),
        np.zeros(queries, dtype=np.int64),
        np.ones(queries * cuts),
        np.zeros(queries * cuts),
        np.ones(queries),
        np.ones(queries, dtype=np.int64),
    )


def test_too_many_plans_are_refused() -> None:
    table = _uniform(queries=30, cuts=2)
    assert not is_small(table) and plans_of(table) == 2**30
    assert [plan.algorithm for plan in compare(table).plans][-1] == "bose"
    with pytest.raises(InputError, match=rf"1e\+09 plans are too many .* for up to {MOST_PLANS:,}"):
        exhaustive(table)


def test_an_unknown_algorithm() -> None:
    with pytest.raises(
        InputError, match=r"no algorithm boose\. There are server-ops.* mean bose\?"
    ):
        compare(_uniform(2, 2)).plan_of("boose")


def test_the_bound_is_tight_where_there_is_nothing_to_choose() -> None:
    table = _uniform(queries=3, cuts=1)
    assert lower_bound_j(table, table.roots) == pytest.approx(6.0)
