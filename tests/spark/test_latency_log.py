"""Latencies are those of the last minute."""

from __future__ import annotations

import pytest

from penstock.model.measurements import FragmentStatus
from penstock.spark.latency_log import LatencyLog

pytestmark = pytest.mark.core


def told(log: LatencyLog, now_s: float) -> FragmentStatus:
    return log.told(FragmentStatus("q"), now_s)


def test_how_it_began_is_forgotten_after_a_minute() -> None:
    log = LatencyLog()
    log.add(9.0, now_s=0.0)
    for turn in range(1, 13):
        log.add(1.0, now_s=5.0 * turn)
    assert max(log.take()) == 9.0
    log.add(9.0, now_s=0.0)
    for turn in range(1, 14):
        log.add(1.0, now_s=5.0 * turn)
    status = told(log, 65.0)
    assert (status.latency_p50_s, status.latency_p99_s, status.latest_latency_s) == (1.0, 1.0, 1.0)


def test_a_few_are_remembered_however_old() -> None:
    log = LatencyLog()
    for hour in range(5):
        log.add(float(hour), now_s=3_600.0 * hour)
    status = told(log, 5 * 3_600.0)
    assert (status.latency_p50_s, status.latency_p99_s) == (2.0, 3.0)
    assert status.latest_latency_s is None, "that was long ago"


def test_what_was_taken_is_gone() -> None:
    log = LatencyLog()
    log.add(1.0, now_s=0.0)
    assert log.take() == [1.0] and log.take() == []
    assert told(log, 1.0).latency_p50_s is None
