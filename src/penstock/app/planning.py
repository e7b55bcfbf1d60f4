"""What ``penstock plan`` plans: the problem in a file, and the strategies that compete for it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np

from penstock.control.disk_room import expected_shortages
from penstock.control.spreading import in_parts
from penstock.errors import UsageError, listed, suggestion
from penstock.feeds.rates import known_rates
from penstock.kernels.engine_choice import light_fragments
from penstock.lang.abstract import abstract_in
from penstock.lang.deployment import parse_deployment
from penstock.lang.files import text_of
from penstock.load.bridge import abstract_network, unmeasured_batches, unmeasured_kinds
from penstock.load.costs import measured_costs
from penstock.load.problem import Problem, placement_problem
from penstock.model.abstract import AbstractInput, AbstractNetwork, AbstractNode, AbstractOperator
from penstock.model.binding import written_node
from penstock.model.network import Deployment, NodeSpec
from penstock.place.exhaustive import Exhaustive, is_small
from penstock.place.fragments import fragments_by_unit
from penstock.place.fuse import fuse
from penstock.place.in_tree import InTree, deployed_wiring
from penstock.place.plan import Plan, best_first, make_plan, misfits
from penstock.place.registry import GROUP, strategies, strategy_called
from penstock.place.rhythm import counted_rounds_s, unhurried
from penstock.place.strategy import Strategy
from penstock.place.tree_placing import TreeWiring

DEFAULT = "rod"


@dataclass(frozen=True)
class Subject:
    """What a file asks to be placed: ``names`` are what people call the parts of each unit.

    ``wiring`` is what flows where if nodes form a tree; plans keep to it, and to what is
    ``pinned``.
    """

    problem: Problem
    algorithm: str
    kind: str
    names: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]
    wiring: TreeWiring | None = None
    pinned: Mapping[str, str] = field(default_factory=dict)


def subject(path: Path, nodes: int | None) -> Subject:
    """The problem in a deployment file or an abstract network; on ``nodes`` nodes, if given."""
    text = text_of(path)
    network = abstract_in(text, str(path))
    if network is not None:
        if nodes is not None:
            network = _resized(network, nodes)
        problem = placement_problem(network)
        notes = (*problem.notes, *misfits(problem))
        return Subject(problem, DEFAULT, "units", problem.members, notes)
    return _deployed(parse_deployment(text, str(path), path.parent), nodes, path.parent)


def _resized(network: AbstractNetwork, nodes: int) -> AbstractNetwork:
    first = network.nodes[0]
    many = tuple(
        AbstractNode(f"n{at}", first.cpu, first.bandwidth_per_s) for at in range(1, nodes + 1)
    )
    return AbstractNetwork(
        network.inputs, network.operators, many, network.bandwidth_per_s, network.transfer_cost_s
    )


def _deployed(deployment: Deployment, nodes: int | None, folder: Path) -> Subject:
    costs, network = measured_costs(), deployment.network
    fused, given = fuse(network), deployment.nodes
    wiring = None if nodes is not None else deployed_wiring(deployment, fused)
    # In a tree a fragment goes where all its inputs pass, and so do its parts.
    fragments = fused if wiring is not None else tuple(in_parts(network, fused))
    if nodes is not None:
        given = tuple(NodeSpec(f"n{at}") for at in range(1, nodes + 1))
    rounds_s, light = counted_rounds_s(network, fragments), light_fragments(network, fragments)
    problem = placement_problem(
        abstract_network(
            network, fragments, given, costs, known_rates(network), None, rounds_s, light
        )
    )
    notes = (
        *unmeasured_kinds(fragments, costs),
        *unmeasured_batches(fragments, costs, light),
        *unhurried(network, fragments),
        *expected_shortages(network, fragments, folder),
        *problem.notes,
        *misfits(problem),
    )
    names = fragments_by_unit(problem, fragments)
    written = {fragment.name: written_node(network, fragment) for fragment in fragments}
    pinned = {name: node for name, node in written.items() if node is not None}
    placement = deployment.placement or DEFAULT
    return Subject(problem, placement, "fragments", names, notes, wiring, pinned)


def competitors(asked: Subject, algorithm: str) -> list[Strategy]:
    """The strategy asked for and its rivals; the exhaustive one only where it is small or asked."""
    found = _competitors(asked.problem, algorithm)
    if asked.wiring is None:
        return found
    return [InTree(strategy, asked.wiring, asked.names, asked.pinned) for strategy in found]


def _competitors(problem: Problem, algorithm: str) -> list[Strategy]:
    known = strategies(entry_points(group=GROUP))
    strategy_called(algorithm, known)
    return [
        make()
        for name, make in known.items()
        if name == algorithm or make is not Exhaustive or is_small(problem)
    ]


def plans_of(problem: Problem, rivals: list[Strategy], seed: int) -> list[Plan]:
    """The plans of all rivals, best first. Compiled loops are loaded before time is taken."""
    tiny = placement_problem(_TINY)
    for strategy in rivals:
        # What is in a tree knows the units of its own problem only.
        (strategy.inner if isinstance(strategy, InTree) else strategy).place(
            tiny, np.random.default_rng(0)
        )
    return best_first(make_plan(problem, rival, time.perf_counter, seed) for rival in rivals)


_TINY = AbstractNetwork(
    (AbstractInput("I1"),),
    tuple(AbstractOperator(f"o{at}", ("I1" if not at else f"o{at - 1}",), 1.0) for at in range(4)),
    (AbstractNode("n1", 1.0, 1.0), AbstractNode("n2")),
    transfer_cost_s=0.1,
)


def chosen_axes(problem: Problem, written: str | None) -> tuple[int, int]:
    """The two variables of a figure, from "I1,I2" or by how much load they make."""
    from penstock.load.slices import main_axes

    if problem.size[2] < 2:
        raise UsageError(
            f"a figure needs two variables and there is only {problem.variables[0]}",
            hint="Leave out --figure.",
        )
    if written is None:
        return main_axes(problem)
    names = [name.strip() for name in written.split(",")]
    for name in names:
        if name not in problem.variables:
            raise UsageError(
                f"--slice {written}: no variable {name}; there are {listed(problem.variables)}",
                hint=suggestion(name, problem.variables),
            )
    if len(set(names)) != 2:
        raise UsageError(f"--slice {written} does not name two variables", hint="Write I1,I2.")
    return problem.variables.index(names[0]), problem.variables.index(names[1])
