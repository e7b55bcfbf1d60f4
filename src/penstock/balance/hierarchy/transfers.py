"""Which operators may move to which neighbour, together with which others.

Streams flow from child to parent and are never rerouted, so an operator may run only where all its
inputs pass. *Up* takes an operator and all that reads it, directly or not, on the same node;
*down* takes it and all that feeds it there, to the child through which their input comes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from penstock.model.node_tree import NodeTree
from penstock.model.tree_network import TreeNetwork


class DownRule(StrEnum):
    """What may go down: chains of operators with one input each, or all that one child feeds."""

    NARROW = "narrow"
    WIDE = "wide"


@dataclass(frozen=True)
class Transfer:
    """Operators of ``node`` that may move ``to`` a neighbour, all of them or none."""

    node: str
    to: str
    operators: tuple[str, ...]


class PlacedOperators:
    """Where every operator of a tree is now, and what may move from where.

    What a node may transfer is kept, and computed again only when operators arrive at it or leave:
    nothing that happens elsewhere changes it. That costs, for each of its operators, a walk
    through those that have to move with it.

    >>> from penstock.model.tree_network import TreeInput, TreeOperator
    >>> placed = PlacedOperators(TreeNetwork(
    ...     NodeTree({"root": None, "v": "root", "c": "v"}),
    ...     (TreeInput("m", "c"),),
    ...     (TreeOperator("A", ("m",), 5.0, "v"), TreeOperator("B", ("A",), 3.0, "v")),
    ... ))
    >>> for transfer in placed.transfers("v"):
    ...     print(*transfer.operators, "->", transfer.to)
    A B -> root
    A -> c
    B -> root
    A B -> c
    >>> placed.move(("A",), "c")
    >>> [(transfer.operators, transfer.to) for transfer in placed.transfers("v")]
    [(('B',), 'root'), (('B',), 'c')]
    """

    def __init__(self, network: TreeNetwork, rule: DownRule = DownRule.NARROW) -> None:
        self.nodes: NodeTree = network.nodes
        self.rule = rule
        self._inputs = {operator.name: operator.inputs for operator in network.operators}
        self._readers = network.readers
        self._origins = dict(network.origins)
        self._order = {operator.name: at for at, operator in enumerate(network.operators)}
        self._on: dict[str, dict[str, None]] = {node: {} for node in network.nodes.parents}
        for operator in network.operators:
            self._on[operator.node][operator.name] = None
        self._known: dict[str, tuple[Transfer, ...]] = {}

    def node_of(self, operator: str) -> str:
        """The node that an operator is on."""
        return self._origins[operator]

    def on(self, node: str) -> tuple[str, ...]:
        """The operators on a node, in the order in which they came there."""
        return tuple(self._on[node])

    def transfers(self, node: str) -> tuple[Transfer, ...]:
        """What may move from a node: for each of its operators up, then down."""
        if node not in self._known:
            self._known[node] = tuple(self._find_transfers(node))
        return self._known[node]

    def move(self, operators: Iterable[str], to: str) -> None:
        """Puts operators on a node, whatever the rules say; see :meth:`find_misplaced`."""
        for operator in operators:
            source = self._origins[operator]
            del self._on[source][operator]
            self._on[to][operator] = None
            self._origins[operator] = to
            self._known.pop(source, None)
        self._known.pop(to, None)

    def find_misplaced(self, operators: Iterable[str]) -> str | None:
        """One of the operators that an input does not reach, or whose reader it does not reach."""
        for operator in operators:
            around = (operator, *self._readers[operator])
            for reader in around:
                if not self._is_fed(reader):
                    return reader
        return None

    def _is_fed(self, operator: str) -> bool:
        node = self._origins[operator]
        return all(self.nodes.passes(self._origins[name], node) for name in self._inputs[operator])

    def _find_transfers(self, node: str) -> Iterator[Transfer]:
        parent = self.nodes.parents[node]
        for operator in self._on[node]:
            if parent is not None:
                together = self._closure(operator, node, self._readers.__getitem__)
                yield self._transfer(node, parent, together)
            child = self._way_down(operator, node)
            if child is not None:
                yield self._transfer(node, child, self._closure(operator, node, self._feeding))

    def _transfer(self, node: str, to: str, operators: Iterable[str]) -> Transfer:
        return Transfer(node, to, tuple(sorted(operators, key=self._order.__getitem__)))

    def _feeding(self, operator: str) -> tuple[str, ...]:
        return tuple(name for name in self._inputs[operator] if name in self._inputs)

    def _closure(
        self, operator: str, node: str, following: Callable[[str], tuple[str, ...]]
    ) -> Mapping[str, None]:
        """The operator and all on the node that it leads to, in the direction of ``following``."""
        found: dict[str, None] = {operator: None}
        stack = [operator]
        while stack:
            for name in following(stack.pop()):
                if name not in found and self._origins[name] == node:
                    found[name] = None
                    stack.append(name)
        return found

    def _way_down(self, operator: str, node: str) -> str | None:
        """The child that feeds the operator and all that feeds it on the node; None without one."""
        child: str | None = None
        for name in self._closure(operator, node, self._feeding):
            if self.rule is DownRule.NARROW and len(self._inputs[name]) != 1:
                return None
            for stream in self._inputs[name]:
                if stream in self._inputs and self._origins[stream] == node:
                    continue
                way = self.nodes.child_towards(node, self._origins[stream])
                if way is None or (child is not None and way != child):
                    return None
                child = way
        return child


def feasible_transfers(
    network: TreeNetwork, rule: DownRule = DownRule.NARROW
) -> tuple[Transfer, ...]:
    """Every transfer that is feasible in a tree, node by node in the order of the file.

    >>> from penstock.lang.abstract import parse_tree
    >>> tree = parse_tree('''
    ... nodes:     {root: {}, a: {parent: root}, b: {parent: root}}
    ... inputs:    {m1: {node: a}, m2: {node: b}}
    ... operators:
    ...   f: {inputs: [m1], size: 3.5, node: a}
    ...   g: {inputs: [f, m2], size: 2, node: root}
    ... ''', "two.yaml")
    >>> feasible_transfers(tree)
    (Transfer(node='a', to='root', operators=('f',)),)
    """
    placed = PlacedOperators(network, rule)
    return tuple(found for node in network.nodes.parents for found in placed.transfers(node))


def size_of(operators: Iterable[str], sizes: Mapping[str, float]) -> float:
    """What operators take together, in percent of a node; to a billionth, so that sums compare.

    >>> size_of(("a", "b", "c"), {"a": 0.1, "b": 0.1, "c": 0.1})
    0.3
    """
    return round(math.fsum(sizes[operator] for operator in operators), 9)
