"""Decisions on groups: nothing is lost, and under a constant load they come to an end."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws import tried
from penstock.balance.groups.deciding import GroupDecision, decide_groups
from penstock.balance.groups.reports import (
    GroupMove,
    GroupOwners,
    GroupSettings,
    WorkerAdded,
    WorkerReleased,
    WorkerReport,
)
from penstock.errors import InputError

NAMES = ["a", "b", "c", "d", "e"]


def reports_of(
    owners: GroupOwners, loads: list[float], speeds: dict[str, float] | None = None
) -> list[WorkerReport]:
    """A simple world: a buffer is empty below capacity, half full close to it, full above."""
    found = []
    for worker in owners.workers:
        own = {group: loads[group] / (speeds or {}).get(worker, 1.0) for group in owners.of(worker)}
        load = sum(own.values())
        occupancy = 0.0 if load < 0.9 else 0.3 if load <= 1 else 0.9
        found.append(WorkerReport(worker, occupancy, own))
    return found


def _check(before: GroupOwners, decision: GroupDecision) -> None:
    after = decision.after
    assert len(after.owners) == len(before.owners)
    assert after.workers and set(after.owners) <= set(after.workers)
    moved = Counter(
        instruction.group
        for instruction in decision.instructions
        if isinstance(instruction, GroupMove)
    )
    assert all(count == 1 for count in moved.values()), "a group moves once at most"
    for instruction in decision.instructions:
        if isinstance(instruction, GroupMove):
            assert before.owners[instruction.group] == instruction.source != instruction.target
    changed = [at for at in range(len(before.owners)) if before.owners[at] != after.owners[at]]
    assert set(changed) == set(moved)
    steps = [
        instruction
        for instruction in decision.instructions
        if not isinstance(instruction, GroupMove)
    ]
    assert len(steps) <= 1, "the number of workers changes by one at most"
    assert abs(len(after.workers) - len(before.workers)) == len(steps)


@given(
    st.lists(st.floats(0, 0.7), min_size=2, max_size=20),
    st.integers(1, 4),
    st.sampled_from(["load", "random"]),
    st.sampled_from([None, 0.95]),
    st.booleans(),
    st.lists(st.floats(0.3, 1), min_size=5, max_size=5),
    st.integers(0, 9),
)
@tried(200)
def test_it_comes_to_rest_under_a_constant_load(
    loads: list[float],
    workers: int,
    choice: str,
    busy_above: float | None,
    adaptive: bool,
    speeds: list[float],
    seed: int,
) -> None:
    settings = GroupSettings(choice=choice, busy_above=busy_above, adaptive=adaptive)
    owners = GroupOwners.deal(len(loads), NAMES[:workers])
    rng = np.random.default_rng(seed)
    fast = dict(zip(NAMES, speeds, strict=True))
    quiet = 0
    for _ in range(300):
        reports = reports_of(owners, loads, fast)
        decision = decide_groups(owners, reports, settings, rng, NAMES)
        _check(owners, decision)
        quiet = 0 if decision.instructions else quiet + 1
        owners = decision.after
        if quiet > settings.rest_periods + 1:
            return
    raise AssertionError("groups or workers still change")


def test_the_number_of_workers_follows_the_load() -> None:
    settings = GroupSettings(adaptive=True)
    owners = GroupOwners.deal(60, ["a"])
    rng = np.random.default_rng(0)
    degrees = []
    for level in [0.5] * 5 + [2.5] * 20 + [0.5] * 20:
        reports = reports_of(owners, [level / 60] * 60)
        owners = decide_groups(owners, reports, settings, rng, NAMES).after
        degrees.append(len(owners.workers))
    assert degrees[4] == 1 and degrees[24] == 3 and degrees[-1] == 1
    assert max(degrees) == 3


def test_a_new_worker_gets_its_share_at_once() -> None:
    owners = GroupOwners.deal(60, ["a", "b"])
    reports = reports_of(owners, [2.4 / 60] * 60)
    settings = GroupSettings(adaptive=True)
    decision = decide_groups(owners, reports, settings, np.random.default_rng(0), NAMES)
    assert decision.instructions[0] == WorkerAdded("c", "2 suppliers for 0 consumers")
    assert len(decision.after.of("c")) == 20


def test_nothing_changes_while_resting_but_groups_move() -> None:
    owners = GroupOwners.deal(8, ["a", "b"])
    loads = [0.4, 0.05] * 4
    reports = reports_of(owners, loads)
    settings = GroupSettings(adaptive=True, rest_periods=2)
    rested = GroupOwners(owners.owners, owners.workers, resting=1)
    decision = decide_groups(rested, reports, settings, np.random.default_rng(0), NAMES)
    (move,) = decision.instructions
    assert isinstance(move, GroupMove) and (move.source, move.target) == ("a", "b")
    assert "a has 90% of its buffer full and is 160% busy, b 0% and 20%" in move.reason
    assert decision.after.resting == 0


def test_who_is_released() -> None:
    owners = GroupOwners(("a", "b", "b", "c"), ("a", "b", "c"))
    reports = reports_of(owners, [0.3, 0.1, 0.1, 0.1])
    settings = GroupSettings(adaptive=True)
    decision = decide_groups(owners, reports, settings, np.random.default_rng(0))
    move, released = decision.instructions
    assert isinstance(move, GroupMove) and (move.group, move.target) == (3, "b")
    assert released == WorkerReleased("c", "no supplier; 2 workers would be 30% busy")


def test_a_single_hot_group_is_not_passed_round() -> None:
    owners = GroupOwners(("a", "b"), ("a", "b"))
    reports = reports_of(owners, [1.5, 0.0])
    found = decide_groups(owners, reports, GroupSettings(), np.random.default_rng(0))
    assert found.instructions == ()


@pytest.mark.parametrize("choice", ["load", "random"])
def test_how_a_group_is_chosen(choice: str) -> None:
    owners = GroupOwners(("a",) * 5 + ("b",), ("a", "b"))
    reports = [
        WorkerReport("a", 0.9, dict(enumerate([0.05, 0.5, 0.3, 0.1, 0.05]))),
        WorkerReport("b", 0.0, {5: 0.2}),
    ]
    settings = GroupSettings(choice=choice)
    chosen = {
        decide_groups(owners, reports, settings, np.random.default_rng(seed)).instructions[0].group
        for seed in range(40)
    }
    assert chosen == ({1} if choice == "load" else {0, 1, 2, 3, 4})


def test_a_worker_that_is_busy_with_an_empty_buffer() -> None:
    """Few tuples that take long do not fill a buffer: only the load tells."""
    owners = GroupOwners(("a", "a", "b"), ("a", "b"))
    reports = [WorkerReport("a", 0.1, {0: 0.7, 1: 0.3}), WorkerReport("b", 0.0, {2: 0.2})]
    rng = np.random.default_rng(0)
    assert decide_groups(owners, reports, GroupSettings(), rng).instructions == ()
    (move,) = decide_groups(owners, reports, GroupSettings(busy_above=0.95), rng).instructions
    assert isinstance(move, GroupMove) and (move.group, move.target) == (1, "b")


def test_wrong_records() -> None:
    with pytest.raises(InputError, match="above a load of 0"):
        GroupSettings(busy_above=0)
    with pytest.raises(InputError, match="occupancy of 2"):
        WorkerReport("a", 2)
    with pytest.raises(InputError, match="0 <= consumers < suppliers"):
        GroupSettings(supplier_above=0.1, consumer_below=0.2)
    with pytest.raises(InputError, match="0 < beta < 1"):
        GroupSettings(beta=1)
    with pytest.raises(InputError, match="at least one worker"):
        GroupOwners((), ())
    with pytest.raises(InputError, match="owned by b"):
        GroupOwners(("b",), ("a",))
    with pytest.raises(InputError, match="one report of each"):
        decide_groups(GroupOwners.deal(2, ["a"]), [], GroupSettings(), np.random.default_rng(0))
