"""Rounds that fragments share on a node, in simulated time: paid once, whoever takes part."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws import tried
from penstock.load.batches import BatchWork
from penstock.model.abstract import (
    AbstractInput,
    AbstractNetwork,
    AbstractNode,
    AbstractOpening,
    AbstractOperator,
)
from penstock.sim.micro_batches import MicroBatches
from penstock.sim.row_feeds import EvenRows


def network(members: int, batch_s: float, row_s: float, nodes: int = 2) -> AbstractNetwork:
    return AbstractNetwork(
        (AbstractInput("I"),),
        tuple(
            AbstractOperator(f"f{at}", ("I",), row_s, fixed_cpu=batch_s) for at in range(members)
        ),
        tuple(AbstractNode(f"n{at}") for at in range(nodes)),
    )


def with_opening(plain: AbstractNetwork, batch_s: float, row_s: float) -> AbstractNetwork:
    names = tuple(operator.name for operator in plain.operators)
    return replace(plain, openings=(AbstractOpening("round", names, "I", batch_s, row_s),))


def batches(written: AbstractNetwork, where: list[int], rate_per_s: float = 100.0) -> MicroBatches:
    work = {operator.name: BatchWork(1.0) for operator in written.operators}
    return MicroBatches(written, EvenRows([rate_per_s]), where, 1, work)


COSTS = st.floats(0.0, 0.3), st.floats(0.0, 0.005)


@given(*COSTS, *COSTS, st.floats(10.0, 200.0))
@tried(25)
def test_alone_in_its_rounds_a_fragment_pays_for_all_of_them(
    batch_s: float, row_s: float, opening_s: float, reading_s: float, rate_per_s: float
) -> None:
    """The same as a fragment with all these costs of its own."""
    shared = batches(
        with_opening(network(1, batch_s, row_s), opening_s, reading_s), [0], rate_per_s
    )
    alone = batches(network(1, batch_s + opening_s, row_s + reading_s), [0], rate_per_s)
    for one in (shared, alone):
        one.advance(100.0)
    assert shared.latencies().count == alone.latencies().count > 0
    assert shared.latencies().sum_s == pytest.approx(alone.latencies().sum_s)
    assert shared.statistics().utilisation == pytest.approx(alone.statistics().utilisation)
    assert shared.waiting == alone.waiting


@given(st.integers(1, 5), st.integers(0, 5), *COSTS)
@tried(25)
def test_every_node_pays_once_however_many_it_has(
    here: int, there: int, opening_s: float, reading_s: float
) -> None:
    written = with_opening(network(here + there, 0.01, 0.0001), opening_s, reading_s)
    found = batches(written, [0] * here + [1] * there)
    found.advance(300.0)
    members = np.array([here, there])
    shared = (opening_s + 100.0 * reading_s) * (members > 0)
    loads = members * (0.01 + 100.0 * 0.0001) + shared
    statistics = found.statistics()
    assert statistics.utilisation == pytest.approx(loads, rel=0.02, abs=1e-9)
    assert statistics.busy.sum() == pytest.approx(loads.sum(), rel=0.02)


def test_results_of_a_round_are_out_together() -> None:
    found = batches(with_opening(network(4, 0.05, 0.0), 0.1, 0.0), [0] * 4)
    found.advance(200.0)
    # The oldest row waits a round, and then for all four.
    assert found.latencies().mean_s == pytest.approx(0.99 + 0.1 + 4 * 0.05, rel=0.02)


def test_who_moves_takes_part_where_it_is_and_never_twice_at_once() -> None:
    """Rounds of 0.7 s, moves in the middle of them: no row is lost or read twice."""
    found = batches(with_opening(network(3, 0.1, 0.001), 0.3, 0.0), [0, 0, 1])
    for step in range(1, 40):
        found.advance(step * 1.3)
        found.suspend([0, 2])
        found.resume(0, step % 2)
        found.resume(2, (step + 1) % 2)
    found.advance(400.0)
    read = sum(rows for rows, _ in found.sink_latencies().values())
    assert read + found.waiting == pytest.approx(3 * 400 * 100, rel=0.01)
