"""The workload of the tree's study is what the source describes."""

import numpy as np
import pytest

from penstock.sim.tree_loads import Fluctuation, Shrinking
from penstock.studies import hierarchy
from penstock.studies.report import ResultTable
from penstock.studies.tree_workload import TreeWorkload


@pytest.mark.parametrize("is_random", [False, True])
def test_operators_start_below_the_upper_threshold(is_random: bool) -> None:
    network = TreeWorkload(3, is_random=is_random).network()
    loads = dict.fromkeys(network.nodes.parents, 0.0)
    for operator in network.operators:
        loads[operator.node] += operator.size
    assert len(network.operators) == 360 and len(loads) == 15
    assert max(loads.values()) <= 60
    assert np.mean(list(loads.values())) == pytest.approx(36, abs=2.0)


def test_operators_grow_one_after_the_other_and_shrink_to_where_they_began() -> None:
    first = np.full(50, 2.0)
    loads = Fluctuation(1.0).loads(first, np.arange(50), np.random.default_rng(1))
    growing = loads.times_s < 480
    assert loads.times_s[0] == 3.0 and len(set(loads.operators[:16].tolist())) == 1
    assert loads.sizes.min() >= 2.0 and loads.times_s.max() <= 960
    mean = (loads.sizes[growing].max() - 2.0) / 16
    assert 1.0 < mean < 8.0
    again = Fluctuation(1.0).loads(first, np.arange(50), np.random.default_rng(1))
    assert again.sizes.tolist() == loads.sizes.tolist()


def test_changes_do_not_depend_on_the_placement() -> None:
    spread, drawn = TreeWorkload(5), TreeWorkload(5, is_random=True)
    names = [
        [network.operators[at].name for at in workload.loads(network).operators[:400]]
        for workload in (spread, drawn)
        for network in (workload.network(),)
    ]
    assert names[0] == names[1]


def _runs(gain: float) -> ResultTable:
    rows = [
        (
            workload,
            protocol,
            seed,
            20.0 + seed + (gain if protocol in ("relay", "all three") else 0.0),
        )
        for workload in ("as described", "unit 0.5", "unit 0.25")
        for protocol in hierarchy.PROTOCOLS
        for seed in range(20)
    ]
    return ResultTable("hierarchy", ("workload", "protocol", "seed", "less"), tuple(rows))


def test_gains_are_tested_for_significance_on_the_same_seeds() -> None:
    rows = {row.quantity: row for row in hierarchy._gain_rows(_runs(3.0))}
    relay = rows["unit 0.5: points gained by relay"]
    assert relay.ours == pytest.approx(3.0) and relay.agrees
    assert relay.note == "p = 7.7e-06; better in 20, worse in 0"
    wide = rows["unit 0.5: points gained by wide"]
    assert wide.note == "p = 1; better in 0, worse in 0" and wide.agrees, "nothing is claimed"
    for gain in (0.0, -3.0):
        (claimed,) = (
            row
            for row in hierarchy._gain_rows(_runs(gain))
            if row.quantity == "unit 0.25: points gained by relay"
        )
        assert not claimed.agrees


def test_operators_shrink_in_the_order_they_grew() -> None:
    loads = Fluctuation(1.0).loads(np.ones(50), np.arange(50), np.random.default_rng(1))
    spans = [
        list(dict.fromkeys(loads.operators[at : at + 16].tolist())) for at in range(0, 960, 16)
    ]
    assert all(len(operators) == 1 for operators in spans)
    assert len(set(map(tuple, spans[:30]))) > 10 and spans[30:] == spans[:30]
    anyhow = Fluctuation(1.0, shrinking=Shrinking.AT_RANDOM)
    other = anyhow.loads(np.ones(50), np.arange(50), np.random.default_rng(1))
    growing = loads.times_s <= 482
    assert (other.sizes[other.times_s <= 482] == loads.sizes[growing]).all()
    assert other.operators.tolist() != loads.operators.tolist()
