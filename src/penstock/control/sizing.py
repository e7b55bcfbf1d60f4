"""Which nodes a system is to have, and what each: what is there, and what somebody asks for."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.control.records import NodeRecord
from penstock.errors import InputError, listed

_NODES, _CORES, _MEMORY_BYTES = 2, 1, 1 << 30


@dataclass(frozen=True)
class NodesWanted:
    """What somebody asks for, of all nodes; None where they say nothing."""

    count: int | None = None
    cores: int | None = None
    memory_bytes: int | None = None


def sized(
    wanted: NodesWanted, there: Sequence[NodeRecord], now_s: float
) -> tuple[list[NodeRecord], list[NodeRecord]]:
    """The nodes to be made, and those there are that change; raises what cannot be done.

    >>> made, changed = sized(NodesWanted(count=3), [NodeRecord("a", 2, 1 << 30)], now_s=0.0)
    >>> [(node.name, node.cores) for node in made], changed
    ([('b', 2), ('c', 2)], [])
    """
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
        changed.append(NodeRecord(node.name, cores, memory_bytes))
    return changed


def _words(cores: int, memory_bytes: int) -> str:
    return f"{cores} {'core' if cores == 1 else 'cores'} and {memory_bytes / 2**30:g} GiB"


def _names() -> itertools.chain[str]:
    """Names for nodes: a to z, then a1, b1 and so on."""
    letters = [chr(ord("a") + k) for k in range(26)]
    rounds = (f"{letter}{number or ''}" for number in itertools.count() for letter in letters)
    return itertools.chain(rounds)
