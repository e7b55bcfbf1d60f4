"""The studies of sharing: one point of each, and what must hold in it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from penstock.bench.admission import draw_plan, offered
from penstock.bench.registry import BENCHES
from penstock.sim.fcfs_queue import times_in_queue_s
from penstock.studies import projection, sharing_88
from penstock.studies.sharing_runs import ALGORITHMS, SharingWorkload, SharingWorld, compose_all

pytestmark = pytest.mark.core


def test_a_queue_with_equal_service_times_is_as_theory_says() -> None:
    rng = np.random.default_rng(1)
    arrivals_s = np.cumsum(rng.exponential(1.0, 200_000))
    times_s = times_in_queue_s(arrivals_s, rng.exponential(0.5, 200_000))
    assert times_s.mean() == pytest.approx(0.5 / (1 - 0.5), rel=0.03)


def test_one_point_of_projection() -> None:
    high, low = projection.measure((1, 0.8, 5.0, 20_000))
    assert (high["segments"], low["segments"]) == ("high", "low")
    for record in (high, low):
        assert record["isolated_s"] < record["measured_s"]  # type: ignore[operator]
    assert high["as the source"] < high["measured_s"] <= high["corrected"]  # type: ignore[operator]


def test_sharing_computes_less_and_keeps_more_limits() -> None:
    workload = replace(
        SharingWorkload(), nodes=20, operators=6, for_s=12.0, lifetime_s=8.0, plans=40
    )
    found = {algorithm: compose_all(workload, algorithm, 1) for algorithm in ALGORITHMS}
    assert found["synergy"].shared > 0.3
    assert found["composition"].shared == found["random"].shared == 0
    assert found["synergy"].load < found["composition"].load
    assert found["synergy"].successful >= found["composition"].successful
    assert found["synergy"] == compose_all(workload, "synergy", 1)


def test_rivals_leave_out_what_they_are_said_to() -> None:
    world = SharingWorld(replace(SharingWorkload(), nodes=10, operators=2), 1)
    greedy, random = world.options("greedy"), world.options("random")
    assert not (greedy.reuses or greedy.projects or greedy.checks_limit or random.checks_limit)
    assert world.options("composition").checks_limit
    assert world.neighbours("v000")[0] != "v000"


def test_a_point_of_the_study_of_88_nodes_is_plain() -> None:
    (record,) = sharing_88.measure(("synergy", 0.8, 22, 5.0, 0))
    assert record["nodes"] == 22 and record["requests"] > 0  # type: ignore[operator]


def test_the_bench_is_known_and_draws_plans_that_can_be_placed() -> None:
    from random import Random

    assert "admission" in BENCHES
    rng = Random(1)
    where = offered(rng)
    plan = draw_plan(rng)
    assert all(operator.does in where for operator in plan.operators)
