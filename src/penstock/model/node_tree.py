"""Nodes that form a tree: streams flow from child to parent, and only there."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from penstock.errors import InputError, listed, suggestion


@dataclass(frozen=True)
class NodeTree:
    """The parent of every node, checked: every parent exists, and exactly one node has none.

    >>> tree = NodeTree({"root": None, "a": "root", "b": "root", "c": "a"})
    >>> tree.root, tree.children["root"], tree.neighbours("a")
    ('root', ('a', 'b'), ('root', 'c'))
    >>> tree.passes("c", "root"), tree.passes("c", "b"), tree.child_towards("root", "c")
    (True, False, 'a')
    """

    parents: Mapping[str, str | None]

    def __post_init__(self) -> None:
        if not self.parents:
            raise InputError("a tree without nodes", hint="Give at least one.")
        for name, parent in self.parents.items():
            if parent is not None and parent not in self.parents:
                raise InputError(
                    f"node {name} has the parent {parent}, which does not exist",
                    hint=suggestion(parent, self.parents),
                )
        _check_roots(self.parents)

    @cached_property
    def root(self) -> str:
        """The one node without a parent."""
        return next(name for name, parent in self.parents.items() if parent is None)

    def path_up(self, node: str) -> tuple[str, ...]:
        """A node, its parent, and so on up to the root."""
        path = [node]
        while (parent := self.parents[path[-1]]) is not None:
            path.append(parent)
        return tuple(path)

    def common_path(self, origins: Iterable[str]) -> tuple[str, ...]:
        """The nodes that streams from all of these pass, the lowest first.

        >>> tree = NodeTree({"root": None, "a": "root", "b": "root", "c": "a"})
        >>> tree.common_path(["c"]), tree.common_path(["c", "b"])
        (('c', 'a', 'root'), ('root',))
        """
        first, *others = origins
        return tuple(
            node
            for node in self.path_up(first)
            if all(self.passes(origin, node) for origin in others)
        )

    @cached_property
    def children(self) -> Mapping[str, tuple[str, ...]]:
        """The children of every node, in the order of the nodes."""
        found: dict[str, list[str]] = {name: [] for name in self.parents}
        for name, parent in self.parents.items():
            if parent is not None:
                found[parent].append(name)
        return {name: tuple(children) for name, children in found.items()}

    def neighbours(self, node: str) -> tuple[str, ...]:
        """The parent, if any, and the children of a node."""
        parent = self.parents[node]
        return self.children[node] if parent is None else (parent, *self.children[node])

    def depth_first(self, node: str) -> int:
        """The number of a node in depth-first order, in which the root is 0."""
        return self._spans[node][0]

    def passes(self, origin: str, node: str) -> bool:
        """Whether a stream that begins on ``origin`` passes ``node``; it passes its origin."""
        first, last = self._spans[node]
        return first <= self._spans[origin][0] <= last

    def child_towards(self, node: str, origin: str) -> str | None:
        """The child of ``node`` through which streams from ``origin`` come; None from itself.

        ``origin`` has to be ``node`` or below it.
        """
        if node == origin:
            return None
        children = self.children[node]
        at = bisect_right(self._firsts[node], self._spans[origin][0]) - 1
        return children[at]

    @cached_property
    def _spans(self) -> Mapping[str, tuple[int, int]]:
        """Numbers in depth-first order: a node's own, and the last one below it."""
        firsts: dict[str, int] = {}
        order: list[str] = []
        stack = [self.root]
        while stack:
            node = stack.pop()
            firsts[node] = len(order)
            order.append(node)
            stack.extend(reversed(self.children[node]))
        lasts = dict(firsts)
        for node in reversed(order):
            parent = self.parents[node]
            if parent is not None:
                lasts[parent] = max(lasts[parent], lasts[node])
        return {node: (firsts[node], lasts[node]) for node in order}

    @cached_property
    def _firsts(self) -> Mapping[str, Sequence[int]]:
        return {
            node: [self._spans[child][0] for child in children]
            for node, children in self.children.items()
        }


def tree_of(parents: Mapping[str, str | None]) -> NodeTree | None:
    """The tree that nodes form; None where no node has a parent, and nothing is said of a tree.

    >>> tree_of({"a": None, "b": None}) is None, tree_of({"a": None, "b": "a"}).root
    (True, 'a')
    """
    return NodeTree(dict(parents)) if any(parents.values()) else None


def _check_roots(parents: Mapping[str, str | None]) -> None:
    """Raises unless there is one root and every node hangs below it."""
    circle = next(_circles(parents), None)
    if circle is not None:
        raise InputError(
            f"node {circle[0]} is its own ancestor: {' -> '.join([*circle, circle[0]])}",
            hint="One of them has to have another parent, or none.",
        )
    roots = [name for name, parent in parents.items() if parent is None]
    if len(roots) > 1:
        raise InputError(
            f"{len(roots)} nodes have no parent: {listed(roots[:5])}"
            + (" and others" if roots[5:] else ""),
            hint="Exactly one may have none, the root; give the others one.",
        )


def _circles(parents: Mapping[str, str | None]) -> Iterator[list[str]]:
    """Nodes that are their own ancestors, in steps from child to parent."""
    sound: set[str] = set()
    for start in parents:
        way: dict[str, None] = {}
        node: str | None = start
        while node is not None and node not in sound and node not in way:
            way[node] = None
            node = parents[node]
        if node is not None and node in way:
            names = list(way)
            yield names[names.index(node) :]
        sound.update(way)
