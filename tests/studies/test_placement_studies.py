"""The placement studies: their parts, and that processes change nothing."""

from importlib import import_module

import numpy as np
import pytest

from penstock.load.feasible import weights
from penstock.place.rod import rod
from penstock.studies import clustering, lower_bounds, random_matrices, resilience, small_optimum
from penstock.studies.placement_runs import RIVALS
from penstock.studies.random_trees import Trees, tree_network, tree_problem
from penstock.studies.registry import STUDIES
from penstock.studies.running import Processes, one_by_one
from penstock.studies.seeds import rng_of


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_is_a_module_with_one_function(name: str) -> None:
    assert callable(import_module(f"penstock.studies.{name.replace('-', '_')}").study)


def test_trees_are_of_equal_size_and_connected() -> None:
    network = tree_network(Trees(52, inputs=5), rng_of("trees", 1))
    sizes = [
        sum(operator.name.startswith(f"t{tree}o") for operator in network.operators)
        for tree in range(5)
    ]
    assert sizes == [11, 11, 10, 10, 10]
    assert max(len(network.readers[operator.name]) for operator in network.operators) <= 3
    assert all(1e-4 <= operator.cost_s <= 1e-3 for operator in network.operators)


def test_link_ratio_is_that_of_a_single_operator() -> None:
    """One operator with one input and one output, alone on its node: link share over CPU share."""
    problem = tree_problem(Trees(3, inputs=1, nodes=3, alike=True, link_ratio=2.0), rng_of("t", 3))
    plan = np.arange(3)
    rows = weights(problem, plan)
    ends = np.bincount(np.concatenate((problem.arcs.sources, problem.arcs.targets)), minlength=3)
    middle = int(np.argmax(ends))
    assert rows[3 + middle, 0] / rows[middle, 0] == pytest.approx(2.0 * ends[middle] / 2)


@pytest.mark.system
def test_another_process_changes_nothing() -> None:
    alone = one_by_one(random_matrices.measure, [0, 1], lambda what: None)
    assert Processes(1)(random_matrices.measure, [1], lambda what: None) == alone[1:]
    assert alone[0] != alone[1]


def test_one_point_of_resilience() -> None:
    found = {one["algorithm"]: one["ratio"] for one in resilience.measure((50, 0))}
    assert set(found) == {"local-search", "rod", *RIVALS}
    assert found["local-search"] >= found["rod"] > found["connected"]


def test_one_point_of_the_small_cases() -> None:
    found = small_optimum.measure(0)
    assert max(one["to_optimum"] for one in found) <= 1.0
    assert len(found) == 10 * (2 + len(RIVALS))


def test_one_point_of_clustering() -> None:
    found = clustering.measure(("communication", 50, 1.0, 0))
    assert found["over_plain"] >= 1.0
    free = clustering.measure(("communication", 50, 0.0, 0))
    assert free["over_plain"] == 1.0


def test_penalties_are_counted_and_exact() -> None:
    problem = tree_problem(Trees(50), rng_of("penalty", 1))
    low = np.full(5, 0.08)
    found = lower_bounds._penalties(problem, 50, low, {"origin": np.zeros(5), "same": low})
    counted = {(one["what"], one["measure"]): one["penalty"] for one in found}
    assert counted["same", "counted"] == counted["same", "exact"] == 0.0
    difference = counted["origin", "counted"] - counted["origin", "exact"]  # type: ignore[operator]
    assert abs(difference) < 0.1
    assert (rod(problem) >= 0).all()
