"""Energies: as in the plain transcription, by device, and what the order is worth."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.bench.plain.cuts import PlainCuts
from penstock.model.devices import Broadcast, DeviceProfile
from penstock.power.cuts import CutTable, cut_table
from penstock.power.energy import (
    air_order,
    cycle_bytes,
    device_uses,
    energy_of,
    heard_bytes,
)
from penstock.power.problem import ChainOperator, ChainQuery, ChainSource, PowerProblem
from power.problems import problems


def random_plan(table: CutTable, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(table.starts[:-1], table.starts[1:])


@given(problems(), st.integers(0, 1_000))
def test_energy_of_any_plan(problem: PowerProblem, seed: int) -> None:
    table, plain = cut_table(problem), PlainCuts(problem)
    plan = random_plan(table, seed)
    cuts = table.cut_numbers(plan).tolist()
    found = energy_of(table, plan)
    assert air_order(table, plan).tolist() == plain.order(cuts)
    assert found.tuning_j == pytest.approx(plain.tuning(cuts), rel=1e-12)
    assert found.total_j == pytest.approx(plain.energy(cuts), rel=1e-12)


@given(problems(), st.integers(0, 1_000))
def test_devices_share_all_of_it(problem: PowerProblem, seed: int) -> None:
    table = cut_table(problem)
    plan = random_plan(table, seed)
    uses = device_uses(problem, table, plan).values()
    whole = energy_of(table, plan)
    assert sum(use.energy.tuning_j for use in uses) == pytest.approx(whole.tuning_j)
    assert sum(use.energy.processing_j for use in uses) == pytest.approx(whole.processing_j)


@given(problems(organisations=("sorted",)), st.integers(0, 1_000))
def test_weighted_is_never_above_sorted_for_the_same_cuts(problem: PowerProblem, seed: int) -> None:
    by_size = cut_table(problem)
    by_weight = replace(by_size, broadcast=replace(problem.broadcast, organisation="weighted"))
    plan = random_plan(by_size, seed)
    least = energy_of(by_size, plan).total_j * (1 + 1e-12)
    assert energy_of(by_weight, plan).total_j <= least


def two_queries(organisation: str) -> CutTable:
    """Results of 300 and 100 bytes; one of the three receivers listens to the larger."""
    broadcast = Broadcast(
        organisation, 100.0, power_up_j=0.5, index_entry_bytes=8.0, descriptor_bytes=10.0
    )
    return cut_table(
        PowerProblem(
            broadcast,
            (ChainSource("s1", 10.0, 60.0),),
            (DeviceProfile("a", 10.0, 1.0, 2.0), DeviceProfile("b", 10.0, 1.0, 1.0)),
            (
                ChainQuery("q1", "s1", ("a",), (ChainOperator(0.5, 0.5),)),
                ChainQuery("q2", "s1", ("a", "b"), (ChainOperator(0.5, 0.5, 1 / 3),)),
            ),
        )
    )


def test_by_hand_sorted() -> None:
    table = two_queries("sorted")
    assert heard_bytes(table, table.roots).tolist() == [420.0, 110.0]
    found = energy_of(table, table.roots)
    assert found.tuning_j == pytest.approx(4.2 * 2 + 1.1 * 3 + 3 * 0.5)
    assert found.processing_j == 0.0
    assert cycle_bytes(table, table.roots) == 420.0


def test_by_hand_indexed() -> None:
    table = two_queries("indexed")
    assert heard_bytes(table, table.roots).tolist() == [326.0, 126.0]
    assert energy_of(table, table.roots).tuning_j == pytest.approx(3.26 * 2 + 1.26 * 3 + 6 * 0.5)
    assert cycle_bytes(table, table.roots) == 436.0


def test_queries_without_a_result_are_not_in_the_index() -> None:
    problem = PowerProblem(
        Broadcast("indexed", 1.0, index_entry_bytes=8.0, descriptor_bytes=10.0),
        (ChainSource("s1", 1.0, 1.0),),
        (DeviceProfile("a", 1.0, 1.0, 1.0),),
        (
            ChainQuery("q1", "s1", ("a",), (ChainOperator(1.0),)),
            ChainQuery("q2", "s1", ("a",), (ChainOperator(1.0, 0.0),)),
        ),
    )
    table = cut_table(problem)
    assert heard_bytes(table, table.roots).tolist() == [19.0, 8.0]
    assert cycle_bytes(table, table.roots) == 19.0
