"""What ``penstock simulate`` runs: the network in a file, how its inputs arrive, who balances."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np

from penstock.balance.hierarchy.settings import HierarchySettings, Utilisation
from penstock.balance.hierarchy.written import HIERARCHY
from penstock.balance.policies import policy_called
from penstock.balance.settings import BalanceSettings
from penstock.errors import InputError, UsageError, listed, suggestion
from penstock.feeds.rates import known_paces, known_rates
from penstock.kernels.engine_choice import light_fragments
from penstock.lang.abstract import abstract_in
from penstock.lang.deployment import parse_deployment
from penstock.lang.files import text_of
from penstock.load.arrays import Ints
from penstock.load.batches import BatchWork, batch_network
from penstock.load.bridge import abstract_network, unmeasured_batches, unmeasured_kinds
from penstock.load.costs import measured_costs
from penstock.load.problem import Problem, placement_problem
from penstock.model.abstract import AbstractNetwork, AbstractNode
from penstock.model.network import Deployment, NodeSpec
from penstock.model.node_tree import tree_of
from penstock.place.fragments import fragments_by_unit
from penstock.place.fuse import fuse
from penstock.place.in_tree import InTree
from penstock.place.registry import GROUP, strategies, strategy_called
from penstock.place.rhythm import SHORTEST_US, counted_rounds_s, round_us
from penstock.place.strategy import check_assignment
from penstock.place.tree_placing import TreeWiring
from penstock.sim.arrivals import Alternating, Arrivals, OnOff, Recorded, Steady, self_similar
from penstock.sim.balancing import BalancedSystem, Balancing, SimulatedNodes
from penstock.sim.micro_batches import MicroBatches
from penstock.sim.negotiating import NegotiatedSystem, wiring_of
from penstock.sim.physics import Physics
from penstock.sim.row_feeds import ArrivingRows
from penstock.sim.simulation import Simulation
from penstock.sim.tree_run import TreeFigures

ARRIVALS = ("poisson", "periodic", "alternating", "on-off", "self-similar")
DEFAULT_PLACEMENT = "rod"
_STEPS = 100
_ONLY_CPU = "utilisation by {} is not simulated: nodes look at their processor time"


@dataclass(frozen=True)
class SimulationRequest:
    """What was asked for on the command line."""

    file: Path
    length_s: float = 60.0
    nodes: int | None = None
    placement: str | None = None
    policy: str | None = None
    suggest: bool = False
    arrivals: str = "poisson"
    rates: Mapping[str, float] = field(default_factory=dict)
    traces: Mapping[str, Path] = field(default_factory=dict)
    scale: float = 1.0
    physics: Physics = field(default_factory=Physics)
    seed: int = 0


@dataclass(frozen=True)
class SimulationSubject:
    """What a file asks to be simulated.

    ``planned`` is what planners are told about it, and ``units`` are the operators of ``network``
    in each of their units. ``work`` says how the fragments of a deployment work, batch by batch. If
    its nodes form a ``tree``, they balance themselves as ``hierarchy`` says.
    """

    network: AbstractNetwork
    placement: str
    balancing: Balancing
    notes: tuple[str, ...]
    planned: Problem
    units: tuple[tuple[str, ...], ...]
    work: Mapping[str, BatchWork] | None = None
    tree: TreeWiring | None = None
    hierarchy: HierarchySettings = field(default_factory=HierarchySettings)

    @property
    def policy(self) -> str:
        return self.balancing.policy


@dataclass(frozen=True)
class Simulated:
    """A simulation that has ended; that of a tree also ``without`` negotiations."""

    request: SimulationRequest
    subject: SimulationSubject
    system: BalancedSystem | NegotiatedSystem
    took_s: float
    without: TreeFigures | None = None


def simulate_file(request: SimulationRequest, progress: Callable[[float], None]) -> Simulated:
    """Runs what was asked for; ``progress`` is told the share that is done."""
    subject = subject_of(request)
    _check_policy(subject, request)
    arrivals = arrivals_of(subject.network, request)
    start = _placed(subject, request.seed)

    def nodes_at_work() -> SimulatedNodes:
        return _nodes_at_work(subject, arrivals, start, request)

    began = time.perf_counter()
    if subject.tree is not None:
        system, without = _simulate_tree(subject, subject.tree, nodes_at_work, request, progress)
        return Simulated(request, subject, system, time.perf_counter() - began, without)
    balanced = BalancedSystem(nodes_at_work(), subject.balancing, request.seed)
    _let_run(balanced, request.length_s, progress)
    return Simulated(request, subject, balanced, time.perf_counter() - began)


def _check_policy(subject: SimulationSubject, request: SimulationRequest) -> None:
    """Raises if nobody knows the policy, or if it is not for such nodes."""
    policy = subject.policy
    if subject.tree is None:
        if policy == HIERARCHY:
            raise UsageError(
                f"the policy {HIERARCHY} is for nodes that form a tree",
                hint="Give nodes a parent: in the file, and leave out --nodes.",
            )
        policy_called(policy)
    elif policy not in (HIERARCHY, "off"):
        raise UsageError(
            f"the policy {policy} does not know that nodes form a tree",
            hint=f"Write --balance {HIERARCHY}, or off.",
        )
    elif request.suggest:
        raise UsageError("nodes that negotiate suggest nothing", hint="Leave out --suggest.")


def _simulate_tree(
    subject: SimulationSubject,
    tree: TreeWiring,
    nodes_at_work: Callable[[], SimulatedNodes],
    request: SimulationRequest,
    progress: Callable[[float], None],
) -> tuple[NegotiatedSystem, TreeFigures]:
    """A tree as it is asked for, and what becomes of it without negotiations."""

    def system(is_negotiating: bool) -> NegotiatedSystem:
        settings, seed = subject.hierarchy, request.seed
        return NegotiatedSystem(nodes_at_work(), tree, settings, seed, is_negotiating)

    without = system(is_negotiating=False)
    if subject.policy != HIERARCHY:
        _let_run(without, request.length_s, progress)
        return without, without.figures()
    _let_run(without, request.length_s, lambda share: progress(share / 2))
    found = system(is_negotiating=True)
    _let_run(found, request.length_s, lambda share: progress(0.5 + share / 2))
    return found, without.figures()


def _let_run(
    system: BalancedSystem | NegotiatedSystem, length_s: float, progress: Callable[[float], None]
) -> None:
    for step in range(1, _STEPS + 1):
        system.advance(length_s * step / _STEPS)
        progress(step / _STEPS)


def _nodes_at_work(
    subject: SimulationSubject,
    arrivals: Mapping[str, Arrivals],
    start: Ints,
    request: SimulationRequest,
) -> SimulatedNodes:
    """Abstract networks tuple by tuple, deployments batch by batch."""
    network, seed = subject.network, request.seed
    if subject.work is None:
        return Simulation(network, arrivals, start, seed, request.physics)
    rows = ArrivingRows(network.inputs, arrivals, seed)
    return MicroBatches(network, rows, start, seed, subject.work)


def subject_of(request: SimulationRequest) -> SimulationSubject:
    """The network in a deployment file or an abstract network, and what it says about itself."""
    text, origin = text_of(request.file), str(request.file)
    network = abstract_in(text, origin)
    if network is not None:
        if request.nodes is not None:
            first = network.nodes[0]
            many = (AbstractNode(f"n{at + 1}", first.cpu) for at in range(request.nodes))
            network = replace(network, nodes=tuple(many))
        problem = placement_problem(network)
        return _subject(network, request, "", Balancing(), (), problem, problem.members)
    return _deployed(parse_deployment(text, origin, request.file.parent), request)


def _deployed(deployment: Deployment, request: SimulationRequest) -> SimulationSubject:
    _check_physics(request.physics)
    network, nodes = deployment.network, deployment.nodes
    fragments, costs, rates = fuse(network), measured_costs(), known_rates(network)
    if request.nodes is not None:
        nodes = tuple(NodeSpec(f"n{at + 1}") for at in range(request.nodes))
    counted_s, light = counted_rounds_s(network, fragments), light_fragments(network, fragments)
    problem = placement_problem(
        abstract_network(network, fragments, nodes, costs, rates, None, counted_s, light)
    )
    every_s = {
        fragment.name: round_us(network, fragment, SHORTEST_US) / 1e6 for fragment in fragments
    }
    simulated = batch_network(
        network, fragments, nodes, costs, rates, every_s, None, light, known_paces(network)
    )
    units = tuple(
        tuple(simulated.names[operator] for operator in unit)
        for unit in fragments_by_unit(problem, fragments)
    )
    notes = (*unmeasured_kinds(fragments, costs), *unmeasured_batches(fragments, costs, light))
    balance, hierarchy = _balance(deployment)
    if hierarchy is not None and hierarchy.utilisation is not Utilisation.CPU:
        notes = (*notes, _ONLY_CPU.format(hierarchy.utilisation))
    found = _subject(
        simulated.network, request, deployment.placement, balance, notes, problem, units
    )
    parents = {} if request.nodes is not None else {node.name: node.parent for node in nodes}
    return replace(
        found,
        work=simulated.work,
        tree=_wiring(deployment, simulated.network, parents),
        hierarchy=hierarchy or HierarchySettings(utilisation=Utilisation.CPU),
    )


def _wiring(
    deployment: Deployment, simulated: AbstractNetwork, parents: Mapping[str, str | None]
) -> TreeWiring | None:
    """What flows where in the tree of a deployment's nodes; None where they form none."""
    tree = tree_of(parents)
    if tree is None:
        return None
    return wiring_of(
        simulated,
        tree,
        {stream.name: stream.on or tree.root for stream in deployment.network.streams},
    )


