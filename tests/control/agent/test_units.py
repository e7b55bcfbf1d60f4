"""An agent runs what the catalog gives to its node, and tells so."""

from __future__ import annotations

from collections.abc import Callable

from control.agent.facts import (
    alive_elsewhere,
    give,
    is_alive,
    state,
    unit,
)
from control.made_up import AMI, submission
from control.toys import ToyWorker, TroubledCatalog, started
from penstock.control.agent import Agent
from penstock.control.records import UnitRecord
from waiting import until


class TestUnits:
    def test_what_is_given_to_the_node_is_started(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        with started(make()):
            give(catalog, "peaks", "a")
            until(lambda: state(catalog, "peaks") == "running")
            assert worker.running == {"peaks": 1}
            assert worker.units["peaks"].kind == "fragment"
            give(catalog, "readings", "b")
            give(catalog, "readings", "a")
            until(lambda: state(catalog, "readings") == "running")
            assert worker.running == {"peaks": 1, "readings": 2}

    def test_what_is_given_away_is_stopped_and_that_is_told(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        with started(make()):
            give(catalog, "peaks", "a")
            until(lambda: state(catalog, "peaks") == "running")
            give(catalog, "peaks", "b")
            until(lambda: unit(catalog, "peaks").released_epoch == 1)
            assert worker.story == ["start peaks 1", "stop peaks 1 patiently"]
            assert state(catalog, "peaks") == ""

    def test_a_new_epoch_is_a_new_start(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        with started(make()):
            for epoch in (1, 2, 3):
                give(catalog, "peaks", "a")
                until(lambda epoch=epoch: worker.running == {"peaks": epoch})  # type: ignore[misc]
        assert worker.story == [
            "start peaks 1",
            "stop peaks 1 patiently",
            "start peaks 2",
            "stop peaks 2 patiently",
            "start peaks 3",
            "stop peaks 3 patiently",
        ]

    def test_it_waits_for_the_former_owner_to_stop(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        alive_elsewhere(catalog, "b")
        give(catalog, "peaks", "b")
        give(catalog, "peaks", "a")
        with started(make()):
            give(catalog, "readings", "a")
            until(lambda: worker.running == {"readings": 1})
            assert state(catalog, "peaks") == ""
            catalog.release("peaks", 1)
            until(lambda: worker.running == {"readings": 1, "peaks": 2})

    def test_or_for_its_lease_to_run_out(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        alive_elsewhere(catalog, "b", for_s=0.3)
        give(catalog, "peaks", "b")
        give(catalog, "peaks", "a")
        with started(make()):
            until(lambda: worker.running == {"peaks": 2})
            assert not is_alive(catalog, "b")

    def test_what_never_came_to_start_is_given_back_too(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        alive_elsewhere(catalog, "b")
        give(catalog, "peaks", "b")
        give(catalog, "peaks", "a")
        with started(make()):
            give(catalog, "peaks", "c")
            until(lambda: unit(catalog, "peaks").released_epoch == 2)
        assert worker.story == []

    def test_so_is_what_ran_in_a_former_life(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        """A node that was killed and is back at once: the next owner waits for its word."""
        give(catalog, "peaks", "a")
        give(catalog, "peaks", "b")
        with started(make()):
            until(lambda: unit(catalog, "peaks").released_epoch == 1)
        assert worker.story == []

    def test_what_is_dropped_is_stopped(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        alive_elsewhere(catalog, "b")
        give(catalog, "readings", "b")
        give(catalog, "readings", "a")
        give(catalog, "peaks", "a")
        with started(make()):
            until(lambda: state(catalog, "peaks") == "running")
            catalog.drop(1)
            # One of them has never been started.
            until(lambda: [one.released_epoch for one in catalog.units()] == [1, 2])
            assert worker.running == {}
            assert worker.story[-1] == "stop peaks 1 at once"

    def test_what_is_submitted_again_under_the_same_name_is_another(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        with started(make()):
            give(catalog, "peaks", "a")
            until(lambda: state(catalog, "peaks") == "running")
            catalog.drop(1)
            until(lambda: unit(catalog, "peaks").released_epoch == 1)
            catalog.remove(1)
            again = submission(text=AMI.replace("kwh > 3", "kwh > 9"))
            catalog.add(vars(again), [UnitRecord("peaks", "fragment", 1)])
            give(catalog, "peaks", "a")
            until(lambda: state(catalog, "peaks") == "running")
        assert "kwh > 9" in worker.units["peaks"].network.query("peaks").text

    def test_held_back_and_going_on(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        with started(make()):
            give(catalog, "peaks", "a")
            worker.held_back.add("peaks")
            until(lambda: state(catalog, "peaks") == "held back")
            worker.held_back.clear()
            until(lambda: state(catalog, "peaks") == "running")

    def test_what_has_finished_is_not_started_again(
        self, catalog: TroubledCatalog, worker: ToyWorker, make: Callable[..., Agent]
    ) -> None:
        for _ in range(2):
            with started(make()):
                if not worker.story:
                    give(catalog, "peaks", "a")
                worker.finished.add("peaks")
                until(lambda: state(catalog, "peaks") == "finished")
                until(lambda: unit(catalog, "peaks").released_epoch == 1)
                give(catalog, "readings", "a")
                until(lambda: state(catalog, "readings") == "running")
        assert [line for line in worker.story if "peaks" in line] == [
            "start peaks 1",
            "stop peaks 1 at once",
        ]
