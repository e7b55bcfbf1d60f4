"""What controllers decide by themselves, and that assignments change one at a time."""

from __future__ import annotations

import threading

import pytest

from control.controller.facts import run, story, the
from control.made_up import AMI
from control.toys import TroubledCatalog, once, raising
from penstock.control.controller import Controller, tick_always
from penstock.control.home import Home
from penstock.control.records import NodeRecord
from penstock.control.returning import AWAITED_AFTER_STANDSTILL_S
from penstock.errors import UnreachableError
from penstock.model.moves import Move
from waiting import until


def test_new_units_are_given_to_nodes(controller: Controller, catalog: TroubledCatalog) -> None:
    controller.submit("ami", "yaml", AMI, ".")
    controller.tick()
    assert {unit.name: unit.node for unit in catalog.units()} == {"peaks": "a", "readings": "b"}
    assert story(catalog)[1:] == ["assign peaks: new", "assign readings: new"]
    controller.tick()
    assert len(story(catalog)) == 3


def test_nothing_is_taken_from_a_node_that_could_not_be_heard(
    ami: Controller, catalog: TroubledCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole machine stood still; who has nothing to stop is back first."""
    ami.tick()
    woke_s = catalog.now_s() + 1_000
    monkeypatch.setattr(catalog, "now_s", lambda: woke_s)
    catalog.join(NodeRecord("b", 1, 1 << 30, "b-2", lease_until_s=woke_s + 60))
    ami.tick()
    assert {unit.node for unit in catalog.units()} == {"a"}
    for after_s in range(1, int(AWAITED_AFTER_STANDSTILL_S) + 1):
        assert {unit.node for unit in catalog.units()} == {"a"}
        monkeypatch.setattr(catalog, "now_s", lambda now_s=woke_s + after_s: now_s)
        ami.tick()
    assert {unit.node for unit in catalog.units()} == {"b"}, "one that never came back"


def test_two_who_decide_at_once_do_no_harm(
    controller: Controller, catalog: TroubledCatalog, home: Home
) -> None:
    controller.submit("ami", "yaml", AMI, ".")
    for unit in catalog.units():
        run(catalog, unit, "z")
    both = [controller, Controller(home, catalog, began_s=0.0)]
    barrier = threading.Barrier(2)

    def decide(one: Controller) -> None:
        barrier.wait(10)
        one.tick()

    threads = [threading.Thread(target=decide, args=(one,)) for one in both]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert [unit.epoch for unit in catalog.units()] == [2, 2]
    assert story(catalog).count("assign peaks: node z fell silent") == 1


def test_a_failed_unit_is_started_again_three_times(
    ami: Controller, catalog: TroubledCatalog
) -> None:
    for _ in range(6):
        epoch = the(catalog, "peaks").epoch
        catalog.report("peaks", epoch, "failed", "no room")
        catalog.release("peaks", epoch)
        ami.tick()
    assert (the(catalog, "peaks").restarts, the(catalog, "peaks").epoch) == (3, 4)


def test_trouble_in_one_tick_does_not_end_them(
    controller: Controller, catalog: TroubledCatalog, caplog: pytest.LogCaptureFixture
) -> None:
    controller.submit("ami", "yaml", AMI, ".")
    rounds = iter([False, False, True])
    trouble = once(raising(UnreachableError("the catalog is away")))
    tick_always([trouble, controller.tick], lambda _: next(rounds))
    assert "a decision could not be made" in caplog.text
    assert all(unit.node for unit in catalog.units())


@pytest.mark.parametrize("work", ["move", "tick", "submit"])
def test_others_wait(ami: Controller, catalog: TroubledCatalog, work: str) -> None:
    def move() -> None:
        ami.move([Move("peaks", "b")])

    def submit() -> None:
        ami.submit("q", "sql", "SELECT home FROM peaks", ".")

    works = {"move": move, "tick": ami.tick, "submit": submit}
    ended: list[None] = []
    before = catalog.changes()

    def run_it() -> None:
        works[work]()
        ended.append(None)

    other = threading.Thread(target=run_it)
    with ami._assigning:
        other.start()
        other.join(0.2)
        assert not ended
        assert catalog.changes() == before
    other.join(20)
    assert ended


def test_a_drop_that_takes_its_time_holds_up_no_decision(
    ami: Controller, catalog: TroubledCatalog
) -> None:
    dropping = threading.Thread(target=ami.drop, args=("ami",))
    dropping.start()
    until(lambda: the(catalog, "peaks").is_dropped)
    ami.tick()
    assert dropping.is_alive()
    for name in ("peaks", "readings"):
        catalog.release(name, 1)
    dropping.join(20)
    assert catalog.units() == ()
