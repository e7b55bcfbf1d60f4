"""What nodes pay for their first unit of some kind: by its definition, and in planners."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws import tried
from load.abstract_networks import random_assignment, random_problem
from penstock.errors import InputError
from penstock.load.feasible import fixed_shares, node_coefficients, seen_rows
from penstock.load.linear import Opening
from penstock.load.problem import Problem, placement_problem
from penstock.load.volume import directions, volume
from penstock.model.abstract import (
    AbstractInput,
    AbstractNetwork,
    AbstractNode,
    AbstractOpening,
    AbstractOperator,
)
from penstock.place.clustering import clustered_rod
from penstock.place.exhaustive import exhaustive
from penstock.place.local_search import local_search
from penstock.place.rod import rod
from penstock.place.search_state import State, search_of


def opened(problem: Problem, seed: int, size: float) -> Problem:
    """The problem with openings for random units: ``size`` is what all of them use of all CPU."""
    rng = np.random.default_rng(seed)
    units, _, width = problem.size
    count = int(rng.integers(1, 4))
    share = size * problem.capacity / count
    openings = tuple(
        Opening(
            rng.random(width) * problem.totals * size,
            float(share * rng.random()),
            np.unique(rng.integers(0, units, int(rng.integers(1, units + 1)))),
        )
        for _ in range(count)
    )
    return replace(problem, openings=openings)


CASES = (st.integers(0, 10_000), st.integers(2, 4))


@given(*CASES)
@tried(30)
def test_loads_are_those_of_the_definition(seed: int, width: int) -> None:
    problem = opened(random_problem(seed, width=width), seed, 0.05)
    plan = random_assignment(problem, seed)
    loads, fixed = np.zeros((len(problem.nodes), width)), np.zeros(len(problem.nodes))
    for node in range(len(problem.nodes)):
        here = set(np.flatnonzero(plan == node).tolist())
        for unit in here:
            loads[node] += problem.rows[unit]
            fixed[node] += problem.fixed[unit]
        for opening in problem.openings:
            if here & set(opening.units.tolist()):
                loads[node] += opening.row
                fixed[node] += opening.fixed
    without_arcs = replace(problem, arcs=type(problem.arcs)(*(one[:0] for one in (
        problem.arcs.sources, problem.arcs.targets, problem.arcs.cpu, problem.arcs.bytes
    ))))  # fmt: skip
    assert node_coefficients(without_arcs, plan) == pytest.approx(loads)
    assert fixed_shares(problem, plan) * problem.capacities == pytest.approx(fixed)


@given(*CASES)
@tried(15)
def test_openings_that_cost_nothing_change_no_plan(seed: int, width: int) -> None:
    plain = random_problem(seed, width=width)
    free = opened(plain, seed, 0.0)
    assert rod(free).tolist() == rod(plain).tolist()
    assert clustered_rod(free).tolist() == clustered_rod(plain).tolist()
    searched = [local_search(problem, 2e4, lambda: False).tolist() for problem in (free, plain)]
    assert searched[0] == searched[1]


@given(*CASES)
@tried(15)
def test_a_search_keeps_count_of_what_is_open(seed: int, width: int) -> None:
    """After every step its volume is that of the plan measured anew."""
    problem = opened(random_problem(seed, width=width), seed, 0.05)
    points = directions(width, 5)[0].reshape(-1, width)
    search = search_of(problem, points)
    state = State(search, random_assignment(problem, seed))
    for unit in range(problem.size[0]):
        before = state.total
        state.improve(unit, 10_000)
        assert state.total >= before
        assert State(search, state.plan).total == state.total
        rows = seen_rows(problem, state.plan)
        measured = volume(rows, np.stack([points, points])) if rows is not None else None
        if measured is not None and width > 2:  # else exact, not along these directions
            assert state.volume == pytest.approx(measured.ratio)


def bundled(members: int, opening: float, nodes: int = 3) -> Problem:
    """Two streams with members that share rounds, on nodes that could carry all of them."""
    operators = tuple(
        AbstractOperator(f"o{at}", (f"I{at % 2}",), 0.001, fixed_cpu=0.001) for at in range(members)
    )
    openings = tuple(
        AbstractOpening(f"round {stream}", tuple(o.name for o in operators[stream::2]),
                        f"I{stream}", opening, 0.0001)
        for stream in range(2)
    )  # fmt: skip
    return placement_problem(
        AbstractNetwork(
            (AbstractInput("I0"), AbstractInput("I1")),
            operators,
            tuple(AbstractNode(f"n{at}") for at in range(nodes)),
            openings=openings,
        )
    )


def test_large_openings_keep_members_together() -> None:
    """Rounds of 0.6 core: a node that has members of both streams can carry nothing at all."""
    problem = bundled(8, 0.6, nodes=2)
    for plan in (rod(problem), local_search(problem, 1e5, lambda: False), exhaustive(problem)):
        assert set(plan[0::2].tolist()) != set(plan[1::2].tolist())
        assert len(set(plan[0::2].tolist())) == len(set(plan[1::2].tolist())) == 1
        assert fixed_shares(problem, plan) == pytest.approx([0.604, 0.604])


def test_clusters_of_what_shares_an_opening_are_tried() -> None:
    """ROD opens both streams on both nodes: a unit is farther from full on the emptier one."""
    problem = bundled(8, 0.4, nodes=2)
    for plan in (clustered_rod(problem), exhaustive(problem)):
        assert fixed_shares(problem, plan) == pytest.approx([0.404, 0.404])
    pinned = replace(problem, pinned=np.array([1, -1, 0, -1, -1, -1, -1, -1]))
    assert clustered_rod(pinned)[[0, 2]].tolist() == [1, 0]


def test_the_search_and_the_exhaustive_one_are_no_worse_than_rod() -> None:
    problem = bundled(8, 0.2, nodes=2)

    def of(plan: np.ndarray) -> float:
        rows = seen_rows(problem, plan)
        found = None if rows is None else volume(rows)
        return 0.0 if found is None else found.ratio

    first = of(rod(problem))
    assert of(local_search(problem, 1e5, lambda: False)) >= first
    assert of(exhaustive(problem)) >= of(local_search(problem, 1e5, lambda: False)) - 1e-6


def test_an_opening_names_what_is_there() -> None:
    operators = (AbstractOperator("o", ("I",), 0.1),)
    made = (AbstractInput("I"),), operators, (AbstractNode("n"),)
    for opening in (AbstractOpening("r", ("p",), "I"), AbstractOpening("r", ("o",), "J")):
        with pytest.raises(InputError, match="which is not there"):
            AbstractNetwork(*made, openings=(opening,))
    with pytest.raises(InputError, match="for no operator"):
        AbstractOpening("r", (), "I")
