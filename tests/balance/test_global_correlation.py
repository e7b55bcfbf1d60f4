"""The global correlation algorithm: equal to the source's loops, ties included."""

import numpy as np
import pytest
from hypothesis import given

from balance.worlds import series_of, worlds
from laws import tried
from penstock.balance.global_correlation import global_assignment
from penstock.bench.plain.cluster import global_plan
from penstock.bench.plain.pairs import PairsWorld
from penstock.errors import InputError
from penstock.load.correlation import mean_pair_correlation
from penstock.load.series import load_series


@given(worlds(least_nodes=1))
@tried(50)
def test_the_plan_is_that_of_the_plain_transcription(world: PairsWorld) -> None:
    fast = global_assignment(
        series_of(world),
        world.capacities,
        assignment=world.plan,
        movable=world.movable,
    )
    global_plan(world, theta=0.8)
    assert fast.tolist() == world.plan


def test_the_plan_is_that_of_the_plain_transcription_on_chains_with_noise() -> None:
    rng = np.random.default_rng(5)
    for nodes in (2, 5, 12):
        loads = _chains(nodes, rng)
        series = load_series(loads)
        world = PairsWorld(
            series.quanta.tolist(), [-1] * len(loads), [True] * len(loads), [1.0] * nodes
        )
        global_plan(world, theta=0.8)
        assert global_assignment(series, [1.0] * nodes).tolist() == world.plan


def test_nodes_end_up_equally_loaded_and_highly_correlated() -> None:
    loads = _chains(10, np.random.default_rng(2))
    assignment = global_assignment(loads, np.ones(10))
    totals = load_series(loads).totals(assignment, 10)
    assert np.ptp(totals.mean(axis=1)) < 0.1
    assert mean_pair_correlation(totals) > 0.8


def test_a_larger_node_gets_more() -> None:
    loads = _chains(4, np.random.default_rng(3))
    assignment = global_assignment(loads, [1.0, 3.0])
    totals = load_series(loads).totals(assignment, 2).mean(axis=1)
    assert totals[1] / totals[0] == pytest.approx(3.0, rel=0.1)


def test_the_search_ends_when_time_is_up_with_a_complete_plan() -> None:
    loads = _chains(6, np.random.default_rng(4))
    assignment = global_assignment(loads, np.ones(6), out_of_time=lambda: True)
    assert sorted(set(assignment.tolist())) == list(range(6))


def test_an_operator_that_may_not_move_needs_a_node() -> None:
    with pytest.raises(InputError) as error:
        global_assignment([[0.1], [0.2]], [1.0], movable=[True, False])
    assert str(error.value) == (
        "operators [1] may not move and have no node. "
        "Give each operator that is not movable its node in assignment."
    )


def test_nodes_need_a_capacity() -> None:
    with pytest.raises(InputError, match="Give at least one node, each more than zero"):
        global_assignment([[0.1]], [0.0])


def _chains(nodes: int, rng: np.random.Generator) -> np.ndarray:
    """Chains of ten operators whose input alternates between two rates, at random offsets."""
    period = np.arange(10)
    offsets = rng.uniform(0, 10, nodes)[:, None]
    rates = np.where((period + offsets) % 10 < 5, 1.6, 0.4) * rng.uniform(0.8, 1.2, (nodes, 1))
    factors = np.cumprod(rng.uniform(0.8, 1.2, (nodes, 10)), axis=1)
    loads = (rates[:, None, :] * factors[:, :, None]).reshape(nodes * 10, 10)
    loads *= rng.uniform(0.95, 1.05, loads.shape)
    return np.asarray(0.7 * nodes * loads / loads.sum(axis=0).mean())
