"""The target of a move gets ready before it."""

from __future__ import annotations

import pytest

from control.agent.facts import (
    give,
    state,
)
from control.made_up import submission
from control.stepped import SteppedNode
from control.toys import ToyWorker, TroubledCatalog, raising
from penstock.control.records import UnitRecord
from penstock.errors import RunError


def begin(catalog: TroubledCatalog, **told: object) -> int:
    row = {
        "unit": "peaks",
        "source": "b",
        "target": "a",
        "state": "preparing",
        "created_s": 1.0,
    }
    return catalog.add_moves([{**row, **told}])[0]


def test_the_target_of_a_move_gets_ready_once(
    catalog: TroubledCatalog, worker: ToyWorker, node: SteppedNode
) -> None:
    begin(catalog)
    node.settle()
    assert catalog.moves()[0].is_warm
    give(catalog, "peaks", "a")
    node.settle()
    assert state(catalog, "peaks") == "running"
    assert worker.story[:2] == ["warm peaks 1", "start peaks 1"]


def test_nobody_else_does(catalog: TroubledCatalog, worker: ToyWorker, node: SteppedNode) -> None:
    begin(catalog, target="c")
    begin(catalog, state="moving")
    begin(catalog, state="failed")
    give(catalog, "peaks", "a")
    node.settle()
    assert state(catalog, "peaks") == "running"
    assert not any("warm" in line for line in worker.story)


@pytest.mark.parametrize(
    ("error", "text"), [(RunError("no room"), "no room"), (KeyError("x"), "KeyError: 'x'")]
)
def test_what_goes_wrong_is_told(
    catalog: TroubledCatalog,
    worker: ToyWorker,
    node: SteppedNode,
    error: Exception,
    text: str,
) -> None:
    worker.before["warm"] = raising(error)
    begin(catalog)
    node.settle()
    assert catalog.moves()[0].error == text
    assert not catalog.moves()[0].is_warm


def test_every_move_is_prepared_also_after_others_were_removed(
    catalog: TroubledCatalog, worker: ToyWorker, node: SteppedNode
) -> None:
    for _ in range(2):
        number = begin(catalog)
        node.settle()
        assert catalog.moves()[0].is_warm
        catalog.remove(1)
        catalog.add(vars(submission()), [UnitRecord("peaks", "fragment", 1)])
    assert [line for line in worker.story if "warm" in line] == ["warm peaks 1"] * 2
    assert number == 2


def test_what_was_got_ready_in_vain_is_let_go(
    catalog: TroubledCatalog, worker: ToyWorker, node: SteppedNode
) -> None:
    number = begin(catalog)
    node.settle()
    assert catalog.moves()[0].is_warm
    catalog.change_move(number, state="failed")
    node.settle()
    assert "cool peaks" in worker.story
    number = begin(catalog)
    node.settle()
    assert catalog.moves()[1].is_warm
    give(catalog, "peaks", "a")
    node.settle()
    assert state(catalog, "peaks") == "running"
    catalog.change_move(number, state="done")
    give(catalog, "readings", "a")
    node.settle()
    assert state(catalog, "readings") == "running"
    assert worker.story.count("cool peaks") == 1
