"""Fixed loads: feasible sets against their definition, and nothing changed where there are none."""

from dataclasses import replace
from math import factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws import tried
from load.abstract_networks import network_of, random_assignment, random_problem
from penstock.errors import InputError
from penstock.load.arrays import Floats, Ints
from penstock.load.feasible import axis_product, plane_distance, seen_rows
from penstock.load.linear import load_model
from penstock.load.problem import Problem, placement_problem
from penstock.load.slices import main_axes, plan_slice, slice_point
from penstock.load.volume import ball_bound, polygon_volume, polytope_volume, volume
from penstock.model.abstract import AbstractInput, AbstractNetwork, AbstractNode, AbstractOperator
from penstock.place.plan import judge_assignment, misfits


def definition(problem: Problem, plan: Ints) -> tuple[Floats, Floats]:
    """A L and C - A c, with the plan as a matrix of zeros and ones."""
    units, nodes, _ = problem.size
    chosen = np.zeros((nodes, units))
    chosen[plan, np.arange(units)] = 1.0
    return chosen @ problem.rows, problem.capacities - chosen @ problem.fixed


def ideal_volume(problem: Problem) -> float:
    """Of { R >= lower: l R <= C - c }."""
    totals = problem.rows.sum(axis=0)
    left = problem.capacities.sum() - problem.fixed.sum() - totals @ problem.lower
    return float(left ** len(totals) / factorial(len(totals)) / totals.prod())


def counted_ratio(problem: Problem, plan: Ints, seed: int, points: int = 20_000) -> float:
    """The part of the ideal set that is feasible, by counting points in the space of rates."""
    loads, limits = definition(problem, plan)
    totals = problem.rows.sum(axis=0)
    left = problem.capacities.sum() - problem.fixed.sum() - totals @ problem.lower
    rng = np.random.default_rng(seed)
    parts = rng.dirichlet(np.ones(len(totals) + 1), points)[:, :-1]
    rates = problem.lower + left * parts / totals
    return float((rates @ loads.T <= limits).all(axis=1).mean())


def polygon_area(loads: Floats, limits: Floats) -> float:
    """The exact area of { R >= 0: loads R <= limits } in two dimensions, corner by corner.

    Corners are the intersections of two borders that lie inside of all half-planes.
    """
    borders = np.vstack((loads, -np.eye(2)))
    ends = np.append(limits, np.zeros(2))
    corners = []
    for one in range(len(borders)):
        for two in range(one):
            pair = borders[[one, two]]
            if abs(np.linalg.det(pair)) > 1e-12:
                corner = np.linalg.solve(pair, ends[[one, two]])
                if (borders @ corner <= ends + 1e-9).all():
                    corners.append(corner)
    if len(corners) < 3:
        return 0.0
    found = np.array(corners)
    away = found - found.mean(axis=0)
    x, y = found[np.argsort(np.arctan2(away[:, 1], away[:, 0]))].T
    return 0.5 * abs(float(x @ np.roll(y, -1) - y @ np.roll(x, -1)))


def found_ratio(problem: Problem, plan: Ints) -> float:
    rows = seen_rows(problem, plan)
    return 0.0 if rows is None else polytope_volume(rows)


@given(st.integers(0, 10_000), st.integers(1, 4), st.sampled_from([0.1, 0.5]), st.booleans())
@tried(40)
def test_the_volume_is_that_of_the_definition(
    seed: int, width: int, fixed: float, lower: bool
) -> None:
    problem = random_problem(seed, units=9, nodes=3, width=width, fixed=fixed, lower=lower)
    plan = random_assignment(problem, seed)
    assert found_ratio(problem, plan) == pytest.approx(counted_ratio(problem, plan, seed), abs=0.02)


@given(st.integers(0, 10_000), st.sampled_from([0.05, 0.3, 0.6]))
@tried(60)
def test_two_variables_exactly(seed: int, fixed: float) -> None:
    problem = random_problem(seed, units=8, nodes=3, width=2, fixed=fixed)
    plan = random_assignment(problem, seed)
    loads, limits = definition(problem, plan)
    exact = polygon_area(loads, limits) / ideal_volume(problem) if (limits > 0).all() else 0.0
    rows = seen_rows(problem, plan)
    assert (0.0 if rows is None else polygon_volume(rows)) == pytest.approx(exact, abs=1e-9)


@given(st.integers(0, 10_000), st.sampled_from([0.1, 0.5]))
@tried(30)
def test_the_distance_is_that_of_the_nearest_hyperplane(seed: int, fixed: float) -> None:
    """In the space where every stream alone fills the ideal plan at 1."""
    problem = random_problem(seed, units=12, fixed=fixed)
    plan = random_assignment(problem, seed)
    loads, limits = definition(problem, plan)
    rows = seen_rows(problem, plan)
    if (limits <= 0).any():
        assert rows is None
        return
    left = problem.capacities.sum() - problem.fixed.sum()
    scaled = loads * (left / problem.rows.sum(axis=0))
    norms = np.linalg.norm(scaled, axis=1)
    nearest = min(limit / norm for limit, norm in zip(limits, norms, strict=True) if norm)
    assert rows is not None
    assert plane_distance(rows) == pytest.approx(nearest / (1 / np.sqrt(3)))


