"""Strategies whose plans keep to a tree of nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from penstock.load.arrays import Ints
from penstock.load.problem import Problem
from penstock.model.fragments import Fragment
from penstock.model.network import Deployment
from penstock.model.node_tree import tree_of
from penstock.place.strategy import Strategy
from penstock.place.tree_placing import TreeWiring, place_in_tree


class InTree(Strategy):
    """Another strategy's plan, with everything where its inputs pass.

    ``names`` are the fragments of every unit of the problem.
    """

    def __init__(
        self,
        inner: Strategy,
        wiring: TreeWiring,
        names: Sequence[Sequence[str]],
        pinned: Mapping[str, str],
    ) -> None:
        self.name = inner.name  # type: ignore[misc]
        self.inner, self._wiring, self._names, self._pinned = inner, wiring, names, pinned

    def place(self, problem: Problem, rng: np.random.Generator) -> Ints:
        plan = self.inner.place(problem, rng)
        wished = {
            fragment: problem.nodes[node]
            for fragments, node in zip(self._names, plan, strict=True)
            for fragment in fragments
        }
        placed = place_in_tree(self._wiring, list(wished), {}, self._pinned, wished)
        # Fragments of one unit stay together: where the streams of all of them pass.
        paths = (
            self._wiring.nodes.common_path([placed[name] for name in fragments])
            for fragments in self._names
        )
        return np.array([problem.nodes.index(path[0]) for path in paths], dtype=np.int64)


def deployed_wiring(deployment: Deployment, fragments: Sequence[Fragment]) -> TreeWiring | None:
    """What flows where in a deployment; None where its nodes form no tree."""
    tree = tree_of({node.name: node.parent for node in deployment.nodes})
    if tree is None:
        return None
    makers = {fragment.output: fragment.name for fragment in fragments}
    reads = {
        fragment.name: {stream: makers.get(stream, stream) for stream in fragment.inputs}
        for fragment in fragments
    }
    attached = {stream.name: stream.on or tree.root for stream in deployment.network.streams}
    reads |= {name: {} for name in attached}
    return TreeWiring(tree, reads, attached)
