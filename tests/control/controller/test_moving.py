"""Moves: how they begin, go on, fail, and which make no sense."""

from __future__ import annotations

import re
import time

import pytest

from control.controller.facts import refused, story, the
from control.toys import TroubledCatalog
from penstock.control.controller import Controller
from penstock.control.home import Home
from penstock.model.moves import Move


def test_a_move_begins(ami: Controller, catalog: TroubledCatalog) -> None:
    wish = Move("peaks", "b", "too hot", {"gain": 2})
    (move,) = ami.move([wish])
    assert (move.unit, move.source, move.target, move.state) == ("peaks", "a", "b", "preparing")
    assert (move.reason, move.numbers, move.is_warm) == ("too hot", {"gain": 2}, False)
    assert move.created_s == pytest.approx(time.time(), abs=60)
    assert catalog.moves(open_only=True) == (move,)


def test_several_begin_as_one_plan(ami: Controller) -> None:
    moves = ami.move([Move("peaks", "b"), Move("readings", "b")])
    assert [move.unit for move in moves] == ["peaks", "readings"]


def test_if_one_makes_no_sense_none_begins(ami: Controller, catalog: TroubledCatalog) -> None:
    wishes = [Move("peaks", "b"), Move("readings", "a")]
    assert refused(lambda: ami.move(wishes)) == (
        "readings already runs on a. Nothing needs to be done."
    )
    assert catalog.moves() == ()


def test_refusals(ami: Controller) -> None:
    for fragment, node, text in (
        ("peak", "b", "no fragment peak. There are peaks, readings. Did you mean peaks?"),
        ("../x", "b", "no fragment ../x. There are peaks, readings."),
        ("peaks", "c", "no node c. There are a, b."),
        ("peaks", "A", "no node A. There are a, b. Did you mean a?"),
        ("peaks", "z", "node z is not alive. Those that are: a, b."),
        ("peaks", "a", "peaks already runs on a. Nothing needs to be done."),
    ):
        wish = Move(fragment, node)
        assert refused(lambda wish=wish: ami.move([wish])) == text  # type: ignore[misc]


def test_what_is_being_moved_stays_so(ami: Controller) -> None:
    wish, text = (
        Move("peaks", "b"),
        "peaks is being moved already. Wait until it is done.",
    )
    assert refused(lambda: ami.move([wish, wish])) == text
    ami.move([wish])
    assert refused(lambda: ami.move([wish])) == text


def test_only_what_runs_can_be_moved(ami: Controller, catalog: TroubledCatalog) -> None:
    text = "{} is not running. Only what runs can be moved."
    ami.submit("q", "sql", "SELECT home FROM peaks", ".")
    assert refused(lambda: ami.move([Move("q", "b")])) == text.format("q")
    catalog.report("readings", 1, "finished")
    assert refused(lambda: ami.move([Move("readings", "b")])) == text.format("readings")
    catalog.drop(1)
    assert refused(lambda: ami.move([Move("peaks", "b")])) == text.format("peaks")


def test_a_move_goes_its_way(ami: Controller, catalog: TroubledCatalog) -> None:
    (begun,) = ami.move([Move("peaks", "b", "too hot", {"gain": 2})])
    ami.tick()
    assert the(catalog, "peaks").node == "a"
    catalog.change_move(begun.id, is_warm=True)
    ami.tick()
    assert (the(catalog, "peaks").node, the(catalog, "peaks").epoch) == ("b", 2)
    assert catalog.moves()[0].state == "moving"
    ami.tick()
    assert catalog.moves()[0].state == "moving"
    catalog.release("peaks", 1)
    catalog.report("peaks", 2, "running")
    for _ in range(2):
        ami.tick()
    (done,) = catalog.moves()
    assert (done.state, done.error) == ("done", "")
    assert done.ended_s is not None
    assert done.ended_s >= begun.created_s
    assigned, moved = catalog.events()[-2:]
    assert (assigned.text, assigned.numbers) == (
        "too hot",
        {"epoch": 2, "from": "a", "to": "b"},
    )
    assert re.fullmatch(r"a → b done in \d+\.\d+ s.*", moved.text)
    assert moved.numbers == {"gain": 2, "move": begun.id}


def test_a_move_that_fails_is_told_once(
    ami: Controller, catalog: TroubledCatalog, home: Home
) -> None:
    (begun,) = ami.move([Move("peaks", "b")])
    catalog.change_move(begun.id, error="no memory")
    for _ in range(2):
        ami.tick()
    assert story(catalog)[1:] == ["move peaks: a → b failed: no memory"]
    assert (the(catalog, "peaks").node, the(catalog, "peaks").epoch) == ("a", 1)


def test_a_controller_that_dies_in_between_is_replaced(
    ami: Controller, catalog: TroubledCatalog, home: Home
) -> None:
    (begun,) = ami.move([Move("peaks", "b")])
    catalog.change_move(begun.id, is_warm=True)
    catalog.assign(the(catalog, "peaks"), "b")
    catalog.release("peaks", 1)
    catalog.report("peaks", 2, "running")
    for state in ("moving", "done"):
        Controller(home, catalog).tick()
        assert catalog.moves()[0].state == state
    assert (the(catalog, "peaks").node, the(catalog, "peaks").epoch) == ("b", 2)
