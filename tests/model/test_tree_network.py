"""Trees of nodes and what is on them check themselves when built."""

import pytest

from penstock.errors import InputError
from penstock.model.node_tree import NodeTree
from penstock.model.tree_network import TreeInput, TreeNetwork, TreeOperator

TREE = NodeTree({"root": None, "a": "root", "b": "root"})
M = TreeInput("m", "a")
F = TreeOperator("f", ("m",), 3.0, "a")


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda: NodeTree({}), "a tree without nodes."),
        (lambda: NodeTree({"a": None, "b": None}), "2 nodes have no parent: a, b. Exactly one"),
        (
            lambda: NodeTree({"root": None, "a": "rot"}),
            "node a has the parent rot, which does not exist. Did you mean root?",
        ),
        (
            lambda: NodeTree({"root": None, "a": "b", "b": "a"}),
            "node a is its own ancestor: a -> b -> a. One of them has to",
        ),
        (lambda: NodeTree({"a": "a"}), "node a is its own ancestor: a -> a."),
        (lambda: TreeOperator("f", (), 1.0, "a"), "operator f reads nothing."),
        (lambda: TreeOperator("f", ("m",), -1.0, "a"), "operator f has the size -1. Give percent"),
        (lambda: TreeOperator("f", ("m",), float("nan"), "a"), "operator f has the size nan."),
        (lambda: TreeNetwork(TREE, (M,), (F, F)), "two inputs or operators are called f."),
        (
            lambda: TreeNetwork(TREE, (TreeInput("f", "a"),), (F,)),
            "two inputs or operators are called f.",
        ),
        (
            lambda: TreeNetwork(TREE, (TreeInput("m", "x"),), ()),
            "input m is attached to x, which is no node",
        ),
        (
            lambda: TreeNetwork(TREE, (M,), (TreeOperator("f", ("m",), 1.0, "roo"),)),
            "operator f is on roo, which is no node. Did you mean root?",
        ),
        (lambda: TreeNetwork(TREE, (), (F,)), "operator f reads m, which does not exist"),
        (
            lambda: TreeNetwork(TREE, (M,), (TreeOperator("f", ("m",), 1.0, "b"),)),
            "operator f is on b, where its input m from a does not pass. It can run on a or above.",
        ),
        (
            lambda: TreeNetwork(
                TREE, (), (TreeOperator("f", ("g",), 1, "a"), TreeOperator("g", ("f",), 1, "a"))
            ),
            "these read each other in a circle: ",
        ),
    ],
)
def test_what_is_refused(build: object, text: str) -> None:
    with pytest.raises(InputError) as raised:
        build()  # type: ignore[operator]
    assert text in str(raised.value)


def test_ways_through_a_deep_tree() -> None:
    depth = 5_000
    tree = NodeTree({f"n{at}": f"n{at - 1}" if at else None for at in range(depth)})
    assert tree.passes(f"n{depth - 1}", "n0") and not tree.passes("n0", "n1")
    assert tree.child_towards("n7", f"n{depth - 1}") == "n8"
    assert tree.child_towards("n7", "n7") is None
