"""Which nodes a system is to have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from penstock.control.records import NodeRecord
from penstock.control.sizing import NodesWanted, changed_parents, nodes_written, size_nodes
from penstock.errors import InputError
from penstock.model.network import NodeSpec

GIB = 1 << 30
NOW_S = 100.0


def node(name: str, cores: int = 1, gib: int = 1, *, is_alive: bool = False) -> NodeRecord:
    return NodeRecord(name, cores, gib * GIB, lease_until_s=NOW_S + is_alive)


def asked(wanted: NodesWanted, *there: NodeRecord) -> tuple[list[str], list[str]]:
    made, changed = size_nodes(wanted, there, NOW_S)
    shown = [
        [f"{one.name} {one.cores} {one.memory_bytes // GIB}g" for one in some]
        for some in (made, changed)
    ]
    return shown[0], shown[1]


def test_a_new_system() -> None:
    assert asked(NodesWanted()) == (["a 1 1g", "b 1 1g"], [])
    assert asked(NodesWanted(1, 2, 3 * GIB)) == (["a 2 3g"], [])


def test_one_that_is_there_stays_as_it_is() -> None:
    assert asked(NodesWanted(), node("a", 2, 3)) == ([], [])
    assert asked(NodesWanted(), node("n1"), node("n2"), node("n3")) == ([], [])


def test_more_nodes_are_like_those_there_are() -> None:
    there = [node("a", 2, 3, is_alive=True), node("b", 2, 3)]
    assert asked(NodesWanted(count=3), *there) == (["c 2 3g"], [])


def test_what_nodes_have_changes_while_they_are_down() -> None:
    there = [node("a"), node("b", 1, 4)]
    assert asked(NodesWanted(memory_bytes=4 * GIB), *there) == ([], ["a 1 4g"])
    with pytest.raises(InputError) as error:
        asked(NodesWanted(cores=2), node("a", is_alive=True))
    assert str(error.value) == (
        "node a is running, with 1 core and 1 GiB, not 2 cores and 1 GiB. "
        "What nodes have changes when they start: penstock down, then up again."
    )


def test_fewer_nodes_are_refused() -> None:
    with pytest.raises(InputError) as error:
        asked(NodesWanted(count=1), node("a"), node("b"))
    assert str(error.value) == (
        "the system has 2 nodes, a, b, not 1. "
        "Nodes are not taken away; leave --nodes out to keep them."
    )


def test_names_go_on_after_the_letters() -> None:
    made, _ = size_nodes(NodesWanted(count=28), [], NOW_S)
    assert [one.name for one in made][24:] == ["y", "z", "a1", "b1"]


def parents(
    *named: NodeSpec, there: Sequence[NodeRecord] = (), now_s: float = NOW_S
) -> dict[str, str | None]:
    return changed_parents(named, there, now_s)


def test_nodes_by_name_may_form_a_tree() -> None:
    named = nodes_written("a, b:a,c:a")
    assert not isinstance(named, int)
    made, _ = size_nodes(NodesWanted(cores=2, named=named), [node("a")], NOW_S)
    assert [(one.name, one.cores, one.parent) for one in made] == [("b", 2, "a"), ("c", 2, "a")]


@pytest.mark.parametrize("text", ["", "a,,b", "a:", ":b", "a,a"])
def test_what_names_no_nodes(text: str) -> None:
    with pytest.raises(InputError):
        nodes_written(text)


def test_all_nodes_have_to_be_named() -> None:
    with pytest.raises(InputError, match="the system has nodes that are not named: b"):
        size_nodes(NodesWanted(named=(NodeSpec("a"),)), [node("a"), node("b")], NOW_S)


def test_nodes_are_hung_elsewhere_while_they_are_down() -> None:
    down = [node("a"), node("b"), node("c")]
    named = (NodeSpec("a"), NodeSpec("b", parent="a"), NodeSpec("c", parent="b"))
    assert parents(*named, there=down) == {"b": "a", "c": "b"}
    up = [node("a", is_alive=True), *down[1:]]
    with pytest.raises(InputError, match="node b hangs below no other, not below a"):
        parents(*named, there=up)


def test_one_more_node_has_to_hang_somewhere() -> None:
    there = [node("a"), replace(node("b"), parent="a")]
    with pytest.raises(InputError, match="2 nodes have no parent: a, c"):
        parents(NodeSpec("c"), there=there)
    assert parents(NodeSpec("c", parent="b"), there=there) == {}
