"""Units change hands by what neighbours agreed: every rule, in the real catalog."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import pytest

from control.toys import TroubledCatalog
from penstock.control.catalog import Catalog
from penstock.control.hand_over_rules import HandOver
from penstock.control.records import NodeRecord, Submission, UnitRecord
from penstock.model.node_tree import NodeTree
from penstock.place.tree_placing import TreeWiring

TREE = {"root": None, "a": "root", "b": "root"}
WIRING = TreeWiring(
    NodeTree(TREE), {"m": {}, "f": {"m": "m"}, "g": {"f": "f"}, "h": {"g": "g"}}, {"m": "a"}
)


@pytest.fixture
def tree(catalog: TroubledCatalog) -> TroubledCatalog:
    """f and g run on a, h on the root."""
    for name, parent in TREE.items():
        catalog.declare(NodeRecord(name, 1, 1 << 30, parent=parent))
        until_s = time.time() + 600
        catalog.join(NodeRecord(name, 1, 1 << 30, f"{name}-1", lease_until_s=until_s))
    submission = vars(Submission(1, "s", "sql", "", "."))
    Catalog.add(catalog, submission, [UnitRecord(name, "fragment", 1) for name in "fgh"])
    for name, node in (("f", "a"), ("g", "a"), ("h", "root")):
        catalog.assign(the(catalog, name), node)
        catalog.report(name, 1, "running")
    return catalog


def the(catalog: TroubledCatalog, name: str) -> UnitRecord:
    return next(unit for unit in catalog.units() if unit.name == name)


def step(*names: str, target: str = "root", epoch: int = 1) -> HandOver:
    return HandOver("a", "a-1", target, tuple((name, epoch) for name in names), math.inf)


def rows(wanted: HandOver) -> list[dict[str, object]]:
    return [
        {"unit": name, "source": wanted.source, "target": wanted.target, "state": "preparing",
         "created_s": time.time(), "numbers": {"by": "neighbours"}}
        for name in wanted.units
    ]  # fmt: skip


def test_all_of_it_in_one_step(tree: TroubledCatalog) -> None:
    both = step("f", "g")
    moves, why = tree.begin_hand_over(both, WIRING, rows(both))
    assert (len(moves), why) == (2, "")
    before = tree.changes()
    assert tree.hand_over(both, WIRING, moves) == ""
    assert tree.changes() > before
    for name in "fg":
        unit = the(tree, name)
        assert (unit.node, unit.epoch, unit.previous, unit.belongs) == ("root", 2, "a", None)
    assert {move.state for move in tree.moves()} == {"moving"}
    # What happens once does not happen twice.
    assert tree.hand_over(both, WIRING, moves) == "f is not a's any more"


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (step("f", epoch=2), "f is not a's any more"),
        (step("h"), "h is not a's any more"),
        (step("nobody"), "nobody is not a's any more"),
        (step("f"), "g on a would not get f"),
        (step("f", "g", target="b"), "b is no neighbour of a"),
        (step("f", "g", target="z"), "z is not alive"),
        (replace(step("f", "g"), life="a-0"), "a has lost its lease"),
        (replace(step("f", "g"), until_s=1.0), "what was agreed holds no longer"),
    ],
)
def test_what_does_not_hold(tree: TroubledCatalog, wanted: HandOver, why: str) -> None:
    before = tree.units()
    assert tree.begin_hand_over(wanted, WIRING, rows(wanted)) == ([], why)
    assert tree.hand_over(wanted, WIRING, ()) == why
    assert (tree.units(), tree.moves()) == (before, ())


def test_one_that_moves_already_stays_with_that_move(tree: TroubledCatalog) -> None:
    wanted = step("g")
    moves, _ = tree.begin_hand_over(wanted, WIRING, rows(wanted))
    assert tree.begin_hand_over(wanted, WIRING, rows(wanted)) == ([], "g is being moved already")
    assert tree.hand_over(wanted, WIRING, ()) == "g is being moved already"
    assert tree.hand_over(wanted, WIRING, moves) == ""


def test_an_owner_that_lost_its_lease_has_no_say(tree: TroubledCatalog) -> None:
    tree.renew("a", "a-1", time.time() - 1)
    assert tree.hand_over(step("g"), WIRING, ()) == "a has lost its lease"


def test_nor_is_anything_given_that_a_former_owner_may_still_run(tree: TroubledCatalog) -> None:
    tree.assign(the(tree, "g"), "root")
    tree.assign(the(tree, "g"), "a")
    assert tree.hand_over(step("g", epoch=3), WIRING, ()) == "g has not been left by root yet"
    tree.release("g", 2)
    assert tree.hand_over(step("g", epoch=3), WIRING, ()) == ""
