"""Units that cannot be stopped, and what is said of the time until a unit works again."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from control.stepped import SteppedNode
from control.toys import ToyWorker, TroubledCatalog, raising
from penstock.control.controller import Controller
from penstock.control.home import Home
from penstock.control.records import MoveRecord, NodeRecord, UnitRecord
from penstock.errors import RunError
from penstock.model.moves import Move

STUCK = "a could not stop peaks: it hangs"


@pytest.fixture
def controller(tmp_path: Path, catalog: TroubledCatalog) -> Controller:
    home = Home(tmp_path / "system")
    home.prepare()
    return Controller(home, catalog, began_s=0.0)


class TwoNodes:
    """Peaks runs on node a, and b is there as well; both go on, with the controller, when asked."""

    def __init__(
        self, catalog: TroubledCatalog, make: Callable[..., SteppedNode], controller: Controller
    ) -> None:
        self.other = ToyWorker()
        self.nodes = (make(), make("b", self.other))
        self._controller = controller
        for node in self.nodes:
            node.settle(0.5)
        catalog.assign(the(catalog), "a")
        self.nodes[0].settle()
        assert runs(catalog)

    def settle(self) -> None:
        for _ in range(10):
            self._controller.tick()
            for node in self.nodes:
                node.settle(0.5)


def the(catalog: TroubledCatalog, name: str = "peaks") -> UnitRecord:
    return next(unit for unit in catalog.units() if unit.name == name)


def the_move(catalog: TroubledCatalog) -> MoveRecord:
    (found,) = catalog.moves()
    return found


def runs(catalog: TroubledCatalog, name: str = "peaks") -> bool:
    found = the(catalog, name)
    return found.state == "running" and found.reported_epoch == found.epoch


def test_what_does_not_stop_is_not_released_and_tried_again(
    catalog: TroubledCatalog, worker: ToyWorker, node: SteppedNode
) -> None:
    catalog.assign(the(catalog), "a")
    node.settle()
    tries: list[float] = []

    def hang() -> None:
        tries.append(node.clock.now_s)
        raise RunError("it hangs")

    worker.before["release"] = hang
    catalog.drop(1)
    node.settle(5)
    assert the(catalog).released_epoch == 0
    assert "peaks" in worker.running
    assert len(tries) in (4, 5)
    assert min(b - a for a, b in pairwise(tries)) >= 1.0 - 1e-6
    del worker.before["release"]
    node.settle()
    assert the(catalog).released_epoch == 1
    assert worker.running == {}


def test_its_move_fails_and_it_stays_where_it_was(
    controller: Controller,
    catalog: TroubledCatalog,
    worker: ToyWorker,
    make: Callable[..., SteppedNode],
) -> None:
    nodes = TwoNodes(catalog, make, controller)
    worker.before["release"] = raising(RunError("it hangs"))
    controller.move([Move("peaks", "b")])
    nodes.settle()
    assert (the_move(catalog).state, the_move(catalog).error) == ("failed", STUCK)
    assert the(catalog).node == "a"
    assert "peaks" not in nodes.other.running
    assert (the(catalog).error, the(catalog).state) == (STUCK, "failed")
    del worker.before["release"]
    nodes.settle()
    assert runs(catalog)
    assert the(catalog).node == "a"
    assert worker.running["peaks"] == the(catalog).epoch


def test_a_failed_one_that_cannot_be_stopped(
    catalog: TroubledCatalog, worker: ToyWorker, node: SteppedNode
) -> None:
    catalog.assign(the(catalog), "a")
    node.settle()
    worker.before["release"] = raising(RunError("it hangs"))
    worker.failures["peaks"] = RunError("no room")
    node.settle(0.5)
    assert the(catalog).state == "failed"
    assert (the(catalog).error, the(catalog).released_epoch) == ("no room", 0)
    del worker.before["release"]
    node.settle()
    assert the(catalog).released_epoch == 1
    assert (the(catalog).state, the(catalog).error) == ("failed", "no room")


def test_the_pause_of_a_move_is_measured(
    controller: Controller, catalog: TroubledCatalog, make: Callable[..., SteppedNode]
) -> None:
    nodes = TwoNodes(catalog, make, controller)
    (begun,) = controller.move([Move("peaks", "b")])
    nodes.settle()
    assert the_move(catalog).state == "done"
    assert the_move(catalog).pause_s is None
    released_s = the(catalog).released_s
    assert released_s is not None
    nodes.other.reached_s = {"started_s": released_s + 1, "first_batch_s": released_s + 1.5}
    nodes.settle()
    assert the_move(catalog).pause_s == pytest.approx(1.5, abs=0.05)
    told = next(event for event in catalog.events() if event.kind == "pause")
    assert told.text.startswith("a → b paused for 1.")
    assert told.numbers["move"] == begun.id
    # One that loses its lease and goes on has not moved again.
    nodes.other.reached_s = {}
    nodes.nodes[1].lose_lease()
    nodes.settle()
    nodes.other.reached_s = {"first_batch_s": released_s + 60}
    nodes.settle()
    assert [event for event in catalog.events() if event.kind == "pause"] == [told]


def test_a_recovery_says_what_it_took(
    controller: Controller, catalog: TroubledCatalog, worker: ToyWorker, node: SteppedNode
) -> None:
    catalog.join(NodeRecord("z", 1, 1, "z-1", lease_until_s=time.time() + 60))
    catalog.assign(the(catalog), "z")
    catalog.report("peaks", 1, "running")
    lost_s = time.time() - 0.5
    catalog.renew("z", "z-1", lost_s)
    controller.tick()
    node.settle()
    assert runs(catalog)
    assigned_s = the(catalog).assigned_s
    assert assigned_s is not None
    worker.reached_s = {
        "taken_over_s": assigned_s + 1,
        "started_s": assigned_s + 3,
        "first_batch_s": assigned_s + 3.5,
    }
    node.settle()
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


def test_an_intake_is_back_once_it_is_started(catalog: TroubledCatalog, node: SteppedNode) -> None:
    catalog.assign(the(catalog, "readings"), "a", lost_s=time.time())
    node.settle()
    told = [event.text for event in catalog.events() if event.kind == "recovery"]
    assert "query started" in told[0]
