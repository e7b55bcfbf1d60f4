"""Loads: what a node has used is shared out whole, and series are what samples have grown by."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.control.loads import Shares, measured_loads
from penstock.model.measurements import FragmentStatus, NodeSample

NAMES = ("a", "b")
MS = st.integers(0, 10_000)


@given(st.lists(st.tuples(MS, st.tuples(MS, MS)), max_size=20))
def test_all_that_was_used_while_something_ended_is_shared_out(
    steps: list[tuple[int, tuple[int, int]]],
) -> None:
    shares = Shares()
    busy = dict.fromkeys(NAMES, 0.0)
    used_ms = waiting_ms = 0.0
    spent: dict[str, float] = dict(busy)
    for step_ms, grown in steps:
        busy = {name: busy[name] + ms for name, ms in zip(NAMES, grown, strict=True)}
        spent = dict(shares.take(step_ms, busy))
        used_ms += step_ms
        waiting_ms = 0.0 if any(grown) else waiting_ms + step_ms
    assert sum(spent.values()) == pytest.approx(used_ms - waiting_ms, abs=1e-6)


def test_shares_are_by_the_time_of_batches() -> None:
    shares = Shares()
    shares.take(10.0, {"a": 5.0, "b": 5.0})
    assert shares.take(90.0, {"a": 35.0, "b": 20.0}) == {"a": 5 + 60.0, "b": 5 + 30.0}


def test_one_that_left_and_came_back_begins_at_zero() -> None:
    shares = Shares()
    shares.take(10.0, {"a": 10.0})
    shares.take(10.0, {})
    assert shares.take(4.0, {"a": 2.0})["a"] == pytest.approx(14.0)


def test_what_intakes_used_is_not_charged_to_fragments() -> None:
    shares = Shares()
    shares.take(0.0, {"a": 0.0}, {"rows": 5.0})
    assert shares.take(100.0, {"a": 10.0}, {"rows": 35.0, "more": 10.0}) == {"a": 60.0}


def sample(at_s: float, **spent_ms: float) -> NodeSample:
    fragments = {name: FragmentStatus(name, cpu_ms=ms) for name, ms in spent_ms.items()}
    return NodeSample(at_s, fragments=fragments)


def test_a_period_is_the_growth_between_its_ends() -> None:
    kept = [sample(0, a=0, b=0), sample(2, a=500, b=0), sample(4, a=1_000, b=400)]
    series = measured_loads({"n1": kept}, NAMES, 2, 2.0, 4.0)
    np.testing.assert_allclose(series, [[0.25, 0.25], [0.0, 0.2]])


def test_longer_periods_take_several_samples_together() -> None:
    kept = [sample(at, a=100 * at) for at in range(9)]
    np.testing.assert_allclose(measured_loads({"n1": kept}, ["a"], 2, 4.0, 8.5), [[0.1, 0.1]])


def test_periods_nobody_knows_are_left_out() -> None:
    kept = [sample(10, a=0), sample(12, a=1_000)]
    assert measured_loads({"n1": kept}, ["a"], 5, 2.0, 12.0).tolist() == [[0.5]]
    assert measured_loads({"n1": []}, ["a"], 5, 2.0, 12.0).shape == (1, 0)


def test_one_that_moved_has_what_each_node_knows() -> None:
    first = [sample(0, a=0), sample(2, a=200), sample(4)]
    second = [sample(0), sample(2), sample(4, a=0), sample(6, a=600)]
    series = measured_loads({"n1": first, "n2": second}, ["a", "b"], 3, 2.0, 6.0)
    assert series.shape == (2, 2)
    np.testing.assert_allclose(series[0], [0.1, 0.3])
    assert np.isnan(series[1]).all()


def test_one_started_afresh_is_unknown_for_that_period() -> None:
    kept = [sample(0, a=900, b=0), sample(2, a=10, b=20), sample(4, a=30, b=40)]
    series = measured_loads({"n1": kept}, NAMES, 2, 2.0, 4.0)
    assert math.isnan(series[0, 0])
    assert series[0, 1] == pytest.approx(0.01)
