"""Submissions and moves where nodes form a tree."""

from __future__ import annotations

import time

import pytest

from control.controller.facts import refused, run, the
from control.toys import TroubledCatalog
from penstock.control.controller import Controller
from penstock.control.home import Home
from penstock.control.records import NodeRecord
from penstock.model.moves import Move

TREE = """
streams:
  north: {source: {generate: meters, days: 1}, lateness: 2min, on: a}
  south: {source: {generate: meters, days: 1}, lateness: 2min, on: b}
queries:
  peaks: {sql: "SELECT home, window.end AS ts, sum(kwh) AS kwh
                FROM north GROUP BY home, window(ts, '1 hour')"}
  high: SELECT ts, home, kwh FROM peaks WHERE kwh > 4
  all: SELECT ts, home, kwh FROM high UNION ALL SELECT ts, home, kwh FROM south
"""


@pytest.fixture
def controller(home: Home, catalog: TroubledCatalog) -> Controller:
    """A root with two children."""
    for name, parent in (("root", None), ("a", "root"), ("b", "root")):
        catalog.declare(NodeRecord(name, 1, 1 << 30, parent=parent))
        life = f"{name}-1"
        catalog.join(NodeRecord(name, 1, 1 << 30, life, lease_until_s=time.time() + 600))
    return Controller(home, catalog, began_s=0.0)


@pytest.fixture
def submitted(controller: Controller, catalog: TroubledCatalog) -> Controller:
    controller.submit("tree", "yaml", TREE, ".")
    for _ in range(3):
        controller.tick()
        for unit in catalog.units():
            if unit.node is not None:
                catalog.report(unit.name, unit.epoch, "running")
    return controller


def test_joining_keeps_the_parent(controller: Controller, catalog: TroubledCatalog) -> None:
    assert {node.name: node.parent for node in catalog.nodes()} == {
        "root": None, "a": "root", "b": "root",
    }  # fmt: skip


def test_everything_runs_where_its_inputs_pass(
    submitted: Controller, catalog: TroubledCatalog
) -> None:
    places = {unit.name: unit.node for unit in catalog.units()}
    assert (places["north"], places["south"], places["all"]) == ("a", "b", "root")
    assert {places["peaks"], places["high"]} <= {"a", "root"}


def test_a_pin_against_the_tree_is_refused(controller: Controller) -> None:
    text = TREE.replace("  peaks: {", "  peaks: {on: b, ")
    assert refused(lambda: controller.submit("tree", "yaml", text, ".")) == (
        "peaks cannot run on b: north from a does not pass there. "
        "Streams flow to the parent only; it can run on a, root."
    )


def test_a_stream_without_a_node_is_refused(controller: Controller) -> None:
    text = TREE.replace(", on: a}", "}")
    assert refused(lambda: controller.submit("tree", "yaml", text, ".")) == (
        "stream north is attached to no node of the tree. Say where its rows come in: on: NODE."
    )


def test_moves_against_the_tree_are_refused(
    submitted: Controller, catalog: TroubledCatalog
) -> None:
    for name in ("peaks", "high"):
        if the(catalog, name).node != "a":
            run(catalog, the(catalog, name), "a")
    for wishes, text in (
        ({"high": "b"}, "high cannot run on b: peaks from a does not pass there. "
         "Streams flow to the parent only; it can run on a, root."),
        ({"peaks": "root"}, "high cannot run on a: peaks from root does not pass there. "
         "Streams flow to the parent only; it can run on root."),
        ({"north": "b"}, "north cannot run on b: north from a does not pass there. "
         "Streams flow to the parent only; it can run on a, root."),
    ):  # fmt: skip
        asked = [Move(name, node) for name, node in wishes.items()]
        assert refused(lambda asked=asked: submitted.move(asked)) == text  # type: ignore[misc]
    assert catalog.moves(open_only=True) == ()
    moved = submitted.move([Move("peaks", "root"), Move("high", "root")])
    assert [move.unit for move in moved] == ["peaks", "high"]


def test_moves_under_way_count_with_both_ends(
    submitted: Controller, catalog: TroubledCatalog
) -> None:
    for name in ("peaks", "high"):
        if the(catalog, name).node != "root":
            run(catalog, the(catalog, name), "root")
    submitted.move([Move("peaks", "a")])
    assert "peaks from root does not pass there" in refused(
        lambda: submitted.move([Move("high", "a")])
    )
