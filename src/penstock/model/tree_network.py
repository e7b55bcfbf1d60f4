"""Operators on a tree of nodes: what hierarchical balancing is told, and what people write."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter

from penstock.errors import InputError, suggestion
from penstock.model.node_tree import NodeTree


@dataclass(frozen=True)
class TreeInput:
    """A source and the node it is attached to."""

    name: str
    node: str


@dataclass(frozen=True)
class TreeOperator:
    """An operator, the percent of a node it takes, and the node it is on.

    >>> TreeOperator("g", ("f", "m2"), 2.0, "root").size
    2.0
    """

    name: str
    inputs: tuple[str, ...]
    size: float
    node: str

    def __post_init__(self) -> None:
        if not self.inputs:
            raise InputError(f"operator {self.name} reads nothing", hint="Name its inputs.")
        if not 0 <= self.size < math.inf:
            raise InputError(
                f"operator {self.name} has the size {self.size:g}",
                hint="Give percent of a node, zero or more.",
            )


@dataclass(frozen=True)
class TreeNetwork:
    """A tree of nodes with sources and operators, each where all its inputs pass.

    Names of sources and operators differ, all that is read exists, nothing reads itself.

    >>> tree = TreeNetwork(
    ...     NodeTree({"root": None, "a": "root"}),
    ...     (TreeInput("m", "a"),),
    ...     (TreeOperator("f", ("m",), 3.5, "a"), TreeOperator("g", ("f",), 2.0, "root")),
    ... )
    >>> tree.readers["f"]
    ('g',)
    """

    nodes: NodeTree
    inputs: tuple[TreeInput, ...]
    operators: tuple[TreeOperator, ...]

    def __post_init__(self) -> None:
        _check_names(self)
        for stream in self.inputs:
            _check_node(self, f"input {stream.name} is attached to", stream.node)
        for operator in self.operators:
            _check_node(self, f"operator {operator.name} is on", operator.node)
            _check_inputs(self, operator)
        _check_no_circle(self.operators)

    @cached_property
    def origins(self) -> Mapping[str, str]:
        """The node on which the stream of every source and every operator begins."""
        found = {stream.name: stream.node for stream in self.inputs}
        found.update((operator.name, operator.node) for operator in self.operators)
        return found

    @cached_property
    def readers(self) -> Mapping[str, tuple[str, ...]]:
        """The operators that read each stream, each once."""
        found: dict[str, dict[str, None]] = {name: {} for name in self.origins}
        for operator in self.operators:
            for name in operator.inputs:
                found[name][operator.name] = None
        return {name: tuple(readers) for name, readers in found.items()}


def _check_names(network: TreeNetwork) -> None:
    seen: set[str] = set()
    names = [stream.name for stream in network.inputs]
    for name in (*names, *(operator.name for operator in network.operators)):
        if name in seen:
            raise InputError(f"two inputs or operators are called {name}", hint="Rename one.")
        seen.add(name)


def _check_node(network: TreeNetwork, what: str, node: str) -> None:
    if node not in network.nodes.parents:
        raise InputError(
            f"{what} {node}, which is no node", hint=suggestion(node, network.nodes.parents)
        )


def _check_inputs(network: TreeNetwork, operator: TreeOperator) -> None:
    for name in operator.inputs:
        origin = network.origins.get(name)
        if origin is None:
            raise InputError(
                f"operator {operator.name} reads {name}, which does not exist",
                hint=suggestion(name, network.origins),
            )
        if origin in network.nodes.parents and not network.nodes.passes(origin, operator.node):
            raise InputError(
                f"operator {operator.name} is on {operator.node}, where its input {name} from "
                f"{origin} does not pass",
                hint=f"It can run on {origin} or above.",
            )


def _check_no_circle(operators: tuple[TreeOperator, ...]) -> None:
    by_name = {operator.name: operator for operator in operators}
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for operator in operators:
        sorter.add(operator.name, *(name for name in operator.inputs if name in by_name))
    try:
        sorter.prepare()
    except CycleError as error:
        circle = " -> ".join(reversed(error.args[1]))
        raise InputError(f"these read each other in a circle: {circle}", hint="Break it.") from None
