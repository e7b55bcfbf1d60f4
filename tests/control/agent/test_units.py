"""An agent runs what the catalog gives to its node, and tells so."""

from __future__ import annotations

from control.agent.facts import (
    alive_elsewhere,
    give,
    state,
    unit,
)
from control.made_up import AMI, submission
from control.stepped import SteppedNode
from control.toys import ToyWorker, TroubledCatalog
from penstock.control.records import UnitRecord


def test_what_is_given_to_the_node_is_started(
    catalog: TroubledCatalog, worker: ToyWorker, node: SteppedNode
) -> None:
    give(catalog, "peaks", "a")
    node.settle()
    assert state(catalog, "peaks") == "running"
    assert worker.running == {"peaks": 1}
    assert worker.units["peaks"].kind == "fragment"
    give(catalog, "readings", "b")
    give(catalog, "readings", "a")
    node.settle()
    assert state(catalog, "readings") == "running"
    assert worker.running == {"peaks": 1, "readings": 2}


def test_what_is_given_away_is_stopped_and_that_is_told(
    catalog: TroubledCatalog, worker: ToyWorker, node: SteppedNode
) -> None:
    give(catalog, "peaks", "a")
    node.settle()
    assert state(catalog, "peaks") == "running"
    give(catalog, "peaks", "b")
    node.settle()
    assert unit(catalog, "peaks").released_epoch == 1
    assert worker.story == ["start peaks 1", "stop peaks 1 patiently"]
    assert state(catalog, "peaks") == ""


def test_a_new_epoch_is_a_new_start(
    catalog: TroubledCatalog, worker: ToyWorker, node: SteppedNode
) -> None:
    for epoch in (1, 2, 3):
        give(catalog, "peaks", "a")
        node.settle()
        assert worker.running == {"peaks": epoch}
    node.leave()
    assert worker.story == [
        "start peaks 1",
        "stop peaks 1 patiently",
        "start peaks 2",
        "stop peaks 2 patiently",
        "start peaks 3",
        "stop peaks 3 patiently",
    ]


def test_it_waits_for_the_former_owner_to_stop(
    catalog: TroubledCatalog, worker: ToyWorker, node: SteppedNode
) -> None:
    alive_elsewhere(catalog, "b")
    give(catalog, "peaks", "b")
    give(catalog, "peaks", "a")
    give(catalog, "readings", "a")
    node.settle()
    assert worker.running == {"readings": 1}
    assert state(catalog, "peaks") == ""
    catalog.release("peaks", 1)
    node.settle()
    assert worker.running == {"readings": 1, "peaks": 2}


def test_or_for_its_lease_to_run_out(
    catalog: TroubledCatalog, worker: ToyWorker, node: SteppedNode
) -> None:
    alive_elsewhere(catalog, "b")
    give(catalog, "peaks", "b")
    give(catalog, "peaks", "a")
    node.settle()
    assert worker.running == {}
    catalog.renew("b", "other", 0.0)
    node.settle()
    assert worker.running == {"peaks": 2}


def test_what_never_came_to_start_is_given_back_too(
    catalog: TroubledCatalog, worker: ToyWorker, node: SteppedNode
) -> None:
    alive_elsewhere(catalog, "b")
    give(catalog, "peaks", "b")
    give(catalog, "peaks", "a")
    give(catalog, "peaks", "c")
    node.settle()
    assert unit(catalog, "peaks").released_epoch == 2
    assert worker.story == []


def test_so_is_what_ran_in_a_former_life(
    catalog: TroubledCatalog, worker: ToyWorker, node: SteppedNode
) -> None:
    """A node that was killed and is back at once: the next owner waits for its word."""
    give(catalog, "peaks", "a")
    give(catalog, "peaks", "b")
    node.settle()
    assert unit(catalog, "peaks").released_epoch == 1
    assert worker.story == []


def test_what_is_dropped_is_stopped(
    catalog: TroubledCatalog, worker: ToyWorker, node: SteppedNode
) -> None:
    alive_elsewhere(catalog, "b")
    give(catalog, "readings", "b")
    give(catalog, "readings", "a")
    give(catalog, "peaks", "a")
    node.settle()
    assert state(catalog, "peaks") == "running"
    catalog.drop(1)
    # One of them has never been started.
    node.settle()
    assert [one.released_epoch for one in catalog.units()] == [1, 2]
    assert worker.running == {}
    assert worker.story[-1] == "stop peaks 1 at once"


def test_what_is_submitted_again_under_the_same_name_is_another(
    catalog: TroubledCatalog, worker: ToyWorker, node: SteppedNode
) -> None:
    give(catalog, "peaks", "a")
    node.settle()
    assert state(catalog, "peaks") == "running"
    catalog.drop(1)
    node.settle()
    assert unit(catalog, "peaks").released_epoch == 1
    catalog.remove(1)
    again = submission(text=AMI.replace("kwh > 3", "kwh > 9"))
    catalog.add(vars(again), [UnitRecord("peaks", "fragment", 1)])
    give(catalog, "peaks", "a")
    node.settle()
    assert state(catalog, "peaks") == "running"
    assert "kwh > 9" in worker.units["peaks"].network.query("peaks").text


def test_held_back_and_going_on(
    catalog: TroubledCatalog, worker: ToyWorker, node: SteppedNode
) -> None:
    give(catalog, "peaks", "a")
    worker.held_back.add("peaks")
    node.settle()
    assert state(catalog, "peaks") == "held back"
    worker.held_back.clear()
    node.settle()
    assert state(catalog, "peaks") == "running"


def test_what_has_finished_is_not_started_again(
    catalog: TroubledCatalog, worker: ToyWorker, node: SteppedNode
) -> None:
    for _ in range(2):
        if not worker.story:
            give(catalog, "peaks", "a")
        worker.finished.add("peaks")
        node.settle()
        assert state(catalog, "peaks") == "finished"
        node.settle()
        assert unit(catalog, "peaks").released_epoch == 1
        give(catalog, "readings", "a")
        node.settle()
        assert state(catalog, "readings") == "running"
    assert [line for line in worker.story if "peaks" in line] == [
        "start peaks 1",
        "stop peaks 1 at once",
    ]
