"""Cuts change for gains that are worth it and last."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.model.devices import Broadcast, DeviceProfile
from penstock.power.drift import LOOKS, Drift, watch_drift
from penstock.power.problem import ChainOperator, ChainQuery, ChainSource, PowerProblem

pytestmark = pytest.mark.core


def problem(selectivity: float) -> PowerProblem:
    """One operator that is cheap to ship, and makes more or less data of its input."""
    query = ChainQuery("q", "s", ("d",), (ChainOperator(1.0, selectivity),))
    return PowerProblem(
        Broadcast("sorted", 1_000.0),
        (ChainSource("s", 10.0, 100.0),),
        (DeviceProfile("d", 1e9, 0.1, 1.0),),
        (query,),
    )


def test_a_gain_that_lasts_changes_cuts() -> None:
    drift = Drift()
    for look in range(LOOKS):
        verdict = watch_drift(problem(3.0), {"q": 1}, drift)
        drift = verdict.drift
        assert (verdict.cuts is None) == (look < LOOKS - 1)
    assert verdict.cuts == {"q": 0}
    assert drift == Drift()


def test_one_odd_sample_changes_nothing() -> None:
    drift = watch_drift(problem(3.0), {"q": 1}, Drift()).drift
    assert drift.looks == 1
    calm = watch_drift(problem(0.5), {"q": 1}, drift)
    assert calm.cuts is None and calm.drift == Drift()


def test_a_small_gain_changes_nothing() -> None:
    for _ in range(5):
        verdict = watch_drift(problem(1.05), {"q": 1}, Drift(LOOKS, 1.0))
        assert verdict.cuts is None and verdict.drift == Drift()


def test_a_cut_that_is_settled_stays() -> None:
    settled = problem(3.0)
    settled = replace(settled, queries=(replace(settled.queries[0], cut=1),))
    assert watch_drift(settled, {"q": 1}, Drift(LOOKS, 1.0)).cuts is None
