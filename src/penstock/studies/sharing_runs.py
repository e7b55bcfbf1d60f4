"""Requests composed on a simulated overlay, by sharing or by a rival, and how they fare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

import numpy as np

from penstock.model.composition import PlanOperator, QueryPlan
from penstock.share.answers import CompositionOptions, Pick, Sites
from penstock.share.messages import Admitted, Compose, Finish, Refused
from penstock.share.node_book import NodeBook
from penstock.share.protocol import CompositionProtocol
from penstock.sim.overlay import Overlay

ALGORITHMS = ("synergy", "composition", "random")


@dataclass(frozen=True)
class SharingWorkload:
    """What an overlay is asked for; lengths in seconds, loads as shares of a node.

    ``plans`` different plans are asked for, the n-th most popular with weight n^-``zipf``.
    """

    nodes: int = 88
    operators: int = 20
    replicas: int = 5
    shortest: int = 2
    longest: int = 4
    plans: int = 300
    zipf: float = 0.8
    requests_per_s: float = 9.0
    for_s: float = 100.0
    lifetime_s: float = 40.0
    background: float = 0.2
    need: float = 0.015
    tau_s: float = 0.04
    limit_factor: float = 1.3
    mean_delay_s: float = 0.06


@dataclass
class SharingWorld:
    """Nodes with distances, and the plans that may be asked for."""

    workload: SharingWorkload
    seed: int
    names: list[str] = field(init=False)
    delays_s: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        count = self.workload.nodes
        self.names = [f"v{at:03}" for at in range(count)]
        self._at = {name: at for at, name in enumerate(self.names)}
        places = rng.random((count, 2))
        apart = np.sqrt(((places[:, None] - places[None]) ** 2).sum(axis=2))
        noise = np.exp(rng.normal(0, 0.3, (count, count)))
        far = apart * np.sqrt(noise * noise.T)
        np.fill_diagonal(far, 0.0)
        self.delays_s = far * (self.workload.mean_delay_s / far[far > 0].mean())
        near = np.argsort(self.delays_s, axis=1)[:, 1:9]
        self._near = {
            name: tuple(self.names[i] for i in near[self._at[name]]) for name in self.names
        }

    def delay_s(self, one: str, other: str) -> float:
        return float(self.delays_s[self._at[one], self._at[other]])

    def neighbours(self, node: str) -> tuple[str, ...]:
        """The nearest others, nearest first."""
        return self._near[node]

    def books(self) -> list[NodeBook]:
        rng = Random(self.seed)
        offered: dict[str, set[str]] = {name: set() for name in self.names}
        for operator in range(self.workload.operators):
            for name in rng.sample(self.names, self.workload.replicas):
                offered[name].add(f"k{operator}")
        background = self.workload.background
        return [
            NodeBook(name, background=background, permanent=frozenset(offered[name]))
            for name in self.names
        ]

    def draw_plans(self) -> list[QueryPlan]:
        rng = Random(self.seed + 1)
        return [self._draw_plan(rng) for _ in range(self.workload.plans)]

    def _draw_plan(self, rng: Random) -> QueryPlan:
        w = self.workload
        kinds = rng.sample(range(w.operators), rng.randint(w.shortest, w.longest))
        operators = []
        for at, kind in enumerate(kinds):
            inputs = (f"o{at - 1}",) if at else ()
            operators.append(PlanOperator(f"o{at}", inputs, w.need, w.tau_s, 0.01, does=f"k{kind}"))
        alone_s = len(kinds) * w.tau_s / (1 - w.background) + (len(kinds) - 1) * w.mean_delay_s
        return QueryPlan(tuple(operators), w.limit_factor * alone_s)

    def options(self, algorithm: str) -> CompositionOptions:
        common = CompositionOptions(
            probing_ratio=0.1, neighbours=self.neighbours, delay_s=self.delay_s
        )
        changes: Mapping[str, Mapping[str, object]] = {
            "synergy": {},
            "refused only": {"gives_up": "refused"},
            "composition": {"reuses": False, "projects": False, "sites": Sites.NEAREST},
            "greedy": {
                "reuses": False, "projects": False, "checks_limit": False,
                "sites": Sites.NEAREST_ONLY, "pick": Pick.NEAREST, "tries_anew": False,
            },
            "random": {
                "reuses": False, "projects": False, "checks_limit": False,
                "sites": Sites.RANDOM, "tries_anew": False,
            },
        }  # fmt: skip
        return CompositionOptions(**{**vars(common), **changes[algorithm]})


@dataclass
class Fate:
    """How an admitted request fared: its components in order, and its times as they were."""

    plan: QueryPlan
    nodes: tuple[str, ...]
    until_s: float
    times_s: list[float] = field(default_factory=list)

    @property
    def kept_its_limit(self) -> bool:
        return bool(self.times_s) and max(self.times_s) <= self.plan.limit_s * (1 + 1e-9)


@dataclass(frozen=True)
class RunFigures:
    """What a run came to; times in seconds, counts per request."""

    requests: int
    admitted: int
    successful: int
    mean_delay_s: float
    probes: float
    discovery_s: float
    set_up_s: float
    shared: float
    load: float


def compose_all(workload: SharingWorkload, algorithm: str, seed: int) -> RunFigures:
    """Sends all requests of a workload, and looks at what runs once a second."""
    world = SharingWorld(workload, seed)
    overlay = Overlay(
        world.books(),
        CompositionProtocol(world.options(algorithm)),
        world.delay_s,
        seed=seed,
        hop_s=workload.mean_delay_s,
    )
    asked = _submit_all(world, overlay)
    fates: dict[str, Fate] = {}
    loads: list[float] = []
    for second in range(1, int(workload.for_s + workload.lifetime_s) + 1):
        overlay.run(float(second))
        _note_new(world, overlay, asked, fates)
        _look(world, overlay, fates, float(second))
        if second > workload.lifetime_s and second <= workload.for_s:
            loads.append(float(np.mean([book.load for book in overlay.books])))
    return _figures(overlay, asked, fates, float(np.mean(loads or [0.0])))


def _submit_all(world: SharingWorld, overlay: Overlay) -> dict[str, tuple[float, QueryPlan]]:
    w = world.workload
    rng = Random(world.seed + 2)
    plans = world.draw_plans()
    weights = [(rank + 1) ** -w.zipf for rank in range(len(plans))]
    asked: dict[str, tuple[float, QueryPlan]] = {}
    at_s = 0.0
    while (at_s := at_s + rng.expovariate(w.requests_per_s)) < w.for_s:
        request, node = f"r{len(asked)}", rng.choice(world.names)
        (plan,) = rng.choices(plans, weights)
        asked[request] = (at_s, plan)
        overlay.submit(at_s, node, Compose(request, plan))
        overlay.submit(at_s + w.lifetime_s, node, Finish(request))
    return asked


def _note_new(
    world: SharingWorld,
    overlay: Overlay,
    asked: Mapping[str, tuple[float, QueryPlan]],
    fates: dict[str, Fate],
) -> None:
    for request, outcome in overlay.outcomes.items():
        result = outcome.result
        if request in fates or not isinstance(result, Admitted):
            continue
        at_s, plan = asked[request]
        until_s = at_s + world.workload.lifetime_s
        fates[request] = Fate(plan, _nodes_in_order(overlay, request, result, plan), until_s)


def _nodes_in_order(
    overlay: Overlay, request: str, result: Admitted, plan: QueryPlan
) -> tuple[str, ...]:
    """The nodes of a chain from its source on, those of what is reused included."""
    last = plan.operators[-1].name
    book = overlay.nodes[result.graph[last]].book
    using = [component for component in book.components.values() if request in component.users]
    ending = [component for component in using if component.stream == plan.streams[last]]
    return tuple(node for node, _ in ending[0].lineage) if ending else ()


def _look(world: SharingWorld, overlay: Overlay, fates: Mapping[str, Fate], now_s: float) -> None:
    """Measures the time of what runs, and tells the nodes that serve it."""
    loads = {book.node: book.load for book in overlay.books}
    for request, fate in fates.items():
        if now_s > fate.until_s or not fate.nodes:
            continue
        tau_s = world.workload.tau_s
        time_s = sum(tau_s / max(1e-3, 1 - loads[node]) for node in fate.nodes)
        time_s += sum(map(world.delay_s, fate.nodes, fate.nodes[1:]))
        fate.times_s.append(time_s)
        for node in set(fate.nodes):
            overlay.nodes[node].book.note_time(request, time_s)


def _figures(
    overlay: Overlay,
    asked: Mapping[str, tuple[float, QueryPlan]],
    fates: Mapping[str, Fate],
    load: float,
) -> RunFigures:
    admitted = [o.result for o in overlay.outcomes.values() if isinstance(o.result, Admitted)]
    times_s = [np.mean(fate.times_s) for fate in fates.values() if fate.times_s]
    took_s = [o.took_s for o in overlay.outcomes.values() if not isinstance(o.result, Refused)]
    found_s: dict[str, float] = {}
    for session, spent_s in overlay.discovery_s.items():
        request = session.partition("~")[0]
        found_s[request] = found_s.get(request, 0.0) + spent_s
    return RunFigures(
        len(asked),
        len(admitted),
        sum(fate.kept_its_limit for fate in fates.values()),
        float(np.mean(times_s)),
        overlay.counts.get("Probe", 0) / len(asked),
        float(np.mean(list(found_s.values()))),
        float(np.mean(took_s)),
        float(np.mean([bool(result.reused) for result in admitted])),
        load,
    )
