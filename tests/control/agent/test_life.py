"""An agent joins, holds its lease, and leaves."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

import pytest

from control.agent.facts import (
    AWAY,
    alive_elsewhere,
    give,
    is_alive,
    node,
    state,
    unit,
)
from control.toys import ToyWorker, TroubledCatalog, once, raising, started
from penstock import __version__
from penstock.control.agent import Agent
from penstock.errors import UnreachableError
from penstock.model.measurements import NodeSample
from waiting import until


class TestLife:
    def test_it_joins_with_a_lease_and_gives_it_back(
        self, catalog: TroubledCatalog, make: Callable[..., Agent]
    ) -> None:
        before_s = time.time()
        with started(make(lease_s=20.0)):
            until(lambda: is_alive(catalog))
            joined = node(catalog)
            assert joined is not None
            told = (joined.cores, joined.memory_bytes, joined.pid, joined.version)
            assert told == (2, 1 << 30, os.getpid(), __version__)
            assert before_s + 20 <= joined.lease_until_s <= time.time() + 20
            until(lambda: (node(catalog) or joined).lease_until_s > joined.lease_until_s)
        assert not is_alive(catalog)

    def test_what_is_measured_is_kept(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        worker.measured = NodeSample(1.0, utilisation=0.5)
        with started(make()):
            until(lambda: catalog.samples("a"))
        assert catalog.samples("a")[0] == worker.measured

    def test_it_goes_on_when_measuring_fails(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        worker.before["measurements"] = raising(ZeroDivisionError())
        with started(make()):
            until(lambda: is_alive(catalog))
            give(catalog, "peaks", "a")
            until(lambda: state(catalog, "peaks") == "running")

    def test_on_leaving_everything_is_stopped_and_that_is_told(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        with started(make()):
            give(catalog, "peaks", "a")
            give(catalog, "readings", "a")
            until(lambda: len(worker.running) == 2)
        assert worker.running == {}
        assert sorted(worker.story[2:]) == ["stop peaks 1 patiently", "stop readings 1 patiently"]
        assert [one.released_epoch for one in catalog.units()] == [1, 1]

    def test_the_lease_is_held_until_everything_has_stopped(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        def slowly() -> None:
            before = node(catalog)
            until(lambda: node(catalog) != before)

        with started(make()):
            give(catalog, "peaks", "a")
            until(lambda: state(catalog, "peaks") == "running")
            worker.before["release"] = slowly
        assert worker.running == {}

    def test_a_renewal_under_way_does_not_bring_the_lease_back(
        self, catalog: TroubledCatalog, make: Callable[..., Agent]
    ) -> None:
        began, go_on = threading.Event(), threading.Event()
        with started(make()) as running:
            catalog.before["renew"] = once(lambda: (began.set(), go_on.wait(10), None)[2])
            assert began.wait(10)
            running.agent.stop()
            threading.Timer(0.1, go_on.set).start()
        assert not is_alive(catalog)

    def test_a_start_under_way_is_waited_for_on_leaving(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        began, go_on = threading.Event(), threading.Event()
        worker.before["start"] = lambda: (began.set(), go_on.wait(10))  # type: ignore[return-value]
        with started(make()) as running:
            give(catalog, "peaks", "a")
            assert began.wait(10)
            running.agent.stop()
            go_on.set()
        assert worker.story == ["start peaks 1", "stop peaks 1 patiently"]
        assert unit(catalog, "peaks").released_epoch == 1

    def test_it_does_not_join_while_another_process_is_the_node(
        self, catalog: TroubledCatalog, make: Callable[..., Agent]
    ) -> None:
        alive_elsewhere(catalog, "a", for_s=0.3)
        former = node(catalog)
        assert former is not None
        with started(make()):
            until(lambda: node(catalog) != former)
            assert time.time() >= former.lease_until_s

    def test_it_need_not_join_to_be_stopped(
        self, catalog: TroubledCatalog, make: Callable[..., Agent]
    ) -> None:
        alive_elsewhere(catalog, "a")
        former = node(catalog)
        with started(make()):
            pass
        assert node(catalog) == former

    def test_an_unreachable_catalog_ends_it_before_it_begins(
        self, catalog: TroubledCatalog, make: Callable[..., Agent]
    ) -> None:
        catalog.before["join"] = raising(AWAY)
        with pytest.raises(UnreachableError, match="the catalog is away"):
            make().run()
