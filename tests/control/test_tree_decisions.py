"""What the controller decides where nodes form a tree: everybody gets their inputs."""

from __future__ import annotations

from collections.abc import Sequence

from control.made_up import NOW_S, dead, failed, move, node, running, told, unit
from penstock.control.decisions import decide
from penstock.control.records import MoveRecord, NodeRecord, UnitRecord
from penstock.model.node_tree import NodeTree
from penstock.place.tree_placing import TreeWiring

TREE = NodeTree({"root": None, "a": "root", "b": "root", "c": "a"})
WIRING = TreeWiring(
    TREE,
    {"m": {}, "f": {"m": "m"}, "g": {"f": "f"}, "k": {}, "both": {"g": "g", "k": "k"}},
    {"m": "c", "k": "b"},
)


def tree(*gone: str) -> list[NodeRecord]:
    return [
        dead(name) if name in gone else node(name, joined_s=NOW_S - 100) for name in TREE.parents
    ]


def decided(
    units: Sequence[UnitRecord], nodes: Sequence[NodeRecord], *moves: MoveRecord
) -> list[str]:
    return [told(one) for one in decide(units, nodes, moves, NOW_S, wiring=WIRING)]


def intake(name: str, on: str | None = None, **more: object) -> UnitRecord:
    home = WIRING.attached[name]
    made = unit(name, pinned=home, **more) if on is None else running(name, on, pinned=home, **more)
    return UnitRecord(**{**vars(made), "kind": "intake"})


M, K = intake("m", "c"), intake("k", "b")


def test_new_ones_go_as_far_down_as_their_inputs_allow() -> None:
    new = [unit("g"), unit("f"), unit("both"), intake("k"), intake("m")]
    assert sorted(decided(new, tree())) == [
        "both to root: new",
        "f to c: new",
        "g to c: new",
        "k to b: new",
        "m to c: new",
    ]


def test_a_plan_holds_where_inputs_pass() -> None:
    units = [M, unit("f", planned="a"), running("g", "a")]
    assert decided(units, tree()) == ["f to a: new"]
    assert decided([M, unit("f", planned="b")], tree()) == ["f to c: new"]


def test_a_silent_node_is_stood_in_for_by_the_nearest_above() -> None:
    units = [M, running("f", "a"), running("g", "a"), running("both", "root")]
    silent = "node a fell silent"
    assert decided(units, tree("a")) == [f"f to root: {silent}", f"g to root: {silent}"]


def test_what_stands_below_a_silent_root_takes_what_it_can() -> None:
    units = [M, K, running("g", "root"), running("f", "c"), running("both", "root")]
    # Streams of a and b meet nowhere else than on the root.
    assert decided(units, tree("root")) == ["g to c: node root fell silent"]


def test_readers_that_stay_are_not_left_without_input() -> None:
    """The root would do for f, but g, which waits for its node, would miss it."""
    g = running("g", "a", pinned="a")
    assert decided([M, running("f", "a"), g], tree("a")) == ["f to c: node a fell silent"]
    assert decided([M, running("f", "a"), g], tree("a", "c")) == []


def test_nothing_goes_back_before_its_inputs() -> None:
    g = running("g", "root", belongs="a")
    f = running("f", "root", belongs="a")
    assert decided([M, f, g], tree()) == ["f back to a: node a is back"]
    assert decided([M, running("f", "a"), g], tree()) == ["g back to a: node a is back"]


def test_what_misses_an_input_goes_up() -> None:
    units = [M, running("f", "root"), running("g", "a")]
    assert decided(units, tree()) == ["g up to root: f does not pass a"]
    under_way = move("f", source="a", target="root")
    assert decided(units, tree(), under_way) == ["move of f moving"]


def test_what_failed_stays_where_it_gets_its_inputs() -> None:
    assert decided([M, failed("f", "c")], tree()) == ["f again on c: started again after: no room"]
