"""Fragments in simulated time, batch by batch."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws import tried
from penstock.errors import InputError
from penstock.load.batches import BatchWork
from penstock.model.abstract import AbstractInput, AbstractNetwork, AbstractNode, AbstractOperator
from penstock.sim.arrivals import Alternating, Steady
from penstock.sim.balancing import BalancedSystem, Balancing
from penstock.sim.micro_batches import MEASURED_PAUSES, MicroBatches
from penstock.sim.row_feeds import ArrivingRows, EvenRows


def network(*operators: AbstractOperator, nodes: int = 1, cpu: float = 1.0) -> AbstractNetwork:
    return AbstractNetwork(
        (AbstractInput("I"),),
        operators,
        tuple(AbstractNode(f"n{at}", cpu) for at in range(nodes)),
    )


def fragment(
    name: str, batch_s: float, row_s: float, round_s: float = 1.0, reads: str = "I", **more: float
) -> AbstractOperator:
    return AbstractOperator(name, (reads,), row_s, fixed_cpu=batch_s / round_s, **more)  # type: ignore[arg-type]


def run(
    written: AbstractNetwork,
    rate_per_s: float,
    where: list[int],
    seconds: float = 500.0,
    **windows: BatchWork,
) -> MicroBatches:
    work = {operator.name: BatchWork(1.0) for operator in written.operators} | windows
    batches = MicroBatches(written, EvenRows([rate_per_s]), where, 1, work)
    batches.advance(seconds)
    return batches


@given(
    st.floats(0.0, 0.2), st.floats(0.0, 0.0005), st.floats(10.0, 500.0), st.sampled_from([1.0, 2.0])
)
@tried(25)
def test_load_is_rounds_times_a_batch_plus_rows_times_a_row(
    batch_s: float, row_s: float, rate_per_s: float, cpu: float
) -> None:
    found = run(network(fragment("f", batch_s, row_s), cpu=cpu), rate_per_s, [0])
    load = batch_s + rate_per_s * row_s
    statistics = found.statistics()
    assert statistics.busy == pytest.approx([load], rel=0.01, abs=1e-9)
    assert statistics.offered == pytest.approx([load], rel=0.01, abs=1e-9)
    assert statistics.utilisation == pytest.approx([load / cpu], rel=0.01, abs=1e-9)
    # The oldest row waits a round, and for its batch.
    waited_s = 1.0 - 1 / (rate_per_s + 1)
    assert found.latencies().mean_s == pytest.approx(waited_s + load / cpu, rel=0.02)


def test_on_a_full_node_rounds_are_missed_and_batches_grow() -> None:
    """A batch of 2 s every second is too much; every 4 s with all their rows it is not."""
    found = run(network(fragment("f", 2.0, 0.005)), 100.0, [0])
    statistics = found.statistics()
    assert statistics.utilisation == pytest.approx([1.0], abs=0.02)
    assert found.waiting < 1_000
    # A batch lasts 2 s + 0.5 s for every second of rows: 4 s, and the next begins at once.
    assert found.latencies().mean_s == pytest.approx(8.0, rel=0.05)


def test_too_many_rows_pile_up() -> None:
    found = run(network(fragment("f", 0.1, 0.02)), 100.0, [0])
    early = found.waiting
    found.advance(1_000)
    assert found.waiting > 1.8 * early > 10_000


def test_a_round_without_rows_costs_nothing() -> None:
    found = run(network(fragment("f", 0.3, 0.001)), 0.0, [0])
    assert found.statistics().utilisation.tolist() == [0.0]


def test_chains_pass_on_what_their_selectivity_leaves_and_latency_adds_up() -> None:
    written = network(
        fragment("first", 0.05, 0.001, selectivity=0.25),
        fragment("second", 0.05, 0.001, reads="first"),
        nodes=2,
    )
    found = run(written, 100.0, [0, 1])
    assert found.statistics().busy == pytest.approx([0.15, 0.075], rel=0.02)
    (rows, latency_s) = found.sink_latencies()["second"]
    assert rows == pytest.approx(500 * 25, rel=0.01)
    # One round for the first, a part of one for the second, and both batches.
    assert 1.2 < latency_s < 2.3
    assert found.sink_latencies().keys() == {"second"}


def test_batches_of_a_node_take_turns() -> None:
    together, apart = (
        run(network(fragment("f", 0.3, 0.0), fragment("g", 0.3, 0.0), nodes=2), 10.0, where)
        for where in ([0, 0], [0, 1])
    )
    assert together.statistics().utilisation == pytest.approx([0.6, 0.0], abs=0.01)
    assert together.latencies().longest_s >= apart.latencies().longest_s


def test_a_moved_fragment_goes_on_with_what_has_come_meanwhile() -> None:
    found = run(network(fragment("f", 0.05, 0.001), nodes=2), 100.0, [0], seconds=100.0)
    assert found.suspend([0]) == MEASURED_PAUSES.base_s
    found.advance(110.0)
    assert found.waiting >= 900
    found.resume(0, 1)
    assert (found.assignment.tolist(), found.moves) == ([1], 1)
    found.statistics()
    found.advance(310.0)
    assert found.statistics().utilisation == pytest.approx([0.0, 0.155], abs=0.01)
    assert found.latencies().longest_s > 10


def test_rows_that_arrive_one_by_one_are_all_counted() -> None:
    written = network(fragment("f", 0.01, 0.0001))
    arrivals = {"I": Alternating(200, ratio=3)}
    found = MicroBatches(
        written, ArrivingRows(written.inputs, arrivals, 1), [0], 1, {"f": BatchWork(0.5)}
    )
    rates = []
    for until_s in range(10, 110, 10):
        found.advance(until_s)
        rates.append(found.statistics().input_rates[0])
    assert np.mean(rates) == pytest.approx(200, rel=0.05)
    (rows, _) = found.sink_latencies()["f"]
    assert rows + found.waiting == pytest.approx(10 * sum(rates), abs=1)


def test_the_same_seed_gives_the_same_run() -> None:
    def once(seed: int) -> tuple[float, float]:
        written = network(fragment("f", 0.01, 0.0001))
        rows = ArrivingRows(written.inputs, {"I": Steady(100)}, seed)
        found = MicroBatches(written, rows, [0], seed, {"f": BatchWork(0.5)})
        found.advance(50)
        return found.latencies().sum_s, found.statistics().busy[0]

    assert once(1) == once(1) != once(2)


def test_it_is_balanced_like_any_other_system() -> None:
    written = network(fragment("f", 0.3, 0.0), fragment("g", 0.5, 0.0), nodes=2)
    work = {"f": BatchWork(1.0), "g": BatchWork(1.0)}
    batches = MicroBatches(written, EvenRows([10.0]), [0, 0], 1, work)
    BalancedSystem(batches, Balancing(policy="correlation", every_s=5.0), seed=1).advance(60)
    assert sorted(batches.assignment.tolist()) == [0, 1]


def test_rounds_take_time() -> None:
    with pytest.raises(InputError) as raised:
        MicroBatches(network(fragment("f", 0.1, 0.1)), EvenRows([1.0]), [0], 1, {})
    assert str(raised.value) == (
        'it is not said how often fragment f looks for rows. Give {"f": BatchWork(round_s=1.0)}.'
    )
    with pytest.raises(InputError) as raised:
        BatchWork(0.0)
    assert str(raised.value) == "a fragment that looks for rows every 0 s. Give more than zero."


def test_what_is_bound_to_its_node_stays_there() -> None:
    """Of equal fragments on one node, those move that are not bound to it."""
    for bound in ({"sticky": True}, {"node": "n0"}):
        written = network(
            fragment("f", 0.2, 0.0, **bound),  # type: ignore[arg-type]
            fragment("g", 0.2, 0.0, **bound),  # type: ignore[arg-type]
            *(fragment(name, 0.2, 0.0) for name in "hi"),
            nodes=2,
        )
        work = {name: BatchWork(1.0) for name in "fghi"}
        batches = MicroBatches(written, EvenRows([10.0]), [0, 0, 0, 0], 1, work)
        BalancedSystem(batches, Balancing(policy="correlation", every_s=5.0), seed=1).advance(60)
        assert batches.assignment[:2].tolist() == [0, 0]
        assert 1 in batches.assignment[2:]


def test_results_of_windows_come_when_they_close() -> None:
    """Every 20 s one batch for the reader, which has as many rows as otherwise in 20 batches."""
    written = network(
        fragment("sums", 0.05, 0.0, selectivity=0.5),
        fragment("reader", 0.1, 0.001, reads="sums"),
        nodes=2,
    )
    windows = BatchWork(1.0, "aggregate", keeps_s=20.0, gives_every_s=20.0)
    found = run(written, 100.0, [0, 1], 1_000.0, sums=windows)
    assert found.statistics().busy == pytest.approx([0.05, 0.1 / 20 + 50 * 0.001], rel=0.03)
    (rows, latency_s) = found.sink_latencies()["reader"]
    assert rows == pytest.approx(50 * 980, rel=0.03)
    assert latency_s < 5, "rows that wait for their window to close are not late"
    assert found.latencies().count == pytest.approx(50, abs=1)


@given(st.floats(1.0, 60.0), st.floats(10.0, 500.0))
@tried(25)
def test_what_is_remembered_makes_a_move_longer(keeps_s: float, rate_per_s: float) -> None:
    joined = BatchWork(1.0, "join", keeps_s=keeps_s)
    found = run(network(fragment("f", 0.01, 0.0)), rate_per_s, [0], 200.0, f=joined)
    # To within the rows of a batch, and the hundredth that is forgotten together.
    most = rate_per_s * (keeps_s * 1.01 + 1)
    assert rate_per_s * (keeps_s * 0.98 - 1) <= found.rows_kept(0) <= most
    assert found.suspend([0]) == MEASURED_PAUSES.duration_s(1, round(found.rows_kept(0)))
    found.resume(0, 0)
    assert found.rows_kept(0) > 0 or keeps_s < 2


def test_a_batch_counts_in_the_seconds_that_it_takes() -> None:
    """One of 2.5 s every 5 s: no second has more than a second of it, and none of it is lost."""
    made = network(fragment("f", 2.5, 0.0, round_s=5.0), cpu=1.0)
    batches = MicroBatches(made, EvenRows([1.0]), [0], 1, {"f": BatchWork(5.0)})
    used, busy = [], []
    for second in range(1, 101):
        batches.advance(float(second))
        statistics = batches.statistics()
        used.append(float(statistics.utilisation[0]))
        busy.append(float(statistics.busy[0]))
    assert max(used) == pytest.approx(1.0) and used == pytest.approx(busy)
    assert sum(used) == pytest.approx(50.0, abs=2.5)
    assert sum(0.01 < share < 0.99 for share in used) >= 30
