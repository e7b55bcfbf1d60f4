"""Random trees with operators on them, small enough to try everything."""

from __future__ import annotations

import numpy as np

from penstock.model.node_tree import NodeTree
from penstock.model.tree_network import TreeInput, TreeNetwork, TreeOperator


def random_tree(seed: int, nodes: int = 6, operators: int = 12, sources: int = 4) -> TreeNetwork:
    """A tree in which chains, forks, several inputs and inputs named twice all occur."""
    rng = np.random.default_rng(seed)
    parents: dict[str, str | None] = {"n0": None}
    for at in range(1, nodes):
        parents[f"n{at}"] = f"n{rng.integers(at)}"
    tree = NodeTree(parents)
    names = list(parents)
    origins = {f"m{at}": names[rng.integers(nodes)] for at in range(sources)}
    inputs = tuple(TreeInput(name, node) for name, node in origins.items())
    found: list[TreeOperator] = []
    while len(found) < operators:
        node = names[rng.integers(nodes)]
        passing = [name for name, origin in origins.items() if tree.passes(origin, node)]
        if passing:
            # Streams that were made last are read more often, so that chains become long.
            picks = rng.integers(1, 1 + min(len(passing), 3), rng.choice([1, 1, 1, 2, 3]))
            read = tuple(passing[-pick] for pick in picks)
            name = f"o{len(found)}"
            found.append(TreeOperator(name, read, float(rng.integers(1, 20)), node))
            origins[name] = node
    return TreeNetwork(tree, inputs, tuple(found))
