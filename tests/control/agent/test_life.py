"""A node joins, holds its lease, and leaves."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import pytest

from control.agent.conftest import LEASE_S
from control.agent.facts import AWAY, alive_elsewhere, give, is_alive, record, state, unit
from control.stepped import SteppedNode
from control.toys import ToyWorker, TroubledCatalog, once, raising
from penstock import __version__
from penstock.control.node_events import AskedToLeave
from penstock.control.node_instructions import GiveBackLease, RenewLease, StartUnit, StopUnit
from penstock.errors import UnreachableError
from penstock.model.measurements import NodeSample

Make = Callable[..., SteppedNode]


def test_it_joins_with_a_lease_and_gives_it_back(catalog: TroubledCatalog, make: Make) -> None:
    before_s, node = time.time(), make()
    node.settle(0.5)
    joined = record(catalog)
    told = (joined.cores, joined.memory_bytes, joined.pid, joined.version)
    assert told == (2, 1 << 30, os.getpid(), __version__)
    assert before_s + LEASE_S <= joined.lease_until_s <= time.time() + LEASE_S
    node.settle()
    assert record(catalog).lease_until_s > joined.lease_until_s
    node.leave()
    assert not is_alive(catalog)


def test_it_renews_its_lease_every_second(node: SteppedNode) -> None:
    node.settle(10)
    assert 9 <= sum(isinstance(one, RenewLease) for one in node.done) <= 10


def test_what_is_measured_is_kept(catalog: TroubledCatalog, worker: ToyWorker, make: Make) -> None:
    worker.measured = NodeSample(1.0, utilisation=0.5)
    make().settle(10)
    assert catalog.samples("a") == (worker.measured,) * 5


def test_it_goes_on_when_measuring_fails(
    catalog: TroubledCatalog, worker: ToyWorker, node: SteppedNode
) -> None:
    worker.before["measurements"] = raising(ZeroDivisionError())
    give(catalog, "peaks", "a")
    node.settle()
    assert state(catalog, "peaks") == "running"


def test_on_leaving_everything_is_stopped_and_that_is_told(
    catalog: TroubledCatalog, worker: ToyWorker, node: SteppedNode
) -> None:
    give(catalog, "peaks", "a")
    give(catalog, "readings", "a")
    node.settle()
    node.leave()
    assert worker.running == {}
    assert sorted(worker.story[2:]) == ["stop peaks 1 patiently", "stop readings 1 patiently"]
    assert [one.released_epoch for one in catalog.units()] == [1, 1]


def test_the_lease_is_held_until_everything_has_stopped(
    catalog: TroubledCatalog, worker: ToyWorker, node: SteppedNode
) -> None:
    give(catalog, "peaks", "a")
    node.settle()
    node.held = lambda one: isinstance(one, StopUnit)
    node.feed(AskedToLeave())
    before_s = record(catalog).lease_until_s
    node.settle(2 * LEASE_S)
    assert not node.agent.state.has_ended
    assert record(catalog).lease_until_s > before_s
    node.leave()
    assert worker.running == {}
    assert not is_alive(catalog)


def test_what_does_not_stop_is_left_to_its_lease(
    catalog: TroubledCatalog, worker: ToyWorker, node: SteppedNode
) -> None:
    give(catalog, "peaks", "a")
    node.settle()
    worker.before["release"] = raising(OSError("stuck"))
    node.leave()
    assert unit(catalog, "peaks").released_epoch == 0
    assert is_alive(catalog)


def test_a_renewal_under_way_does_not_bring_the_lease_back(
    catalog: TroubledCatalog, node: SteppedNode
) -> None:
    node.held = lambda one: isinstance(one, RenewLease)
    node.settle(2)
    node.feed(AskedToLeave())
    node.settle(1)
    assert not any(isinstance(one, GiveBackLease) for one in node.done)
    node.leave()
    assert isinstance(node.done[-1], GiveBackLease)
    assert not is_alive(catalog)


def test_a_start_under_way_is_waited_for_on_leaving(
    catalog: TroubledCatalog, worker: ToyWorker, node: SteppedNode
) -> None:
    give(catalog, "peaks", "a")
    worker.before["start"] = lambda: node.agent.state.handle(AskedToLeave(), node.clock()) and None
    node.settle()
    assert worker.story == ["start peaks 1", "stop peaks 1 patiently"]
    assert unit(catalog, "peaks").released_epoch == 1


def test_a_start_that_was_not_begun_is_not_on_leaving(
    catalog: TroubledCatalog, worker: ToyWorker, node: SteppedNode
) -> None:
    give(catalog, "peaks", "a")
    node.held = lambda one: isinstance(one, StartUnit)
    node.settle()
    node.leave()
    assert worker.story == []
    assert unit(catalog, "peaks").released_epoch == 0


def test_it_does_not_join_while_another_process_is_the_node(
    catalog: TroubledCatalog, make: Make
) -> None:
    alive_elsewhere(catalog, "a")
    former, node = record(catalog), make()
    node.settle()
    assert record(catalog) == former
    catalog.renew("a", "other", 0.0)
    node.settle()
    assert is_alive(catalog)
    assert record(catalog).incarnation != former.incarnation


def test_it_need_not_join_to_be_stopped(catalog: TroubledCatalog, make: Make) -> None:
    alive_elsewhere(catalog, "a")
    former, node = record(catalog), make()
    node.settle(0.5)
    node.leave()
    assert record(catalog) == former


def test_it_leaves_although_the_catalog_is_away(
    catalog: TroubledCatalog, worker: ToyWorker, node: SteppedNode
) -> None:
    give(catalog, "peaks", "a")
    node.settle()
    for asked in ("release", "renew", "changes", "report"):
        catalog.before[asked] = raising(AWAY)
    node.leave()
    assert worker.running == {}


def test_an_unreachable_catalog_ends_it_before_it_begins(
    catalog: TroubledCatalog, make: Make
) -> None:
    catalog.before["join"] = raising(AWAY)
    with pytest.raises(UnreachableError, match="the catalog is away"):
        make().agent.run()


def test_with_threads_it_does_the_same(
    catalog: TroubledCatalog, worker: ToyWorker, make: Make
) -> None:
    """Everything at once: it joins, starts, and leaves as soon as its unit was started."""
    node = make()
    node.clock.__class__ = type("Real", (), {"__call__": lambda self: time.monotonic()})
    give(catalog, "peaks", "a")
    worker.before["start"] = once(node.agent.stop)
    node.agent.run()
    assert worker.story == ["start peaks 1", "stop peaks 1 patiently"]
    assert unit(catalog, "peaks").released_epoch == 1
    assert not is_alive(catalog)
