"""The workload of the tree's study: operators on a binary tree that grow, and later shrink."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.model.node_tree import NodeTree
from penstock.model.tree_network import TreeInput, TreeNetwork, TreeOperator
from penstock.sim.tree_loads import Fluctuation, Shrinking
from penstock.sim.tree_run import Loads
from penstock.studies.seeds import rng_of

_UPPER = 60.0
"""No node is fuller than this at the start, in percent."""


@dataclass(frozen=True)
class TreeWorkload:
    """A perfect binary tree, 24 operators for every node, of one or two parts each.

    ``start`` is the mean utilisation at the beginning, ``unit`` what one step of growth takes, both
    in percent of a node. For every 15 nodes one operator grows at a time.
    """

    seed: int
    nodes: int = 15
    per_node: int = 24
    start: float = 36.0
    unit: float = 1.0
    is_random: bool = False
    chained: float = 0.35
    joined: float = 0.15
    shrinking: Shrinking = Shrinking.IN_ORDER

    def network(self) -> TreeNetwork:
        """The tree as it begins: no node is above 60 percent."""
        rng = rng_of("tree", self.seed, self.nodes)
        tree = NodeTree({f"n{at}": f"n{(at - 1) // 2}" if at else None for at in range(self.nodes)})
        total = self.nodes * self.per_node
        parts = rng.integers(1, 3, total) * self.start / (1.5 * self.per_node)
        places = self._places(parts, rng)
        leaves = [at for at in range(self.nodes) if 2 * at + 1 >= self.nodes]
        inputs = tuple(TreeInput(f"m{leaf}", f"n{leaf}") for leaf in leaves)
        on: list[list[str]] = [[] for _ in range(self.nodes)]
        operators = []
        # From the leaves upwards, so that what is below can be read.
        for number in sorted(range(len(places)), key=lambda at: -places[at]):
            node, name = int(places[number]), f"o{number}"
            count = 2 if rng.random() < self.joined else 1
            read = tuple(self._stream(node, on, rng) for _ in range(count))
            operators.append(TreeOperator(name, read, float(parts[number]), f"n{node}"))
            on[node].append(name)
        return TreeNetwork(tree, inputs, tuple(operators))

    def _places(self, parts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The node of every operator: as many on each, or any that is not overloaded by it."""
        if not self.is_random:
            return np.repeat(np.arange(self.nodes), self.per_node)
        loads = np.zeros(self.nodes)
        places = np.empty(len(parts), np.int64)
        for at, size in enumerate(parts):
            node = rng.integers(self.nodes)
            while loads[node] + size > _UPPER:
                node = rng.integers(self.nodes)
            places[at] = node
            loads[node] += size
        return places

    def _stream(self, node: int, on: list[list[str]], rng: np.random.Generator) -> str:
        """Something that passes the node: a stream from here, from a child, or from a leaf."""
        chance = rng.random()
        if chance < self.chained and on[node]:
            return on[node][rng.integers(len(on[node]))]
        at = node
        while 2 * at + 1 < self.nodes:
            at = 2 * at + 1 + int(rng.integers(min(2, self.nodes - 2 * at - 1)))
            if chance < 2 * self.chained and on[at]:
                return on[at][rng.integers(len(on[at]))]
        return f"m{at}"

    def loads(self, network: TreeNetwork) -> Loads:
        """Growth until half time, then shrinking of what grew."""
        first = np.array([operator.size for operator in network.operators])
        # Operators are drawn by the numbers in their names: the same whatever the placement.
        order = np.argsort([int(operator.name[1:]) for operator in network.operators])
        at_once = max(1, self.nodes // 15)
        changing = Fluctuation(self.unit, at_once=at_once, shrinking=self.shrinking)
        return changing.loads(first, order, rng_of("tree-loads", self.seed, self.nodes))
