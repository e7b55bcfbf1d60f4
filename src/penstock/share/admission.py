"""Admission of a stated case: which of several candidate graphs may run, and which is best.

Loads are those after the whole graph is admitted. A graph is admissible if no node and no link is
full, the request keeps its limit, and so does every application with a component on a node of
the graph.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, isfinite

from penstock.errors import InputError, listed, suggestion
from penstock.model.composition import QueryPlan, RunningApp
from penstock.share.projection import (
    NodeLoad,
    Serving,
    execution_time_s,
    impact_s,
    transmission_time_s,
)

Placed = Mapping[str, str]
"""A candidate graph: the node of every operator."""

LinkEnds = frozenset[str]


@dataclass(frozen=True)
class AdmissionSituation:
    """Nodes, links and applications as they are before anything is admitted.

    ``links`` has the load of each link by its two ends; ``link_names`` what a link is called.
    """

    nodes: Mapping[str, NodeLoad]
    links: Mapping[LinkEnds, float] = field(default_factory=dict)
    apps: tuple[RunningApp, ...] = ()
    serving: Mapping[str, Serving] = field(default_factory=dict)
    link_names: Mapping[LinkEnds, str] = field(default_factory=dict)

    def served(self, node: str) -> Serving:
        return self.serving.get(node, Serving.SHARED)

    def link_name(self, ends: LinkEnds) -> str:
        return self.link_names.get(ends, "-".join(sorted(ends)))


@dataclass(frozen=True)
class GraphVerdict:
    """What a graph comes to; ``time_s`` and ``phi`` are infinite where something is full.

    ``after_s`` is the time of every application that is touched; ``why`` is empty if it may run.
    """

    time_s: float
    phi: float
    after_s: Mapping[str, float]
    why: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.why


def admit(
    situation: AdmissionSituation, plan: QueryPlan, graphs: Mapping[str, Placed]
) -> tuple[dict[str, GraphVerdict], str | None]:
    """The verdict on every graph, and the admissible one of least phi (ties: the first name)."""
    verdicts = {name: judge(situation, plan, graph) for name, graph in graphs.items()}
    fit = [(verdict.phi, name) for name, verdict in verdicts.items() if verdict.ok]
    return verdicts, min(fit)[1] if fit else None


def judge(situation: AdmissionSituation, plan: QueryPlan, graph: Placed) -> GraphVerdict:
    """The verdict on one graph; takes time linear in the graph and the applications' components.

    >>> from penstock.model.composition import PlanOperator
    >>> plan = QueryPlan((PlanOperator("o1", need=0.1, tau_s=0.04),), limit_s=1.5)
    >>> verdict = judge(AdmissionSituation({"v1": NodeLoad(0.4)}), plan, {"o1": "v1"})
    >>> round(verdict.time_s, 3), round(verdict.phi, 3), verdict.why
    (0.08, 0.167, ())
    """
    check_placed(situation, plan, graph)
    nodes = _nodes_after(situation, plan, graph)
    links = _links_after(situation, plan, graph)
    time_s = _time_s(situation, plan, graph, nodes, links)
    after_s = _apps_after(situation, nodes)
    limits = {app.name: app.limit_s for app in situation.apps}
    why = [f"node {node}" for node, load in nodes.items() if load.is_full]
    why += [f"link {situation.link_name(ends)}" for ends, load in links.items() if load >= 1]
    full = bool(why)
    why += [] if time_s <= plan.limit_s else ["limit"]
    why += [f"app {name}" for name, after in after_s.items() if after > limits[name]]
    phi = inf if full else _phi(plan, graph, nodes, links)
    return GraphVerdict(time_s, phi, after_s, tuple(sorted(why)))


def check_placed(situation: AdmissionSituation, plan: QueryPlan, graph: Placed) -> None:
    """Raises unless the graph puts every operator of the plan, and no other, on a node."""
    for operator, node in graph.items():
        for what, name, known in (
            ("operator", operator, plan.by_name),
            ("node", node, situation.nodes),
        ):
            if name not in known:
                hint = f"There are {listed(known)}. {suggestion(name, known)}".strip()
                raise InputError(f"no {what} {name}", hint=hint)
    missing = [operator.name for operator in plan.operators if operator.name not in graph]
    if missing:
        raise InputError(
            f"a graph says no node for {listed(missing)}", hint="Give one for every operator."
        )


def _nodes_after(
    situation: AdmissionSituation, plan: QueryPlan, graph: Placed
) -> dict[str, NodeLoad]:
    nodes = {node: situation.nodes[node] for node in graph.values()}
    for operator in plan.operators:
        node = graph[operator.name]
        nodes[node] = nodes[node].plus(operator.need, operator.tau_s)
    return nodes


def _crossing(plan: QueryPlan, graph: Placed) -> dict[tuple[str, str], LinkEnds]:
    """The links that streams between operators on different nodes take."""
    return {
        (input, operator.name): frozenset((graph[input], graph[operator.name]))
        for operator in plan.operators
        for input in operator.inputs
        if graph[input] != graph[operator.name]
    }


def _links_after(
    situation: AdmissionSituation, plan: QueryPlan, graph: Placed
) -> dict[LinkEnds, float]:
    """The load of every link that is used; where there is none, it is full."""
    links: dict[LinkEnds, float] = {}
    for (input, _), ends in _crossing(plan, graph).items():
        before = links.get(ends, situation.links.get(ends, inf))
        links[ends] = before + plan.by_name[input].bandwidth
    return links


def _time_s(
    situation: AdmissionSituation,
    plan: QueryPlan,
    graph: Placed,
    nodes: Mapping[str, NodeLoad],
    links: Mapping[LinkEnds, float],
) -> float:
    on_nodes_s = {
        operator.name: execution_time_s(
            operator.tau_s, nodes[graph[operator.name]], situation.served(graph[operator.name])
        )
        for operator in plan.operators
    }
    on_links_s = {
        edge: transmission_time_s(plan.by_name[edge[0]].sigma_s, links[ends])
        for edge, ends in _crossing(plan, graph).items()
    }
    return max(plan.longest(on_nodes_s, on_links_s).values())


def _apps_after(situation: AdmissionSituation, nodes: Mapping[str, NodeLoad]) -> dict[str, float]:
    after_s: dict[str, float] = {}
    for app in situation.apps:
        taus_s: dict[str, list[float]] = defaultdict(list)
        for component in app.components:
            if component.node in nodes:
                taus_s[component.node].append(component.tau_s)
        if taus_s:
            after_s[app.name] = app.time_s + sum(
                impact_s(found, situation.nodes[node], nodes[node], situation.served(node))
                for node, found in taus_s.items()
            )
    return after_s


def _phi(
    plan: QueryPlan,
    graph: Placed,
    nodes: Mapping[str, NodeLoad],
    links: Mapping[LinkEnds, float],
) -> float:
    """How unevenly a graph loads what it uses: equation (5) of the source."""
    on_nodes = sum(
        taken_share(operator.need, 1 - nodes[graph[operator.name]].load)
        for operator in plan.operators
    )
    on_links = sum(
        taken_share(plan.by_name[input].bandwidth, 1 - links[ends])
        for (input, _), ends in _crossing(plan, graph).items()
    )
    return on_nodes + on_links


def taken_share(taken: float, left: float) -> float:
    """What is taken, as a share of itself and of what is left afterwards."""
    return taken / (left + taken) if taken else 0.0


def admission_record(verdicts: Mapping[str, GraphVerdict], choice: str | None) -> dict[str, object]:
    """The stable form that ``penstock admit --json`` prints; infinite times are null."""
    return {
        "graphs": {
            name: {
                "ok": verdict.ok,
                "time": _finite(verdict.time_s),
                "phi": _finite(verdict.phi),
                "after": {app: _finite(after) for app, after in verdict.after_s.items()},
                "why": list(verdict.why),
            }
            for name, verdict in verdicts.items()
        },
        "choice": choice,
    }


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None
