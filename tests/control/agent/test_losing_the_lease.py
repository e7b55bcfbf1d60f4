"""An agent that may not go on stops, and comes back if it may."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

import pytest

from control.agent.facts import (
    AWAY,
    Clock,
    alive_elsewhere,
    counted,
    give,
    incarnation,
    node,
    state,
    unit,
)
from control.toys import ToyWorker, TroubledCatalog, once, started
from penstock.control.agent import Agent
from waiting import until


def _wait(asked: str, waiting: list[str], go_on: threading.Event) -> None:
    waiting.append(asked)
    go_on.wait(20)


class TestLosingTheLease:
    def test_one_that_cannot_renew_it_stops_and_comes_back(
        self,
        catalog: TroubledCatalog,
        worker: ToyWorker,
        make: Callable[..., Agent],
        clock: Clock,
    ) -> None:
        with started(make(lease_s=20.0)):
            give(catalog, "peaks", "a")
            until(lambda: state(catalog, "peaks") == "running")
            former = incarnation(catalog)
            tries = counted(catalog, "renew", AWAY)
            clock.skip(10)
            until(lambda: len(tries) > 3)
            assert worker.running == {"peaks": 1}
            joins = counted(catalog, "join", AWAY)
            clock.skip(10)
            until(lambda: len(joins) > 3)
            assert worker.running == {}
            assert incarnation(catalog) == former
            assert unit(catalog, "peaks").released_epoch == 0
            catalog.before.clear()
            until(lambda: worker.running == {"peaks": 1})
            assert incarnation(catalog) != former
        assert worker.story[:3] == ["start peaks 1", "stop peaks 1 at once", "start peaks 1"]

    def test_one_that_waits_for_the_catalog_notices_the_time(
        self,
        catalog: TroubledCatalog,
        worker: ToyWorker,
        make: Callable[..., Agent],
        clock: Clock,
    ) -> None:
        go_on, waiting = threading.Event(), list[str]()
        with started(make(lease_s=20.0)):
            give(catalog, "peaks", "a")
            until(lambda: state(catalog, "peaks") == "running")
            former = incarnation(catalog)
            for asked in ("renew", "changes"):
                catalog.before[asked] = partial(_wait, asked, waiting, go_on)
            until(lambda: sorted(waiting) == ["changes", "renew"])
            clock.skip(20)
            until(lambda: not worker.running)
            go_on.set()
            until(lambda: worker.running == {"peaks": 1})
            assert incarnation(catalog) != former

    def test_a_renewal_that_comes_too_late_is_none(
        self,
        catalog: TroubledCatalog,
        worker: ToyWorker,
        make: Callable[..., Agent],
        clock: Clock,
    ) -> None:
        """Others may have seen the lease run out in between, and have begun to work."""
        with started(make(lease_s=20.0)):
            give(catalog, "peaks", "a")
            until(lambda: state(catalog, "peaks") == "running")
            former = incarnation(catalog)
            catalog.before["renew"] = once(lambda: clock.skip(20))
            until(lambda: "stop peaks 1 at once" in worker.story)
            until(lambda: worker.running == {"peaks": 1})
            assert incarnation(catalog) != former

    def test_a_start_under_way_ends_before_it_joins_again(
        self,
        catalog: TroubledCatalog,
        worker: ToyWorker,
        make: Callable[..., Agent],
        clock: Clock,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        began, go_on = threading.Event(), threading.Event()
        worker.before["start"] = once(lambda: (began.set(), go_on.wait(20), None)[2])
        with started(make(lease_s=20.0)):
            give(catalog, "peaks", "a")
            assert began.wait(10)
            joins = counted(catalog, "join")
            clock.skip(20)
            until(lambda: "node a stops its units: its lease ran out" in caplog.text)
            give(catalog, "peaks", "b")
            assert joins == []
            go_on.set()
            until(lambda: len(joins) == 1)
            assert worker.story == ["start peaks 1", "stop peaks 1 at once"]
            until(lambda: unit(catalog, "peaks").released_epoch == 1)

    def test_one_whose_place_another_process_has_taken_stops_for_good(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        with started(make()) as running:
            give(catalog, "peaks", "a")
            until(lambda: state(catalog, "peaks") == "running")
            alive_elsewhere(catalog, "a")
            taken = node(catalog)
            until(lambda: running.has_ended)
        assert worker.story == ["start peaks 1", "stop peaks 1 at once"]
        assert node(catalog) == taken
        # What the other process may be running already must not be given out to a third.
        assert unit(catalog, "peaks").released_epoch == 0

    def test_what_is_given_up_meanwhile_is_not_stopped_again(
        self,
        catalog: TroubledCatalog,
        worker: ToyWorker,
        make: Callable[..., Agent],
        clock: Clock,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """The order to release it came too late: its owner had given it up, and has it again."""
        agent = make(lease_s=20.0)
        with started(agent):
            give(catalog, "peaks", "a")
            until(lambda: state(catalog, "peaks") == "running")
            clock.skip(20)
            until(
                lambda: worker.story == ["start peaks 1", "stop peaks 1 at once", "start peaks 1"]
            )
            agent._release("peaks", 7)
            worker.finished.add("peaks")
            until(lambda: state(catalog, "peaks") == "finished")
        assert "could not be stopped" not in caplog.text