def _check_physics(given: Physics) -> None:
    """Raises where something is asked for that batches do not have."""
    usual = Physics()
    for name in ("discipline", "service", "selectivity", "delay_s"):
        if getattr(given, name) != getattr(usual, name):
            option = "delay" if name == "delay_s" else name
            raise UsageError(
                f"--{option} is for abstract networks; a deployment is simulated batch by batch",
                hint=f"Leave out --{option}.",
            )


def _balance(deployment: Deployment) -> tuple[Balancing, HierarchySettings | None]:
    """As a running system would be balanced, if the file says so."""
    if not deployment.balance:
        return Balancing(), None
    written = BalanceSettings.checked(deployment.balance)
    if written.tree is not None:
        return Balancing(HIERARCHY), written.tree.protocol
    balancing = Balancing(
        written.policy,
        written.every_s,
        written.samples * written.sample_s,
        written.samples,
        written.thresholds,
        written.guards,
        suggest=written.suggest,
        scope=written.scope,
        own=written.own,
    )
    return balancing, None


def _subject(
    network: AbstractNetwork,
    request: SimulationRequest,
    placement: str,
    balancing: Balancing,
    notes: tuple[str, ...],
    problem: Problem,
    units: tuple[tuple[str, ...], ...],
) -> SimulationSubject:
    open_ = [operator.name for operator in network.operators if operator.selectivity is None]
    if open_:
        shown = listed(open_[:5]) + (f" and {len(open_) - 5} more" if open_[5:] else "")
        notes = (*notes, f"selectivity not known and taken as 1: {shown}")
    return SimulationSubject(
        network,
        request.placement or placement or DEFAULT_PLACEMENT,
        replace(
            balancing,
            policy=request.policy or balancing.policy,
            suggest=request.suggest or balancing.suggest,
        ),
        notes,
        problem,
        units,
    )