@given(st.integers(0, 10_000), st.sampled_from([0.1, 0.6]))
@tried(30)
def test_no_plan_is_larger_than_the_ideal_and_both_bounds_hold(seed: int, fixed: float) -> None:
    problem = random_problem(seed, fixed=fixed)
    rows = seen_rows(problem, random_assignment(problem, seed))
    if rows is not None:
        exact = polytope_volume(rows)
        assert exact <= 1 + 1e-9
        assert axis_product(rows) <= exact + 1e-9
        assert ball_bound(plane_distance(rows), 3) <= exact + 1e-9


def test_the_ideal_plan_shares_everything_out_in_proportion() -> None:
    """Nodes of 1 and 2 cores, each with its part of the stream and of the fixed load."""
    operators = [
        AbstractOperator("a", ("A",), 0.1, fixed_cpu=0.2),
        AbstractOperator("b", ("A",), 0.2, fixed_cpu=0.4),
    ]
    network = AbstractNetwork(
        (AbstractInput("A"),), tuple(operators), (AbstractNode("n1"), AbstractNode("n2", 2.0))
    )
    quality = judge_assignment(placement_problem(network), np.array([0, 1]))
    assert quality.volume is not None and quality.volume.ratio == pytest.approx(1.0)
    assert (quality.plane_distance, quality.axis_product) == (pytest.approx(1), pytest.approx(1))
    assert quality.fixed == (pytest.approx(0.2), pytest.approx(0.2))


@given(st.integers(0, 10_000), st.sampled_from([0.1, 0.6]))
@tried(30)
def test_fixed_loads_are_rows_where_the_ideal_plan_is_full(seed: int, fixed: float) -> None:
    problem = random_problem(seed, fixed=fixed)
    totals, left = problem.rows.sum(axis=0), problem.capacities.sum() - problem.fixed.sum()
    rates = np.random.default_rng(seed).dirichlet(np.ones(3)) * left / totals
    assert problem.full_rows @ rates == pytest.approx(problem.rows @ rates + problem.fixed)
    assert problem.loads_at(rates) == pytest.approx(problem.rows @ rates + problem.fixed)


def test_slices_are_feasible() -> None:
    for seed in range(10):
        problem = random_problem(seed, width=4, lower=seed % 2 == 1, fixed=0.3)
        plan = random_assignment(problem, seed)
        loads, limits = definition(problem, plan)
        axes = main_axes(problem)
        part = plan_slice(problem, plan, axes)
        rates = slice_point(problem, axes) * problem.capacity / problem.totals
        for corner in part.feasible:
            rates[list(axes)] = corner
            assert (loads @ rates <= limits + 1e-9).all()
        rates[list(axes)] = part.ideal[1]
        assert problem.loads_at(rates).sum() == pytest.approx(problem.capacity)


def test_a_full_node_that_no_stream_reaches_limits_nothing() -> None:
    operators = [
        AbstractOperator("a", ("A",), 0.1),
        AbstractOperator("b", ("a",), 0.0, fixed_cpu=1.0),
    ]
    problem = placement_problem(network_of(operators, "A"))
    quality = judge_assignment(problem, np.array([0, 1]))
    assert quality.volume is not None and quality.volume.ratio == pytest.approx(1.0)
    assert judge_assignment(problem, np.array([0, 0])).volume == volume(np.array([[np.inf]]))


def test_a_plan_whose_fixed_loads_overfill_a_node_is_infeasible_and_says_so() -> None:
    problem = random_problem(1, units=6, nodes=2, fixed=0.8, equal=True)
    problem = replace(problem, rates=problem.rates * 0.01)
    quality = judge_assignment(problem, np.zeros(6, dtype=np.int64))
    assert quality.volume is not None and quality.volume.ratio == 0.0
    assert quality.notes[0] == (
        "full of fixed loads alone: n0 (1.60 of its CPU): nothing is feasible"
    )


def test_fixed_loads_count_where_units_fit_nowhere() -> None:
    operators = [AbstractOperator("a", ("A",), 0.01, fixed_cpu=1.1)]
    problem = placement_problem(network_of(operators, "A"))
    assert misfits(problem) == ("fits on no node at typical rates: a (needs 1.20 of 1)",)


@pytest.mark.parametrize(
    ("fixed", "lower", "text"),
    [
        (2.5, 0.0, "the fixed loads alone need 1.25 times the CPU there is. Add nodes or larger"),
        (
            1.5,
            6.0,
            "the lower bounds of the rates and the fixed loads together need 1.05 times the CPU "
            "there is. Add nodes or lower the bounds.",
        ),
    ],
)
def test_more_than_all_nodes_have(fixed: float, lower: float, text: str) -> None:
    network = AbstractNetwork(
        (AbstractInput("A", lower_per_s=lower),),
        (AbstractOperator("a", ("A",), 0.1, fixed_cpu=fixed),),
        (AbstractNode("n1"), AbstractNode("n2")),
    )
    with pytest.raises(InputError) as raised:
        placement_problem(network)
    assert str(raised.value).startswith(text)


def test_fixed_loads_alone_are_no_network_to_place() -> None:
    with pytest.raises(InputError) as raised:
        load_model(network_of([AbstractOperator("a", ("A",), 0, fixed_cpu=0.1)], "A"))
    assert str(raised.value) == (
        "no operator makes any load that grows with a rate. Give at least one a cost above zero."
    )


def test_unknown_rates_use_half_of_what_fixed_loads_leave() -> None:
    network = AbstractNetwork(
        (AbstractInput("A"),),
        (AbstractOperator("a", ("A",), 0.1, fixed_cpu=0.5),),
        (AbstractNode("n1"),),
    )
    assert placement_problem(network).rates.tolist() == [2.5]
