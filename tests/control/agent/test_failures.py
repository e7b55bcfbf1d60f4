"""What does not start, fails, or cannot be told or stopped."""

from __future__ import annotations

import errno

import pytest

from control.agent.facts import (
    AWAY,
    give,
    state,
    unit,
)
from control.stepped import SteppedNode
from control.toys import ToyWorker, TroubledCatalog, once, raising
from penstock.errors import FullDiskError, RunError


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (RunError("no room", hint="Free some."), "no room. Free some."),
        (ValueError("odd"), "ValueError: odd"),
    ],
)
def test_what_does_not_start_is_given_back(
    catalog: TroubledCatalog,
    worker: ToyWorker,
    node: SteppedNode,
    error: Exception,
    text: str,
) -> None:
    """Otherwise the node it goes back to would wait for ever."""
    worker.before["start"] = once(raising(error))
    give(catalog, "peaks", "a")
    node.settle()
    assert unit(catalog, "peaks").released_epoch == 1
    assert state(catalog, "peaks") == "failed"
    assert unit(catalog, "peaks").error == text
    give(catalog, "readings", "a")
    node.settle()
    assert state(catalog, "readings") == "running"
    assert worker.running == {"readings": 1}
    give(catalog, "peaks", "a")
    node.settle()
    assert state(catalog, "peaks") == "running"
    assert unit(catalog, "peaks").error == ""


def test_what_fails_is_stopped_at_once(
    catalog: TroubledCatalog, worker: ToyWorker, node: SteppedNode
) -> None:
    give(catalog, "peaks", "a")
    node.settle()
    assert state(catalog, "peaks") == "running"
    worker.failures["peaks"] = RunError("no room", hint="Free some.")
    node.settle()
    assert unit(catalog, "peaks").released_epoch == 1
    assert state(catalog, "peaks") == "failed"
    assert unit(catalog, "peaks").error == "no room. Free some."
    assert worker.story == ["start peaks 1", "stop peaks 1 at once"]


@pytest.mark.parametrize("at", ["work", "start"])
def test_what_has_no_room_on_the_disk_waits_for_some(
    catalog: TroubledCatalog,
    worker: ToyWorker,
    node: SteppedNode,
    at: str,
) -> None:
    full = FullDiskError("the disk is full")
    worker.room = False
    if at == "start":
        worker.before["start"] = once(raising(OSError(errno.ENOSPC, "the disk is full")))
    give(catalog, "peaks", "a")
    if at == "work":
        node.settle()
        assert state(catalog, "peaks") == "running"
        worker.failures["peaks"] = full
    node.settle()
    assert state(catalog, "peaks") == "held back"
    assert "the disk is full" in unit(catalog, "peaks").error
    assert any(text.startswith("peaks waits for room: ") for text in node.warnings)
    give(catalog, "readings", "a")
    node.settle()
    assert state(catalog, "readings") == "running"
    assert "peaks" not in worker.running
    worker.room = True
    node.settle()
    assert state(catalog, "peaks") == "running"
    assert unit(catalog, "peaks").error == ""
    # It was the same owner all along: nobody was asked, nothing was counted.
    assert unit(catalog, "peaks").epoch == 1
    assert unit(catalog, "peaks").restarts == 0


def test_what_waits_for_room_can_be_moved(
    catalog: TroubledCatalog, worker: ToyWorker, node: SteppedNode
) -> None:
    worker.room = False
    give(catalog, "peaks", "a")
    node.settle()
    assert state(catalog, "peaks") == "running"
    worker.failures["peaks"] = FullDiskError("the disk is full")
    node.settle()
    assert state(catalog, "peaks") == "held back"
    give(catalog, "peaks", "b")
    node.settle()
    assert unit(catalog, "peaks").released_epoch == 1


def test_what_has_failed_is_not_started_again_by_the_next_process(
    catalog: TroubledCatalog, worker: ToyWorker, node: SteppedNode
) -> None:
    give(catalog, "peaks", "a")
    catalog.report("peaks", 1, "failed", "no room")
    catalog.release("peaks", 1)
    give(catalog, "readings", "a")
    node.settle()
    assert state(catalog, "readings") == "running"
    assert not any("peaks" in line for line in worker.story)


@pytest.mark.parametrize("asked", ["report", "release", "changes"])
def test_what_could_not_be_told_is_told_later(
    catalog: TroubledCatalog,
    worker: ToyWorker,
    node: SteppedNode,
    asked: str,
) -> None:
    catalog.before[asked] = once(raising(AWAY))
    give(catalog, "peaks", "a")
    node.settle()
    assert state(catalog, "peaks") == "running"
    catalog.before[asked] = once(raising(AWAY))
    worker.failures["peaks"] = RunError("no room")
    node.settle()
    assert unit(catalog, "peaks").released_epoch == 1
    assert state(catalog, "peaks") == "failed"
    give(catalog, "peaks", "a")
    node.settle()
    assert state(catalog, "peaks") == "running"
    catalog.before[asked] = once(raising(AWAY))
    give(catalog, "peaks", "b")
    node.settle()
    assert unit(catalog, "peaks").released_epoch == 2


def test_what_cannot_be_stopped_cleanly_is_let_go_all_the_same(
    catalog: TroubledCatalog, worker: ToyWorker, node: SteppedNode
) -> None:
    give(catalog, "peaks", "a")
    node.settle()
    assert state(catalog, "peaks") == "running"
    worker.before["release"] = once(raising(OSError("stuck")))
    give(catalog, "peaks", "b")
    node.settle()
    assert unit(catalog, "peaks").released_epoch == 1
