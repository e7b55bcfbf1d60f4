"""A tree that balances itself, over time: what the simulation of large trees is asked and tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.balance.hierarchy.settings import Accept, HierarchySettings, TransferOrder
from penstock.balance.hierarchy.transfers import DownRule
from penstock.errors import RunError
from penstock.load.arrays import Floats, Ints
from penstock.model.tree_network import TreeNetwork
from penstock.sim.tree_arrays import (
    FAILED,
    MESSAGES,
    MOVED,
    STEPS,
    Checks,
    Mail,
    Nodes,
    Operators,
    Rules,
    Scratch,
    TreeShape,
)
from penstock.sim.tree_kernel import run_sampled
from penstock.sim.tree_walks import link

_DRAWS = 256


@dataclass(frozen=True)
class Loads:
    """How sizes change: from ``times_s`` on, the operator of that number takes that much."""

    times_s: Floats
    operators: Ints
    sizes: Floats


@dataclass(frozen=True)
class TreeFigures:
    """A row for every sample: over all nodes the mean, the deviation, how many are above the upper
    threshold, and by how many points these exceed it together."""

    times_s: Floats
    mean: Floats
    deviation: Floats
    overloaded: Ints
    excess: Floats
    messages: int
    steps: int
    moved: int
    assignment: Ints
    """The number of the node of every operator at the end."""


NO_CHANGES = Loads(np.zeros(0), np.zeros(0, np.int64), np.zeros(0))


def run_tree(
    network: TreeNetwork,
    settings: HierarchySettings | None,
    loads: Loads = NO_CHANGES,
    length_s: float = 960.0,
    sample_s: float = 2.0,
    delay_s: float = 0.02,
    seed: int = 0,
) -> TreeFigures:
    """Lets a tree balance itself, or without settings leaves everything where it is.

    Work grows with the number of checks and of messages, and for each of them with the operators
    of the nodes concerned; nodes that are neither checking nor told anything cost nothing.

    >>> from penstock.lang.abstract import parse_tree
    >>> tree = parse_tree('''
    ... nodes: {root: {}, v: {parent: root}, c: {parent: v}}
    ... inputs: {m: {node: c}}
    ... operators:
    ...   A: {inputs: [m], size: 10, node: v}
    ...   rest: {inputs: [m], size: 55, node: v}
    ...   p: {inputs: [rest], size: 59, node: root}
    ...   k: {inputs: [m], size: 40, node: c}
    ... ''', "figure-12.yaml")
    >>> found = run_tree(tree, HierarchySettings(), length_s=6.0)
    >>> found.overloaded.tolist(), found.moved
    ([1, 1, 0], 1)
    """
    shape, operators = _shape(network), _operators(network)
    rules = _rules(settings or HierarchySettings(), delay_s)
    nodes, checks = _nodes(shape, rules, seed, is_still=settings is None)
    mail, scratch = _mail(shape, operators), _scratch(operators)
    changes = (loads.times_s, loads.operators, loads.sizes)
    times_s: Floats = np.arange(1.0, int(length_s / sample_s) + 1) * sample_s
    rows = np.zeros((len(times_s), 4))
    run_sampled(shape, rules, nodes, operators, mail, scratch, checks, changes, times_s, rows)
    if scratch.counts[FAILED]:
        raise RunError("more messages were under way than there is room for; this is a bug")
    mean, deviation, overloaded, excess = rows.T.copy()
    return TreeFigures(
        times_s,
        mean,
        deviation,
        overloaded.astype(np.int64),
        excess,
        int(scratch.counts[MESSAGES]),
        int(scratch.counts[STEPS]),
        int(scratch.counts[MOVED]),
        operators.on.copy(),
    )


def _rules(settings: HierarchySettings, delay_s: float) -> Rules:
    is_upper = settings.accept is Accept.UPPER
    return Rules(
        settings.lower,
        settings.upper,
        settings.period_s,
        settings.upper - settings.margin if is_upper else settings.target,
        settings.rest_periods * settings.period_s,
        delay_s,
        settings.rule is DownRule.WIDE,
        settings.order is TransferOrder.LARGEST,
        settings.relay,
    )


def _shape(network: TreeNetwork) -> TreeShape:
    tree = network.nodes
    number = {name: at for at, name in enumerate(tree.parents)}
    parents = [-1 if parent is None else number[parent] for parent in tree.parents.values()]
    around = [[number[peer] for peer in tree.neighbours(name)] for name in tree.parents]
    firsts = [tree.depth_first(name) for name in tree.parents]
    numbers = {operator.name: at for at, operator in enumerate(network.operators)}
    sources = {stream.name: -number[stream.node] - 1 for stream in network.inputs}
    inputs = [
        [numbers[name] if name in numbers else sources[name] for name in operator.inputs]
        for operator in network.operators
    ]
    readers = [
        [numbers[reader] for reader in network.readers[operator.name]]
        for operator in network.operators
    ]
    return TreeShape(
        np.array(parents), *_lists(around), np.array(firsts), *_lists(inputs), *_lists(readers)
    )


def _lists(lists: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """Lists of different lengths as one array, and where each begins."""
    starts = np.zeros(len(lists) + 1, np.int64)
    np.cumsum([len(members) for members in lists], out=starts[1:])
    return starts, np.array([number for members in lists for number in members], np.int64)


def _operators(network: TreeNetwork) -> Operators:
    number = {name: at for at, name in enumerate(network.nodes.parents)}
    count, nodes = len(network.operators), len(number)
    found = Operators(
        np.array([float(operator.size) for operator in network.operators]),
        np.zeros(count, np.int64),
        np.full(count, -1),
        np.full(count, -1),
        np.full(nodes, -1),
        np.full(nodes, -1),
        np.full(count, -1.0),
        np.zeros(count, np.int64),
        np.zeros(count + 1, np.int64),
    )
    for at, operator in enumerate(network.operators):
        link(found, at, number[operator.node])
    return found


def _nodes(shape: TreeShape, rules: Rules, seed: int, is_still: bool) -> tuple[Nodes, Checks]:
    count = len(shape.parents)
    streams = np.random.default_rng(seed).spawn(count + 1)[1:]
    draws = np.array([stream.random(_DRAWS) for stream in streams])
    first_s = np.full(count, np.inf) if is_still else draws[:, 0] * rules.period_s
    order = np.argsort(first_s, kind="stable")
    places = np.empty(count, np.int64)
    places[order] = np.arange(count)
    nodes = Nodes(
        roles=np.zeros(count, np.int64),
        partners=np.zeros(count, np.int64),
        waiting=np.zeros(count, np.int64),
        met_busy=np.zeros(count, np.int64),
        pressed=np.zeros(count, np.int64),
        relayed=np.zeros(count, np.int64),
        reply_counts=np.zeros(count, np.int64),
        replies=np.zeros(len(shape.neighbours), np.int64),
        next_check_s=first_s,
        draws=draws[:, 1:],
        drawn=np.zeros(count, np.int64),
    )
    return nodes, Checks(order.astype(np.int64), places)


def _mail(shape: TreeShape, operators: Operators) -> Mail:
    # Every directed link carries a message or two at a time, and a node lists each of its
    # operators at most twice for each neighbour. What is left is room for old replies.
    messages = 64 * (len(shape.neighbours) + 1)
    codes = 64 * (len(operators.on) + len(shape.neighbours) + 1)
    return Mail(
        arrives_s=np.zeros(messages),
        kinds=np.zeros(messages, np.int64),
        senders=np.zeros(messages, np.int64),
        receivers=np.zeros(messages, np.int64),
        urgent=np.zeros(messages, np.int64),
        sizes=np.zeros(messages),
        starts=np.zeros(messages, np.int64),
        counts=np.zeros(messages, np.int64),
        codes=np.zeros(codes, np.int64),
        portions=np.zeros(codes),
        ends=np.zeros(4, np.int64),
    )


def _scratch(operators: Operators) -> Scratch:
    most = 2 * len(operators.on) + 1
    return Scratch(
        np.zeros(most, np.int64),
        np.zeros(most),
        np.zeros(most, np.int64),
        np.zeros(most),
        np.zeros(4, np.int64),
    )