def _placed(subject: SimulationSubject, seed: int) -> Ints:
    """Where every operator starts."""
    network, problem = subject.network, subject.planned
    strategy = strategy_called(subject.placement, strategies(entry_points(group=GROUP)))()
    if subject.tree is not None:
        pinned = {operator.name: operator.node for operator in network.operators if operator.node}
        strategy = InTree(strategy, subject.tree, subject.units, pinned)
    units = strategy.place(problem, np.random.default_rng(seed))
    units = check_assignment(problem, units, subject.placement)
    node_of = {
        member: int(node)
        for members, node in zip(subject.units, units, strict=True)
        for member in members
    }
    return np.array([node_of[operator.name] for operator in network.operators], dtype=np.int64)


def arrivals_of(network: AbstractNetwork, request: SimulationRequest) -> dict[str, Arrivals]:
    """How every input's tuples arrive."""
    names = [input_.name for input_ in network.inputs]
    for name in (*request.rates, *request.traces):
        if name not in names:
            raise UsageError(
                f"no input {name}; there are {listed(names)}", hint=suggestion(name, names)
            )
    found: dict[str, Arrivals] = {}
    for number, stream in enumerate(network.inputs):
        if stream.name in request.traces:
            found[stream.name] = Recorded.of(_times(request.traces[stream.name]))
            continue
        rate = request.rates.get(stream.name, stream.rate_per_s)
        if rate is None:
            raise InputError(
                f"the rate of input {stream.name} is not known",
                hint=f"Give it in the file, or here: --rate {stream.name}=100.",
            )
        found[stream.name] = _arriving(request, rate * request.scale, number, len(names))
    return found


def _arriving(request: SimulationRequest, rate: float, number: int, count: int) -> Arrivals:
    if request.arrivals == "alternating":
        # Spread evenly over the period, so that bursts come in turn.
        return Alternating(rate, offset_s=10.0 * number / count)
    if request.arrivals == "on-off":
        return OnOff(rate, rhythm=number)
    if request.arrivals == "self-similar":
        return self_similar(rate, seed=request.seed + number)
    if request.arrivals in ("poisson", "periodic"):
        return Steady(rate, periodic=request.arrivals == "periodic")
    hint = f"There are {listed(ARRIVALS)}. {suggestion(request.arrivals, ARRIVALS)}".strip()
    raise UsageError(f"no arrivals called {request.arrivals}", hint=hint)


def _times(path: Path) -> np.ndarray:
    """Seconds, one number a line, counted from the first."""
    lines = text_of(path).split()
    try:
        times = np.array([float(line) for line in lines])
    except ValueError as error:
        raise InputError(
            f"{path} is no list of times: {error}", hint="Write one number of seconds a line."
        ) from None
    times.sort()
    return times - times[0] if times.size else times
