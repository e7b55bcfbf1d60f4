"""The tree of nodes as text."""

from __future__ import annotations

import pytest

from penstock.cli.tree_text import tree_lines
from penstock.control.answer_models import NodeAnswer
from penstock.errors import InputError


def node(name: str, parent: str | None, *runs: str, state: str = "up") -> NodeAnswer:
    return NodeAnswer(
        name=name,
        state=state,  # type: ignore[arg-type]
        cores=1,
        memory_limit_bytes=1 << 30,
        pid=1,
        version="",
        utilisation=0.5,
        memory_bytes=200 << 20,
        heard={},
        runs=[*runs],
        parent=parent,
    )


def test_every_node_stands_below_its_parent() -> None:
    nodes = [
        node("a", "root", "m", "f"),
        node("b", "root", state="gone"),
        node("c", "a", "k"),
        node("root", None),
    ]
    assert [*tree_lines(nodes)] == [
        "root  cpu 50%, memory 200 MB",
        "├─ a  cpu 50%, memory 200 MB  m, f",
        "│  └─ c  cpu 50%, memory 200 MB  k",
        "└─ b  gone",
    ]


def test_without_a_tree() -> None:
    with pytest.raises(InputError, match="the nodes of this system form no tree"):
        next(tree_lines([node("a", None)]))
