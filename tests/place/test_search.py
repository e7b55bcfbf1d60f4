"""Local and exhaustive search: right about volumes, never worse than ROD, the optimum found."""

import itertools
from dataclasses import replace
from heapq import nlargest

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws import tried
from load.abstract_networks import random_assignment, random_problem
from penstock.errors import InputError
from penstock.load.arrays import Floats, Ints
from penstock.load.feasible import seen_rows, weights
from penstock.load.problem import Problem
from penstock.load.volume import directions, polytope_volume, volume
from penstock.place.exhaustive import Exhaustive, exhaustive
from penstock.place.local_search import LocalSearch, local_search
from penstock.place.rod import rod
from penstock.place.search_state import State, search_of


def exact(problem: Problem, plan: Ints) -> float:
    rows = seen_rows(problem, plan)
    return 0.0 if rows is None else polytope_volume(rows)


def along(problem: Problem, plan: Ints, points: Floats) -> float:
    """The volume by the plain formula."""
    rows = seen_rows(problem, plan)
    if rows is None:
        return 0.0
    return float(np.mean(np.maximum((rows @ points.T).max(axis=0), 1.0) ** -points.shape[1]))


KINDS = st.sampled_from(
    [
        {},
        {"transfer": 0.5},
        {"bandwidth": 400.0},
        {"lower": True},
        {"transfer": 0.3, "lower": True},
        {"fixed": 0.3},
        {"fixed": 0.3, "transfer": 0.3, "bandwidth": 400.0},
        {"fixed": 0.2, "lower": True},
    ]
)


@given(st.integers(0, 10_000), KINDS)
@tried(40)
def test_a_step_is_the_best_move_or_swap(seed: int, kind: dict[str, float]) -> None:
    problem = random_problem(seed, units=9, nodes=3, **kind)  # type: ignore[arg-type]
    points = np.ascontiguousarray(directions(3, 5)[0])
    start = random_assignment(problem, seed)
    state = State(search_of(problem, points), start)
    assert state.volume == pytest.approx(along(problem, start, points))
    state.improve(0, 10_000)
    assert state.volume == pytest.approx(along(problem, state.plan, points))
    changes = [start]
    for node in range(3):
        changes.append(np.where(np.arange(9) == 0, node, start))
    for other in range(1, 9):
        swapped = start.copy()
        swapped[[0, other]] = start[[other, 0]]
        changes.append(swapped)
    best = max(along(problem, plan, points) for plan in changes)
    assert state.volume == pytest.approx(best)


@given(st.integers(0, 10_000), KINDS)
@tried(10)
def test_never_worse_than_rod_and_always_the_same(seed: int, kind: dict[str, float]) -> None:
    problem = random_problem(seed, units=15, **kind)  # type: ignore[arg-type]
    found = local_search(problem, 1e5, lambda: False)
    assert exact(problem, found) >= exact(problem, rod(problem)) - 1e-3
    assert (found == local_search(problem, 1e5, lambda: False)).all()


def test_pinned_units_are_not_searched() -> None:
    problem = random_problem(2, units=12)
    pinned = np.where(np.arange(12) % 3 == 0, 1, -1)
    problem = replace(problem, pinned=pinned)
    found = local_search(problem, 1e6, lambda: False)
    assert (found[::3] == 1).all()


def test_a_clock_can_end_it() -> None:
    problem = random_problem(2, units=60)
    ticks = itertools.count()
    strategy = LocalSearch(1e12, limit_s=50, clock=lambda: float(next(ticks)))
    found = strategy.place(problem, np.random.default_rng(0))
    assert next(ticks) < 100
    assert exact(problem, found) >= exact(problem, rod(problem)) - 1e-3


def test_many_variables_are_left_to_rod() -> None:
    problem = random_problem(1, units=60, width=30)
    assert (local_search(problem, 1e6, lambda: False) == rod(problem)).all()
    assert volume(weights(problem, rod(problem))) is None


@pytest.mark.parametrize(
    "kind", [{"equal": True}, {}, {"transfer": 0.4}, {"bandwidth": 300.0}, {"fixed": 0.3}]
)
def test_exhaustive_search_finds_the_optimum(kind: dict[str, float]) -> None:
    for seed in range(3):
        problem = random_problem(seed, units=5, nodes=3, width=2, **kind)  # type: ignore[arg-type]
        plans = map(np.array, itertools.product(range(3), repeat=5))
        points = np.ascontiguousarray(directions(2, 6)[0])
        largest = nlargest(50, plans, key=lambda plan: along(problem, plan, points))
        best = max(exact(problem, plan) for plan in largest)
        assert exact(problem, exhaustive(problem)) == pytest.approx(best, rel=2e-3)


def test_exhaustive_search_respects_pins() -> None:
    problem = replace(random_problem(1, units=5, nodes=2, width=2), pinned=np.array([1] * 4 + [-1]))
    assert (exhaustive(problem)[:4] == 1).all()


def test_too_many_plans() -> None:
    with pytest.raises(InputError) as raised:
        Exhaustive().place(random_problem(1, units=40), np.random.default_rng(0))
    assert str(raised.value) == (
        "1e+24 plans with 3 variables are too many to try. Exhaustive search is for up to "
        "20,000,000 plans and 4 variables; local-search comes close to it."
    )
