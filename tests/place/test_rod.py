"""ROD: equal to the source's loops, deterministic, right where the answer is known."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws import tried
from load.abstract_networks import network_of, random_problem, worked_example
from penstock.bench.plain_rod import plain_rod
from penstock.load.feasible import weights
from penstock.load.problem import placement_problem
from penstock.load.volume import polygon_volume
from penstock.model.abstract import AbstractOperator
from penstock.place.rod import rod


@given(
    st.integers(0, 100_000),
    st.integers(4, 40),
    st.integers(1, 8),
    st.integers(1, 4),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0.0, 0.05, 0.5, 0.95]),
)
@tried(120)
def test_equal_to_the_source_s_loops(
    seed: int,
    units: int,
    nodes: int,
    width: int,
    arcs: bool,
    lower: bool,
    equal: bool,
    fixed: float,
) -> None:
    problem = random_problem(
        seed, units, nodes, width, arcs=arcs, lower=lower, equal=equal, fixed=fixed
    )
    assert rod(problem).tolist() == plain_rod(problem)


def test_what_only_rounding_tells_apart_is_the_same() -> None:
    # One operator an input: wherever the others are, its weight is the number of nodes.
    problem = random_problem(1637, 4, 2, 4, arcs=False, lower=False, equal=True)
    assert rod(problem).tolist() == plain_rod(problem) == [0, 1, 0, 1]


@given(st.integers(0, 100_000), st.sampled_from([0.0, 0.4]))
@tried(30)
def test_pinned_units_stay_and_count(seed: int, fixed: float) -> None:
    problem = random_problem(seed, fixed=fixed)
    rng = np.random.default_rng(seed)
    pinned = np.where(rng.random(20) < 0.4, rng.integers(0, 4, 20), -1)
    problem = replace(problem, pinned=pinned)
    plan = rod(problem)
    assert (plan[pinned >= 0] == pinned[pinned >= 0]).all()
    assert plan.tolist() == plain_rod(problem)


def test_the_worked_example_gets_the_best_plan() -> None:
    problem = placement_problem(worked_example())
    areas = [
        polygon_volume(weights(problem, np.array([0, one, two, three])))
        for one in (0, 1)
        for two in (0, 1)
        for three in (0, 1)
    ]
    assert polygon_volume(weights(problem, rod(problem))) == pytest.approx(max(areas))


def test_identical_units_end_up_evenly_however_sums_round() -> None:
    """Ten tenths on each of ten nodes: the last of them must still count as within the ideal."""
    operators = [AbstractOperator(f"o{at}", ("A",), 0.1) for at in range(100)]
    problem = placement_problem(network_of(operators, "A", nodes=10))
    assert np.bincount(rod(problem)).tolist() == [10] * 10


def test_among_harmless_nodes_the_neighbours_is_chosen() -> None:
    operators = [
        AbstractOperator("a", ("A",), 0.3),
        AbstractOperator("b", ("A",), 0.3),
        AbstractOperator("c", ("b",), 0.2),
        AbstractOperator("d", ("a",), 0.2),
    ]
    problem = placement_problem(network_of(operators, "A"))
    assert rod(problem).tolist() == [0, 1, 1, 0]


def test_larger_nodes_get_more() -> None:
    problem = random_problem(5, units=400, nodes=2, width=2)
    problem = replace(problem, capacities=np.array([1.0, 3.0]))
    assert weights(problem, rod(problem)).max() < 1.05


def test_a_lower_bound_changes_the_plan_for_the_better() -> None:
    from penstock.load.feasible import anchored
    from penstock.load.volume import polytope_volume

    gains = []
    for seed in range(40):
        problem = random_problem(seed, units=9, nodes=3, lower=True)
        aware = anchored(weights(problem, rod(problem)), problem.lower_point)
        blind_plan = rod(problem.without_lower_bound())
        blind = anchored(weights(problem, blind_plan), problem.lower_point)
        sizes = [0.0 if rows is None else polytope_volume(rows) for rows in (aware, blind)]
        gains.append(sizes[0] - sizes[1])
    assert np.mean(gains) > 0.01
