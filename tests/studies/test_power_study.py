"""The power study: its workloads, its parts, and what it makes of them."""

import numpy as np
import pytest

from penstock.model.devices import Broadcast, DeviceProfile
from penstock.power.cuts import cut_table
from penstock.power.plan import compare
from penstock.power.problem import ChainOperator, ChainQuery, ChainSource, PowerProblem
from penstock.studies import power
from penstock.studies.power_runs import (
    TOWARDS_HIGH,
    TOWARDS_LOW,
    PowerWorkload,
    _costs,
    crossing,
    saved_percent,
    with_ratio,
    workload_table,
)
from penstock.studies.power_scatter import scatter_of, scatter_rows
from penstock.studies.power_weighted import SCENES, gains_of, optimum_of, weighted_rows
from penstock.studies.report import gathered
from penstock.studies.seeds import rng_of


def test_workloads_are_the_chains_of_the_model() -> None:
    """The same random numbers, put together operator by operator."""
    workload = PowerWorkload(queries=3, levels=4, costs=100e6)
    table = workload_table(workload, "sorted", 0.16, rng_of("w", 1))
    rng = rng_of("w", 1)
    rates, sizes = rng.uniform(500, 1000, 3), rng.uniform(2000, 4000, 3)
    selectivity, projectivity = rng.uniform(0.2, 1.8, (3, 4)), rng.uniform(0.5, 1.5, (3, 4))
    cycles = rng.uniform(100e6, 101e6, (3, 4))
    problem = PowerProblem(
        Broadcast("sorted", 125_000.0, raw_cut=False),
        tuple(ChainSource(f"s{at}", rates[at], sizes[at]) for at in range(3)),
        (DeviceProfile("d", 1e9, 0.16, 1.0),),
        tuple(
            ChainQuery(
                f"q{at}",
                f"s{at}",
                ("d",),
                tuple(map(ChainOperator, cycles[at], selectivity[at], projectivity[at])),
            )
            for at in range(3)
        ),
    )
    expected = cut_table(problem)
    assert table.sizes == pytest.approx(expected.sizes)
    assert table.processing_j == pytest.approx(expected.processing_j)
    assert table.first.tolist() == expected.first.tolist() == [1, 1, 1]
    assert compare(table).plan_of("bose").cuts == compare(expected).plan_of("bose").cuts


def test_costs_lean_more_to_one_end_with_every_level() -> None:
    means = _costs(TOWARDS_HIGH, 4_000, 6, rng_of("c", 1)).mean(axis=0)
    assert (np.diff(means) > 0).all() and means[0] > 150e6
    assert _costs(TOWARDS_LOW, 4_000, 6, rng_of("c", 1)).mean() < 150e6


def test_a_ratio_scales_processing_alone() -> None:
    table = workload_table(PowerWorkload(2, 2), "sorted", 0.1, rng_of("r", 1))
    doubled = with_ratio(table, 0.2, 0.1)
    assert doubled.processing_j == pytest.approx(2 * table.processing_j)
    assert doubled.sizes is table.sizes


def test_where_curves_cross() -> None:
    assert crossing([1.0, 2.0], [-1.0, -2.0]) == 1.0
    assert crossing([1.0, 2.0], [1.0, 0.5]) == float("inf")
    assert saved_percent({"a": 1.0, "b": 4.0}, "a", "b") == 75.0


def test_one_set_of_a_sweep() -> None:
    found = power.measure(("ratio", "sorted", 0, True))
    energies = {(one["x"], one["algorithm"]): one["energy_j"] for one in found}
    assert len(energies) == 11 * 4
    assert energies[0.01, "ServerOps"] == pytest.approx(energies[0.2, "ServerOps"])
    assert energies[0.2, "BOSe"] < energies[0.2, "MinPowerCut"] < energies[0.2, "MinDataCut"]


def test_sets_scatter_with_an_index() -> None:
    found = gathered("s", [scatter_of(number) for number in range(8)])
    (much, little) = scatter_rows(found)
    saved = [value for value in found.where(ratio=0.2).column("saved") if isinstance(value, float)]
    assert little.ours == pytest.approx(np.mean(saved))
    assert "of 8 sets reach the source's number" in little.note
    assert much.ours > 40 > little.ours > 0


def test_one_set_of_what_goes_beyond() -> None:
    gains, optimum = gathered("g", [gains_of(0)]), gathered("o", [optimum_of(0)])
    rows = weighted_rows(gains, optimum)
    assert len(rows) == len(SCENES) + 2
    assert all(row.agrees and row.source is None for row in rows)
    assert rows[0].ours < rows[1].ours < rows[2].ours < rows[3].ours
