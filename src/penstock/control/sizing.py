"""Which nodes a system is to have, and what each: what is there, and what somebody asks for."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock.control.records import NodeRecord
from penstock.errors import InputError, listed
from penstock.model.network import NodeSpec
from penstock.model.node_tree import tree_of

_NODES, _CORES, _MEMORY_BYTES = 2, 1, 1 << 30


@dataclass(frozen=True)
class NodesWanted:
    """What somebody asks for, of all nodes; None where they say nothing.

    ``named`` are all nodes by name, which may form a tree, instead of a number of them.
    """

    count: int | None = None
    cores: int | None = None
    memory_bytes: int | None = None
    named: tuple[NodeSpec, ...] = ()


def nodes_written(text: str) -> int | tuple[NodeSpec, ...]:
    """Nodes as they are written on the command line: how many, or their names and parents.

    >>> nodes_written("3")
    3
    >>> [(node.name, node.parent) for node in nodes_written("a,b:a")]
    [('a', None), ('b', 'a')]
    """
    if text.strip().isdecimal():
        return int(text)
    found = []
    for part in text.split(","):
        name, colon, parent = (word.strip() for word in part.partition(":"))
        if not name or (colon and not parent):
            raise InputError(
                f"{text!r} names no nodes",
                hint="Write how many, or their names and parents: a,b:a,c:a.",
            )
        found.append(NodeSpec(name, parent=parent or None))
    names = [node.name for node in found]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two nodes are called {name}", hint="Rename one.")
    return tuple(found)


def size_nodes(
    wanted: NodesWanted, there: Sequence[NodeRecord], now_s: float
) -> tuple[list[NodeRecord], list[NodeRecord]]:
    """The nodes to be made, and those there are that change; raises what cannot be done.

    >>> made, changed = size_nodes(NodesWanted(count=3), [NodeRecord("a", 2, 1 << 30)], now_s=0.0)
    >>> [(node.name, node.cores) for node in made], changed
    ([('b', 2), ('c', 2)], [])
    """
    if wanted.named:
        return _named(wanted, there), _changed(wanted, there, now_s)
    count = wanted.count or len(there) or _NODES
    if count < len(there):
        raise InputError(
            f"the system has {len(there)} nodes, {listed([node.name for node in there])}, "
            f"not {count}",
            hint="Nodes are not taken away; leave --nodes out to keep them.",
        )
    cores = wanted.cores or (there[0].cores if there else _CORES)
    memory_bytes = wanted.memory_bytes or (there[0].memory_bytes if there else _MEMORY_BYTES)
    names = (name for name in _names() if name not in {node.name for node in there})
    made = [
        NodeRecord(name, cores, memory_bytes)
        for name in itertools.islice(names, count - len(there))
    ]
    return made, _changed(wanted, there, now_s)


def _named(wanted: NodesWanted, there: Sequence[NodeRecord]) -> list[NodeRecord]:
    names, known = {node.name for node in wanted.named}, {node.name for node in there}
    left = [name for name in sorted(known) if name not in names]
    if left:
        raise InputError(
            f"the system has nodes that are not named: {listed(left)}",
            hint="Nodes are not taken away; name them all.",
        )
    return [
        NodeRecord(
            node.name,
            wanted.cores or node.cores,
            wanted.memory_bytes or node.memory_bytes,
            parent=node.parent,
        )
        for node in wanted.named
        if node.name not in known
    ]


def changed_parents(
    named: Iterable[NodeSpec | NodeRecord], there: Sequence[NodeRecord], now_s: float
) -> dict[str, str | None]:
    """The parents of nodes there are that change; raises if all together form no tree.

    >>> there = [NodeRecord("a", 1, 1 << 30), NodeRecord("b", 1, 1 << 30)]
    >>> changed_parents([NodeSpec("a"), NodeSpec("b", parent="a")], there, now_s=0.0)
    {'b': 'a'}
    """
    known = {node.name: node for node in there}
    wanted = {node.name: node.parent for node in named}
    tree_of({**{name: node.parent for name, node in known.items()}, **wanted})
    changed = {
        name: parent
        for name, parent in wanted.items()
        if name in known and known[name].parent != parent
    }
    for name, parent in changed.items():
        if any(node.is_alive(now_s) for node in there):
            raise InputError(
                f"node {name} hangs {_below(known[name].parent)}, not {_below(parent)}",
                hint="A tree changes when it starts: penstock down, then up again.",
            )
    return changed


def _below(parent: str | None) -> str:
    return "below no other" if parent is None else f"below {parent}"


def _changed(wanted: NodesWanted, there: Sequence[NodeRecord], now_s: float) -> list[NodeRecord]:
    changed = []
    for node in there:
        cores = wanted.cores or node.cores
        memory_bytes = wanted.memory_bytes or node.memory_bytes
        if (cores, memory_bytes) == (node.cores, node.memory_bytes):
            continue
        if node.is_alive(now_s):
            raise InputError(
                f"node {node.name} is running, with {_words(node.cores, node.memory_bytes)}, "
                f"not {_words(cores, memory_bytes)}",
                hint="What nodes have changes when they start: penstock down, then up again.",
            )
        changed.append(NodeRecord(node.name, cores, memory_bytes, parent=node.parent))
    return changed


def _words(cores: int, memory_bytes: int) -> str:
    return f"{cores} {'core' if cores == 1 else 'cores'} and {memory_bytes / 2**30:g} GiB"


def _names() -> itertools.chain[str]:
    """Names for nodes: a to z, then a1, b1 and so on."""
    letters = [chr(ord("a") + k) for k in range(26)]
    rounds = (f"{letter}{number or ''}" for number in itertools.count() for letter in letters)
    return itertools.chain(rounds)
