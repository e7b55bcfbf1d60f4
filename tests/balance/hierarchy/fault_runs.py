"""Small trees in a bad network, drawn from a seed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from balance.hierarchy.trees import random_tree
from balance.hierarchy.watching import SafetyWatcher
from penstock.balance.hierarchy.negotiation import Hierarchy
from penstock.balance.hierarchy.settings import Accept, HierarchySettings, TransferOrder
from penstock.balance.hierarchy.transfers import DownRule
from penstock.model.node_tree import NodeTree
from penstock.model.tree_network import TreeInput, TreeNetwork, TreeOperator
from penstock.sim.links import Links
from penstock.sim.tree_world import Outage, SizeChange, TreeWorld

TROUBLE_S = 20.0
_CALM_S = 10.0
_CHUNK_S = 22.0
_MOST_CHUNKS = 12


def settings_of(seed: int) -> HierarchySettings:
    """Every choice occurs."""
    rng = np.random.default_rng([seed, 1])
    return HierarchySettings(
        accept=Accept.UPPER if rng.random() < 0.7 else Accept.TARGET,
        rule=DownRule.NARROW if rng.random() < 0.5 else DownRule.WIDE,
        order=TransferOrder.FOUND if rng.random() < 0.5 else TransferOrder.LARGEST,
        rest_periods=float(rng.integers(0, 4)),
        relay=bool(rng.random() < 0.5),
    )


def world_of(seed: int, protocol: Hierarchy, watcher: SafetyWatcher, traced: bool) -> TreeWorld:
    """A tree of 3 to 6 nodes, or one node that all others want to fill.

    One run in six has a sound network; in one of five, nodes are not alike.
    """
    rng = np.random.default_rng([seed, 2])
    network = (
        _crowded(rng)
        if seed % 3 == 1
        else _loaded(random_tree(seed, int(rng.integers(3, 7)), int(rng.integers(8, 20))), rng)
    )
    changes = [
        SizeChange(
            rng.random() * TROUBLE_S,
            network.operators[rng.integers(len(network.operators))].name,
            float(rng.integers(0, 30)),
        )
        for _ in range(rng.integers(0, 12))
    ]
    links, outages = Links(), []
    if not is_sound(seed):
        longest_s = float(rng.choice([0.05, 0.6, 2.5]))
        links = Links(0.01, longest_s, rng.random() * 0.3, rng.random() * 0.3)
        outages = [_outage(network, rng) for _ in range(rng.integers(0, 4))]
    capacities = _unequal(network, seed) if seed % 5 == 4 else {}
    world = TreeWorld(network, protocol, seed, links, outages, changes, watcher, traced, capacities)
    watcher.world = world
    return world


def _unequal(network: TreeNetwork, seed: int) -> dict[str, float]:
    rng = np.random.default_rng([seed, 3])
    return {name: float(rng.choice([0.3, 0.7, 1.0, 2.5])) for name in network.nodes.parents}


def is_sound(seed: int) -> bool:
    return seed % 6 == 0


def _loaded(network: TreeNetwork, rng: np.random.Generator) -> TreeNetwork:
    """Sizes for which a typical node is between the thresholds, some far outside."""
    mean = 50.0 * len(network.nodes.parents) / len(network.operators)
    return replace(
        network,
        operators=tuple(
            replace(operator, size=round(float(mean * rng.gamma(2.0, 0.5)), 2))
            for operator in network.operators
        ),
    )


def _crowded(rng: np.random.Generator) -> TreeNetwork:
    """Overloaded neighbours around a node with little room."""
    around = [f"c{at}" for at in range(rng.integers(2, 5))]
    tree = NodeTree({"p": None, "v": "p", **dict.fromkeys(around, "v")})
    operators = [TreeOperator("own", ("m0",), float(rng.integers(35, 50)), "v")]
    for node in ("p", *around):
        total = 0.0
        while total < 64:
            source = f"m{rng.integers(len(around))}" if node == "p" else f"m{node[1:]}"
            size = float(rng.integers(3, 10))
            operators.append(TreeOperator(f"{node}_{len(operators)}", (source,), size, node))
            total += size
    inputs = tuple(TreeInput(f"m{name[1:]}", name) for name in around)
    return TreeNetwork(tree, inputs, tuple(operators))


def _outage(network: TreeNetwork, rng: np.random.Generator) -> Outage:
    names = list(network.nodes.parents)
    node = names[rng.integers(len(names))]
    from_s = rng.random() * TROUBLE_S
    is_crash = bool(rng.random() < 0.5)
    taken_over = is_crash and network.nodes.parents[node] is not None and rng.random() < 0.3
    return Outage(node, from_s, from_s + rng.exponential(4.0), is_crash, taken_over)


def run(seed: int, protocol: Hierarchy | None = None, traced: bool = False) -> SafetyWatcher:
    """A run through the trouble and on until nothing moves; what went wrong in it."""
    settings = settings_of(seed)
    watcher = SafetyWatcher(settings, is_sound(seed))
    world = world_of(seed, protocol or Hierarchy(settings), watcher, traced)
    world.advance(TROUBLE_S + _CALM_S)
    for chunk in range(1, _MOST_CHUNKS + 1):
        steps = world.steps
        world.advance(TROUBLE_S + _CALM_S + chunk * _CHUNK_S)
        if world.steps == steps:
            break
    else:
        watcher.violations.append("it never comes to rest")
    watcher.check_end()
    return watcher
