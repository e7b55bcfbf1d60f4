"""A node that may not go on stops, and comes back if it may."""

from __future__ import annotations

from control.agent.conftest import LEASE_S
from control.agent.facts import AWAY, alive_elsewhere, give, record, state, unit
from control.stepped import SteppedNode
from control.toys import ToyWorker, TroubledCatalog, raising
from penstock.control.node_instructions import (
    JoinSystem,
    ReadCatalog,
    RenewLease,
    StartUnit,
    StopUnit,
)


def test_one_that_cannot_renew_it_stops_and_comes_back(
    catalog: TroubledCatalog, worker: ToyWorker, node: SteppedNode
) -> None:
    give(catalog, "peaks", "a")
    node.settle()
    former = record(catalog).incarnation
    catalog.before["renew"] = raising(AWAY)
    node.settle(LEASE_S / 2)
    assert worker.running == {"peaks": 1}
    catalog.before["join"] = raising(AWAY)
    node.settle(LEASE_S)
    assert worker.running == {}
    assert record(catalog).incarnation == former
    assert unit(catalog, "peaks").released_epoch == 0
    catalog.before.clear()
    node.settle()
    assert worker.running == {"peaks": 1}
    assert record(catalog).incarnation != former
    assert worker.story[:3] == ["start peaks 1", "stop peaks 1 at once", "start peaks 1"]
    assert node.warnings == ["node a stops its units: its lease ran out: it could not be renewed"]


def test_one_that_waits_for_the_catalog_notices_the_time(
    catalog: TroubledCatalog, worker: ToyWorker, node: SteppedNode
) -> None:
    give(catalog, "peaks", "a")
    node.settle()
    former = record(catalog).incarnation
    node.held = lambda one: isinstance(one, RenewLease | ReadCatalog | JoinSystem)
    node.settle(LEASE_S)
    assert worker.running == {}
    why = "its lease ran out: the catalog has not answered for "
    assert node.warnings[0].startswith(f"node a stops its units: {why}")
    node.held = lambda _: False
    node.settle()
    assert worker.running == {"peaks": 1}
    assert record(catalog).incarnation != former


def test_one_that_stood_still_says_so(
    catalog: TroubledCatalog, worker: ToyWorker, node: SteppedNode
) -> None:
    give(catalog, "peaks", "a")
    node.settle()
    node.clock.now_s += LEASE_S
    node.settle()
    assert worker.story[:3] == ["start peaks 1", "stop peaks 1 at once", "start peaks 1"]
    stood_still = f"this process stood still for {LEASE_S + 0.1:.1f} s"
    assert node.warnings == [f"node a stops its units: its lease ran out: {stood_still}"]


def test_a_renewal_that_comes_too_late_is_none(
    catalog: TroubledCatalog, worker: ToyWorker, node: SteppedNode
) -> None:
    """Others may have seen the lease run out in between, and have begun to work."""
    give(catalog, "peaks", "a")
    node.settle()
    former = record(catalog).incarnation

    def wait() -> None:
        node.clock.now_s += LEASE_S
        catalog.before.clear()

    catalog.before["renew"] = wait
    node.settle()
    assert worker.story[:3] == ["start peaks 1", "stop peaks 1 at once", "start peaks 1"]
    assert record(catalog).incarnation != former


def test_a_start_under_way_ends_before_it_joins_again(
    catalog: TroubledCatalog, worker: ToyWorker, node: SteppedNode
) -> None:
    give(catalog, "peaks", "a")

    def lose() -> None:
        worker.before.clear()
        node.held = lambda one: isinstance(one, StopUnit | RenewLease)
        node.settle(LEASE_S + 1)
        why = "its lease ran out: the catalog has not answered for "
        assert node.warnings[0].startswith(f"node a stops its units: {why}")
        assert not any(isinstance(one, JoinSystem) for one in node.to_do)

    worker.before["start"] = lose
    node.settle(1)
    give(catalog, "peaks", "b")
    assert worker.story == ["start peaks 1"]
    assert not any(isinstance(one, JoinSystem) for one in node.to_do)
    node.held = lambda one: isinstance(one, RenewLease)
    node.settle()
    assert worker.story == ["start peaks 1", "stop peaks 1 at once"]
    assert unit(catalog, "peaks").released_epoch == 1


def test_what_was_to_be_started_in_a_former_life_is_not(
    catalog: TroubledCatalog, worker: ToyWorker, node: SteppedNode
) -> None:
    give(catalog, "peaks", "a")
    node.held = lambda one: isinstance(one, StartUnit)
    node.settle(1)
    node.lose_lease()
    give(catalog, "peaks", "b")
    node.held = lambda _: False
    node.settle()
    assert worker.story == []
    assert unit(catalog, "peaks").released_epoch == 1


def test_one_whose_place_another_process_has_taken_stops_for_good(
    catalog: TroubledCatalog, worker: ToyWorker, node: SteppedNode
) -> None:
    give(catalog, "peaks", "a")
    node.settle()
    alive_elsewhere(catalog, "a")
    taken = record(catalog)
    node.settle()
    assert node.agent.state.has_ended
    assert worker.story == ["start peaks 1", "stop peaks 1 at once"]
    assert record(catalog) == taken
    # What the other process may be running already must not be given out to a third.
    assert unit(catalog, "peaks").released_epoch == 0
    assert node.warnings[-1] == "node a ends: another process has become this node"


def test_what_was_given_up_and_is_back_can_finish(
    catalog: TroubledCatalog, worker: ToyWorker, node: SteppedNode
) -> None:
    give(catalog, "peaks", "a")
    node.settle()
    node.lose_lease()
    node.settle()
    assert worker.story == ["start peaks 1", "stop peaks 1 at once", "start peaks 1"]
    worker.finished.add("peaks")
    node.settle()
    assert state(catalog, "peaks") == "finished"


def test_what_could_not_be_stopped_without_a_lease_is_tried_again(
    catalog: TroubledCatalog, worker: ToyWorker, node: SteppedNode
) -> None:
    give(catalog, "peaks", "a")
    node.settle()
    worker.before["release"] = raising(OSError("stuck"))
    catalog.before["join"] = raising(AWAY)
    node.lose_lease()
    node.settle()
    tried = sum(isinstance(one, StopUnit) for one in node.done)
    assert 3 <= tried <= 4
    worker.before.clear()
    node.settle(1.5)
    assert worker.running == {}
    catalog.before.clear()
    node.settle()
    assert worker.running == {"peaks": 1}
