"""Selection: probed paths merged into complete graphs, and the best of those that qualify."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from penstock.model.composition import QueryPlan
from penstock.share.admission import taken_share
from penstock.share.messages import ProbedStep, Reason
from penstock.share.projection import NodeLoad, execution_time_s, transmission_time_s

_ROUNDING = 1e-9


@dataclass(frozen=True)
class ProbedGraph:
    """A complete graph: the step of every operator that is reused or needed, and what it comes to.

    ``left_s`` is when a tuple has left each operator, ``time_s`` the largest of them.
    """

    steps: Mapping[str, ProbedStep]
    left_s: Mapping[str, float]
    phi: float

    @property
    def time_s(self) -> float:
        return max(self.left_s.values())

    @property
    def placed(self) -> dict[str, str]:
        return {operator: step.node for operator, step in self.steps.items()}


@dataclass
class ProbedPaths:
    """What probes brought back: who could run which operator, and which steps follow which."""

    plan: QueryPlan
    reused: frozenset[str]
    needed: frozenset[str]

    def __post_init__(self) -> None:
        self._steps: dict[str, dict[str, ProbedStep]] = defaultdict(dict)
        self._edges: dict[tuple[str, str, str, str], ProbedStep] = {}

    def add(self, steps: tuple[ProbedStep, ...]) -> None:
        for before, step in zip((None, *steps[:-1]), steps, strict=True):
            self._steps[step.operator].setdefault(step.node, step)
            if before is not None:
                self._edges[before.operator, before.node, step.operator, step.node] = step

    def graphs(self, most: int) -> list[dict[str, ProbedStep]]:
        """Complete graphs, at most so many, in an order that depends on the paths alone."""
        wanted = [
            operator.name
            for operator in self.plan.operators
            if operator.name in self.needed or operator.name in self.reused
        ]
        found: list[dict[str, ProbedStep]] = []
        for graph in self._extend({}, wanted, 0):
            found.append(graph)
            if len(found) == most:
                break
        return found

    def _extend(
        self, graph: dict[str, ProbedStep], wanted: list[str], at: int
    ) -> Iterator[dict[str, ProbedStep]]:
        if at == len(wanted):
            yield graph
            return
        operator = wanted[at]
        for node, step in self._steps[operator].items():
            if operator in self.reused or all(
                (input, graph[input].node, operator, node) in self._edges
                for input in self.plan.by_name[operator].inputs
            ):
                yield from self._extend({**graph, operator: step}, wanted, at + 1)

    def entering(self, graph: Mapping[str, ProbedStep], input: str, operator: str) -> ProbedStep:
        """What the node of ``operator`` said about the link from the node of ``input``."""
        return self._edges[input, graph[input].node, operator, graph[operator].node]


def best_graphs(
    paths: ProbedPaths, most: int, checks_limit: bool = True
) -> tuple[list[ProbedGraph], tuple[Reason, ...]]:
    """The graphs that qualify, least phi first, and what spoke against the others."""
    fit: list[ProbedGraph] = []
    reasons: list[Reason] = []
    for graph in paths.graphs(most):
        judged = judge_graph(paths, graph, checks_limit)
        if isinstance(judged, ProbedGraph):
            fit.append(judged)
        else:
            reasons.append(judged)
    fit.sort(key=lambda graph: (graph.phi, sorted(graph.placed.items())))
    return fit, tuple(dict.fromkeys(reasons))


def judge_graph(
    paths: ProbedPaths, graph: Mapping[str, ProbedStep], checks_limit: bool
) -> ProbedGraph | Reason:
    """The graph with its time and phi, or why it cannot be; loads are those with all of it."""
    plan = paths.plan
    needs = _needs(paths, graph)
    sent, entering = _sum_sent(paths, graph)
    left_s: dict[str, float] = {}
    phi = 0.0
    for name, step in graph.items():
        if name in paths.reused:
            left_s[name] = step.left_s
            continue
        operator = plan.by_name[name]
        left = step.residual - needs[step.node]
        if left < -_ROUNDING:
            return f"node {step.node}"
        phi += taken_share(operator.need, left)
        arrived_s = 0.0
        for input in operator.inputs:
            link = entering.get((input, name))
            if link is None:
                arrived_s = max(arrived_s, left_s[input])
                continue
            upstream = graph[input].node
            room = link.link_residual - sent[upstream, step.node]
            if room < -_ROUNDING:
                return f"link {upstream}-{step.node}"
            phi += taken_share(plan.by_name[input].bandwidth, room)
            used = link.link_load + sent[upstream, step.node]
            on_link_s = link.travel_s + transmission_time_s(plan.by_name[input].sigma_s, used)
            arrived_s = max(arrived_s, left_s[input] + on_link_s)
        load = NodeLoad(step.load + needs[step.node])
        left_s[name] = arrived_s + execution_time_s(operator.tau_s, load)
    found = ProbedGraph(dict(graph), left_s, phi)
    return found if not checks_limit or found.time_s <= plan.limit_s + _ROUNDING else "limit"


def _needs(paths: ProbedPaths, graph: Mapping[str, ProbedStep]) -> dict[str, float]:
    """What the graph takes of every node."""
    needs: dict[str, float] = defaultdict(float)
    for name in graph:
        if name in paths.needed:
            needs[graph[name].node] += paths.plan.by_name[name].need
    return needs


def _sum_sent(
    paths: ProbedPaths, graph: Mapping[str, ProbedStep]
) -> tuple[dict[tuple[str, str], float], dict[tuple[str, str], ProbedStep]]:
    """What the graph sends over every link, and what was said about the link of each stream."""
    sent: dict[tuple[str, str], float] = defaultdict(float)
    entering: dict[tuple[str, str], ProbedStep] = {}
    for input, operator in _crossing(paths, graph):
        entering[input, operator] = paths.entering(graph, input, operator)
        link = (graph[input].node, graph[operator].node)
        sent[link] += paths.plan.by_name[input].bandwidth
    return sent, entering


def _crossing(paths: ProbedPaths, graph: Mapping[str, ProbedStep]) -> Iterable[tuple[str, str]]:
    return [
        (input, name)
        for name in graph
        if name in paths.needed
        for input in paths.plan.by_name[name].inputs
        if graph[input].node != graph[name].node
    ]
