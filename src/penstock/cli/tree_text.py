"""A tree of nodes as text: what each uses and runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.errors import InputError

if TYPE_CHECKING:
    from penstock.control.answer_models import NodeAnswer


def tree_lines(nodes: Sequence[NodeAnswer]) -> Iterator[str]:
    """A line for every node, below its parent; raises if they form no tree."""
    if not any(node.parent for node in nodes):
        raise InputError(
            "the nodes of this system form no tree",
            hint="Start one with parents: penstock up --nodes a,b:a,c:a.",
        )
    children: dict[str | None, list[NodeAnswer]] = {}
    for node in nodes:
        children.setdefault(node.parent, []).append(node)
    for root in children[None]:
        yield _line(root)
        yield from _below(root, children, "")


def _below(
    node: NodeAnswer, children: Mapping[str | None, Sequence[NodeAnswer]], indent: str
) -> Iterator[str]:
    below = children.get(node.name, ())
    for at, child in enumerate(below):
        is_last = at == len(below) - 1
        yield f"{indent}{'└─ ' if is_last else '├─ '}{_line(child)}"
        yield from _below(child, children, indent + ("   " if is_last else "│  "))


def _line(node: NodeAnswer) -> str:
    used = f"cpu {node.utilisation:.0%}, memory {node.memory_bytes / 2**20:,.0f} MB"
    told = used if node.state == "up" else node.state
    return f"{node.name}  {told}  {', '.join(node.runs)}".rstrip()
