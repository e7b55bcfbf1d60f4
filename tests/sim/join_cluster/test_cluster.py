"""The simulated cluster: the joins it does are true joins, and its books are right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from penstock.balance.groups.directory import SizeLimits
from penstock.balance.groups.reports import GroupSettings
from penstock.errors import InputError
from penstock.sim.join_cluster.arriving import GroupLogs, draw_arrivals
from penstock.sim.join_cluster.cluster import JoinCluster
from penstock.sim.join_cluster.measuring import JoinMeasurements
from penstock.sim.join_cluster.settings import JoinClusterSettings, JoinCosts, JoinWorkload

WORKLOAD = JoinWorkload(rate_per_s=40, window_s=15, largest_key=400, groups=12)
SETTINGS = JoinClusterSettings(workers=3, reorganisation_s=6, tuning=SizeLimits(2_000))
UNTIL_S = 60.0
FREE = JoinCosts(comparison_s=0, tuple_s=0, result_s=0, message_s=0, byte_s=0)


@pytest.fixture(scope="module")
def logs() -> GroupLogs:
    return draw_arrivals(WORKLOAD, UNTIL_S, seed=5)


def _run(
    logs: GroupLogs, settings: JoinClusterSettings = SETTINGS, warm_s: float = 0.0, **more: object
) -> tuple[JoinMeasurements, JoinCluster]:
    cluster = JoinCluster(WORKLOAD, settings, logs, UNTIL_S, **more)  # type: ignore[arg-type]
    return cluster.run(warm_s), cluster


def _pairs(logs: GroupLogs, until_s: float) -> int:
    """Pairs of equal keys, one of each stream, at most a window apart: by key, by searching."""
    found = 0
    for key in np.unique(logs.keys):
        chosen = (logs.keys == key) & (logs.times <= until_s)
        left, right = (np.sort(logs.times[chosen & (logs.streams == one)]) for one in (0, 1))
        until = np.searchsorted(right, left + WORKLOAD.window_s, side="right")
        found += int((until - np.searchsorted(right, left - WORKLOAD.window_s)).sum())
    return found


def test_arrivals(logs: GroupLogs) -> None:
    assert len(logs.times) == pytest.approx(2 * 40 * 60, abs=5 * np.sqrt(4_800))
    for start, stop in zip(logs.starts, logs.starts[1:], strict=False):
        assert (np.diff(logs.times[start:stop]) >= 0).all()
    groups_of = {}
    for group in range(12):
        for key in logs.keys[logs.starts[group] : logs.starts[group + 1]]:
            assert groups_of.setdefault(int(key), group) == group, "a key has one group"
    assert 0.4 < logs.streams.mean() < 0.6
    assert max(logs.keys) <= 400


@pytest.mark.parametrize("tuned", [True, False])
def test_every_pair_is_found_once(logs: GroupLogs, tuned: bool) -> None:
    """All but what arrives after the last sending is joined, whatever is split or moved."""
    settings = replace(SETTINGS, tuning=SETTINGS.tuning if tuned else None)
    found, cluster = _run(logs, settings, costs=FREE)
    assert found.results == _pairs(logs, UNTIL_S - settings.distribution_s)
    assert (cluster.splits > 0) is tuned


def test_tuning_saves_comparisons_and_costs_no_communication(logs: GroupLogs) -> None:
    tuned, _ = _run(logs)
    plain, _ = _run(logs, replace(SETTINGS, tuning=None))
    assert sum(tuned.cpu_s) < sum(plain.cpu_s)
    assert tuned.communication_s == pytest.approx(plain.communication_s, rel=0.02)


def test_the_same_again(logs: GroupLogs) -> None:
    assert _run(logs)[0] == _run(logs)[0]


def test_time_is_processor_communication_or_idle(logs: GroupLogs) -> None:
    """Every second of a worker is accounted for, and a slow worker is busier."""
    found, _ = _run(logs, replace(SETTINGS, speeds=(0.5,), moves=False))
    for cpu_s, communication_s, idle_s in zip(
        found.cpu_s, found.communication_s, found.idle_s, strict=True
    ):
        assert cpu_s + communication_s + idle_s == pytest.approx(found.measured_s)
    fast, _ = _run(logs, replace(SETTINGS, moves=False))
    assert found.cpu_s[0] == pytest.approx(2 * fast.cpu_s[0])
    assert found.cpu_s[1:] == pytest.approx(fast.cpu_s[1:])


def test_delay_is_half_an_epoch_where_nothing_else_takes_time(logs: GroupLogs) -> None:
    found, _ = _run(logs, warm_s=20.0, costs=FREE)
    assert found.delay_s == pytest.approx(1.0, abs=0.05)
    assert found.longest_s <= 2.0
    assert sum(found.cpu_s) == 0


def test_who_connects_in_turn_does_not_wait(logs: GroupLogs) -> None:
    at_once, _ = _run(logs)
    in_turn, _ = _run(logs, replace(SETTINGS, connects="in turn"))
    assert max(at_once.communication_s) > 2 * min(at_once.communication_s)
    assert max(in_turn.communication_s) < 1.2 * min(in_turn.communication_s)
    assert in_turn.results == at_once.results


@pytest.mark.parametrize("slots", [1, 2, 4])
def test_sub_groups_halve_what_waits_at_the_master(slots: int) -> None:
    workload = replace(WORKLOAD, rate_per_s=2_000, largest_key=100_000, window_s=1)
    drawn = draw_arrivals(workload, 30.0, seed=2)
    settings = JoinClusterSettings(workers=12, slots=slots, moves=False)
    found = JoinCluster(workload, settings, drawn, 30.0).run(4.0)
    assert found.waiting / (2 * 2_000 * 2.0 / 2 * (1 + 1 / slots)) == pytest.approx(1, abs=0.08)


@pytest.mark.parametrize("choice", ["load", "random"])
def test_groups_leave_a_worker_that_is_too_slow(logs: GroupLogs, choice: str) -> None:
    slow = replace(SETTINGS, speeds=(0.1,), reorganisation_s=4.0)
    costs = JoinCosts(tuple_s=5e-3, buffer_bytes=10_000, block_bytes=256)
    stay, _ = _run(logs, replace(slow, moves=False), costs=costs)
    groups = GroupSettings(choice=choice)  # type: ignore[arg-type]
    move, cluster = _run(logs, replace(slow, groups=groups), costs=costs)
    assert cluster.moves > 0
    assert move.results > stay.results and move.longest_s < stay.longest_s / 2


def test_as_many_workers_as_are_needed(logs: GroupLogs) -> None:
    adaptive = replace(SETTINGS, groups=GroupSettings(adaptive=True))
    found, cluster = _run(logs, adaptive, warm_s=40.0)
    assert found.workers == 1 and cluster.moves >= 8
    assert sum(cpu_s > 0 for cpu_s in found.cpu_s) == 1
    everything, _ = _run(logs, adaptive)
    assert everything.results == _run(logs)[0].results


def test_what_is_refused() -> None:
    with pytest.raises(InputError, match="2 workers in 3 slots"):
        JoinClusterSettings(workers=2, slots=3)
    with pytest.raises(InputError, match="sent every 30 s"):
        JoinClusterSettings(distribution_s=30)
    with pytest.raises(InputError, match="0 tuples a second"):
        JoinWorkload(rate_per_s=0)
