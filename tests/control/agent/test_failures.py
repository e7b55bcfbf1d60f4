"""What does not start, fails, or cannot be told or stopped."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from control.agent.facts import (
    AWAY,
    give,
    state,
    unit,
)
from control.toys import ToyWorker, TroubledCatalog, once, raising, started
from penstock.control.agent import Agent
from penstock.errors import FullDiskError, RunError
from waiting import until


class TestFailures:
    @pytest.mark.parametrize(
        ("error", "text"),
        [
            (RunError("no room", hint="Free some."), "no room. Free some."),
            (ValueError("odd"), "ValueError: odd"),
        ],
    )
    def test_what_does_not_start_is_given_back(
        self,
        catalog: TroubledCatalog,
        worker: ToyWorker,
        make: Callable[..., Agent],
        error: Exception,
        text: str,
    ) -> None:
        """Otherwise the node it goes back to would wait for ever."""
        worker.before["start"] = once(raising(error))
        with started(make()):
            give(catalog, "peaks", "a")
            until(lambda: unit(catalog, "peaks").released_epoch == 1)
            assert state(catalog, "peaks") == "failed"
            assert unit(catalog, "peaks").error == text
            give(catalog, "readings", "a")
            until(lambda: state(catalog, "readings") == "running")
            assert worker.running == {"readings": 1}
            give(catalog, "peaks", "a")
            until(lambda: state(catalog, "peaks") == "running")
            assert unit(catalog, "peaks").error == ""

    def test_what_fails_is_stopped_at_once(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        with started(make()):
            give(catalog, "peaks", "a")
            until(lambda: state(catalog, "peaks") == "running")
            worker.failures["peaks"] = RunError("no room", hint="Free some.")
            until(lambda: unit(catalog, "peaks").released_epoch == 1)
            assert state(catalog, "peaks") == "failed"
            assert unit(catalog, "peaks").error == "no room. Free some."
        assert worker.story == ["start peaks 1", "stop peaks 1 at once"]

    @pytest.mark.parametrize("at", ["work", "start"])
    def test_what_has_no_room_on_the_disk_waits_for_some(
        self,
        catalog: TroubledCatalog,
        worker: ToyWorker,
        make: Callable[..., Agent],
        at: str,
    ) -> None:
        full = FullDiskError("the disk is full")
        worker.room = False
        if at == "start":
            worker.before["start"] = once(raising(OSError(errno.ENOSPC, "the disk is full")))
        with started(make()):
            give(catalog, "peaks", "a")
            if at == "work":
                until(lambda: state(catalog, "peaks") == "running")
                worker.failures["peaks"] = full
            until(lambda: state(catalog, "peaks") == "held back")
            assert "the disk is full" in unit(catalog, "peaks").error
            give(catalog, "readings", "a")
            until(lambda: state(catalog, "readings") == "running")
            assert "peaks" not in worker.running
            worker.room = True
            until(lambda: state(catalog, "peaks") == "running")
            assert unit(catalog, "peaks").error == ""
        # It was the same owner all along: nobody was asked, nothing was counted.
        assert unit(catalog, "peaks").epoch == 1
        assert unit(catalog, "peaks").restarts == 0

    def test_what_waits_for_room_can_be_moved(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        worker.room = False
        with started(make()):
            give(catalog, "peaks", "a")
            until(lambda: state(catalog, "peaks") == "running")
            worker.failures["peaks"] = FullDiskError("the disk is full")
            until(lambda: state(catalog, "peaks") == "held back")
            give(catalog, "peaks", "b")
            until(lambda: unit(catalog, "peaks").released_epoch == 1)

    def test_what_has_failed_is_not_started_again_by_the_next_process(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        give(catalog, "peaks", "a")
        catalog.report("peaks", 1, "failed", "no room")
        catalog.release("peaks", 1)
        with started(make()):
            give(catalog, "readings", "a")
            until(lambda: state(catalog, "readings") == "running")
        assert not any("peaks" in line for line in worker.story)

    @pytest.mark.parametrize("asked", ["report", "release", "changes"])
    def test_what_could_not_be_told_is_told_later(
        self,
        catalog: TroubledCatalog,
        worker: ToyWorker,
        make: Callable[..., Agent],
        asked: str,
    ) -> None:
        with started(make()):
            catalog.before[asked] = once(raising(AWAY))
            give(catalog, "peaks", "a")
            until(lambda: state(catalog, "peaks") == "running")
            catalog.before[asked] = once(raising(AWAY))
            worker.failures["peaks"] = RunError("no room")
            until(lambda: unit(catalog, "peaks").released_epoch == 1)
            assert state(catalog, "peaks") == "failed"
            give(catalog, "peaks", "a")
            until(lambda: state(catalog, "peaks") == "running")
            catalog.before[asked] = once(raising(AWAY))
            give(catalog, "peaks", "b")
            until(lambda: unit(catalog, "peaks").released_epoch == 2)

    def test_what_cannot_be_stopped_cleanly_is_let_go_all_the_same(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        with started(make()):
            give(catalog, "peaks", "a")
            until(lambda: state(catalog, "peaks") == "running")
            worker.before["release"] = once(raising(OSError("stuck")))
            give(catalog, "peaks", "b")
            until(lambda: unit(catalog, "peaks").released_epoch == 1)
