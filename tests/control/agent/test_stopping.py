"""Units that cannot be stopped, and what is said of the time until a unit works again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from control.toys import ToyWorker, TroubledCatalog, raising, started
from penstock.control.agent import Agent
from penstock.control.controller import Controller, MoveRequest
from penstock.control.home import Home
from penstock.control.records import MoveRecord, NodeRecord, UnitRecord
from penstock.errors import RunError
from waiting import until

STUCK = "a could not stop peaks: it hangs"


@pytest.fixture
def controller(tmp_path: Path, catalog: TroubledCatalog) -> Controller:
    home = Home(tmp_path / "system")
    home.prepare()
    return Controller(home, catalog, began_s=0.0)


@contextmanager
def on_the_first_of_two(
    catalog: TroubledCatalog, make: Callable[..., Agent], other: ToyWorker
) -> Iterator[None]:
    """Peaks runs on node a, and b is there as well."""
    with started(make()), started(make(name="b", own=other)):
        until(lambda: len(catalog.nodes()) == 2)
        catalog.assign(the(catalog), "a")
        until(lambda: runs(catalog))
        yield


def the(catalog: TroubledCatalog, name: str = "peaks") -> UnitRecord:
    return next(unit for unit in catalog.units() if unit.name == name)


def the_move(catalog: TroubledCatalog) -> MoveRecord:
    (found,) = catalog.moves()
    return found


def runs(catalog: TroubledCatalog, name: str = "peaks") -> bool:
    found = the(catalog, name)
    return found.state == "running" and found.reported_epoch == found.epoch


def test_what_does_not_stop_is_not_released_and_tried_again(
    catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
) -> None:
    with started(make()):
        catalog.assign(the(catalog), "a")
        until(lambda: runs(catalog))
        tries: list[float] = []

        def hang() -> None:
            tries.append(time.monotonic())
            raise RunError("it hangs")

        worker.before["release"] = hang
        catalog.drop(1)
        until(lambda: len(tries) >= 3)
        assert the(catalog).released_epoch == 0
        assert "peaks" in worker.running
        assert min(b - a for a, b in pairwise(tries)) >= 0.05
        del worker.before["release"]
        until(lambda: the(catalog).released_epoch == 1)
        assert worker.running == {}


def test_its_move_fails_and_it_stays_where_it_was(
    controller: Controller, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
) -> None:
    other = ToyWorker()
    with on_the_first_of_two(catalog, make, other):
        worker.before["release"] = raising(RunError("it hangs"))
        controller.move([MoveRequest("peaks", "b")])

        def failed() -> bool:
            controller.tick()
            return the_move(catalog).state == "failed"

        until(failed)
        assert the_move(catalog).error == STUCK
        assert the(catalog).node == "a"
        assert "peaks" not in other.running

        def told() -> bool:
            controller.tick()
            return the(catalog).error == STUCK and the(catalog).state == "failed"

        until(told)
        del worker.before["release"]

        def well() -> bool:
            controller.tick()
            return runs(catalog)

        until(well)
        assert the(catalog).node == "a"
        assert worker.running["peaks"] == the(catalog).epoch


def test_a_failed_one_that_cannot_be_stopped(
    catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
) -> None:
    with started(make()):
        catalog.assign(the(catalog), "a")
        until(lambda: runs(catalog))
        worker.before["release"] = raising(RunError("it hangs"))
        worker.failures["peaks"] = RunError("no room")
        until(lambda: the(catalog).state == "failed")
        assert (the(catalog).error, the(catalog).released_epoch) == ("no room", 0)
        del worker.before["release"]
        until(lambda: the(catalog).released_epoch == 1)
        assert (the(catalog).state, the(catalog).error) == ("failed", "no room")


def test_the_pause_of_a_move_is_measured(
    controller: Controller, catalog: TroubledCatalog, make: Callable[..., Agent]
) -> None:
    other = ToyWorker()
    with on_the_first_of_two(catalog, make, other):
        (begun,) = controller.move([MoveRequest("peaks", "b")])

        def done() -> bool:
            controller.tick()
            return the_move(catalog).state == "done"

        until(done)
        assert the_move(catalog).pause_s is None
        released_s = the(catalog).released_s
        assert released_s is not None
        other.reached_s = {"started_s": released_s + 1, "first_batch_s": released_s + 1.5}
        until(lambda: the_move(catalog).pause_s is not None)
        assert the_move(catalog).pause_s == pytest.approx(1.5, abs=0.05)
        until(lambda: catalog.events()[-1].kind == "pause")
        told = catalog.events()[-1]
        assert told.text.startswith("a → b paused for 1.")
        assert told.numbers["move"] == begun.id


def test_a_recovery_says_what_it_took(
    controller: Controller, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
) -> None:
    catalog.join(NodeRecord("z", 1, 1, "z-1", lease_until_s=time.time() + 60))
    with started(make()):
        until(lambda: len(catalog.nodes()) == 2)
        catalog.assign(the(catalog), "z")
        catalog.report("peaks", 1, "running")
        lost_s = time.time() - 0.5
        catalog.join(NodeRecord("z", 1, 1, "z-1", lease_until_s=lost_s))
        controller.tick()
        until(lambda: runs(catalog))
        assigned_s = the(catalog).assigned_s
        assert assigned_s is not None
        worker.reached_s = {
            "taken_over_s": assigned_s + 1,
            "started_s": assigned_s + 3,
            "first_batch_s": assigned_s + 3.5,
        }
        until(lambda: any(event.kind == "recovery" for event in catalog.events()))
    told = next(event for event in catalog.events() if event.kind == "recovery")
    assert (told.subject, told.numbers["move"]) == ("peaks", the_move(catalog).id)
    spent = {key: told.numbers[key] for key in ("silence_s", "take_over_s", "start_s")}
    assert spent == {
        "silence_s": 20.0,
        "take_over_s": pytest.approx(1, abs=0.05),
        "start_s": pytest.approx(2, abs=0.05),
    }
    assert told.numbers["first_batch_s"] == pytest.approx(0.5, abs=0.05)
    assert told.text.startswith("works on a after 2")
    assert "silence 20.0 s, decision " in told.text
    controller.tick()
    found = the_move(catalog)
    assert (found.by, found.source, found.target, found.state) == ("failover", "z", "a", "done")
    assert found.reason == "node z fell silent"
    assert found.pause_s == told.numbers["pause_s"]
    assert found.numbers["spent"]["silence_s"] == 20.0  # type: ignore[index]


def test_an_intake_is_back_once_it_is_started(
    catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
) -> None:
    with started(make()):
        until(lambda: catalog.nodes())
        catalog.assign(the(catalog, "readings"), "a", lost_s=time.time())
        until(lambda: any(event.kind == "recovery" for event in catalog.events()))
    assert "query started" in catalog.events()[-1].text
