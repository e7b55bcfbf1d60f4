"""Composition in one transaction: whoever knows all nodes needs no messages to ask them.

The same conditions as in :mod:`penstock.share.answers`, checked for whole graphs by one compiled
loop over plain arrays. A node's applications allow its factor 1 / (1 - load) to grow up to a value
that is known when they are admitted, so checking all of them is one comparison.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

import numpy as np
from numpy.typing import NDArray

from penstock.load.compiled import compiled
from penstock.model.composition import QueryPlan
from penstock.share.discovery import sharable_points

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_NOWHERE = -1


@dataclass(frozen=True)
class Placement:
    """Where an admitted request runs, when tuples leave each of its operators, and its phi."""

    nodes: Mapping[str, int]
    reused: tuple[str, ...]
    left_s: Mapping[str, float]
    phi: float

    @property
    def time_s(self) -> float:
        return max(self.left_s.values())


@dataclass(slots=True)
class _Running:
    """A component: its node, when tuples leave it, what it is made from, and who uses it."""

    node: int
    left_s: float
    need: float
    tau_s: float
    lineage: tuple[int, ...]
    links: tuple[tuple[int, float], ...]
    stream: str
    users: set[str] = field(default_factory=set)


class AtOnce:
    """All nodes of a system, with what runs on them.

    >>> from penstock.model.composition import PlanOperator
    >>> system = AtOnce(np.zeros((2, 2)), {"k": (0, 1)}, seed=1)
    >>> plan = QueryPlan((PlanOperator("o", need=0.2, tau_s=0.1, does="k"),), limit_s=1.0)
    >>> system.compose("q1", plan).reused, system.compose("q2", plan).reused
    ((), ('o',))
    """

    def __init__(
        self,
        delays_s: Floats,
        offered: Mapping[str, tuple[int, ...]],
        probing_ratio: float = 0.1,
        background: float = 0.0,
        seed: int = 0,
    ) -> None:
        count = len(delays_s)
        self.loads = np.full(count, background)
        self.most_factor = np.full(count, math.inf)
        self.link_used = np.zeros((count, count))
        self._delays_s = delays_s
        self._offered = offered
        self._ratio = probing_ratio
        self._rng = Random(seed)
        self._streams: dict[str, list[int]] = {}
        self._running: dict[int, _Running] = {}
        self._allowed: list[dict[str, float]] = [{} for _ in range(count)]
        self._uses: dict[str, tuple[int, ...]] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self._uses)

    def compose(self, request: str, plan: QueryPlan) -> Placement | None:
        """Admits a request on its best graph, sharing what it can; None if it does not fit.

        Takes time in the operators times the candidates asked, however much is running.
        """
        points = sharable_points(plan, self._streams.__contains__)
        found = self._search(plan, points.reused, points.needed)
        if found is None and points.reused:
            names = tuple(operator.name for operator in plan.operators)
            found = self._search(plan, (), names)
        if found is not None:
            self._admit(request, plan, found)
        return found

    def finish(self, request: str) -> None:
        """Ends an application, and every component that nobody else uses."""
        for number in self._uses.pop(request):
            running = self._running[number]
            self._forget_limit(request, running.node)
            running.users.discard(request)
            if not running.users:
                self._stop(number)

    def _forget_limit(self, request: str, node: int) -> None:
        allowed = self._allowed[node]
        mine = allowed.pop(request, math.inf)
        if mine <= self.most_factor[node]:  # Otherwise another application is the one that limits.
            self.most_factor[node] = min(allowed.values(), default=math.inf)

    def _search(
        self, plan: QueryPlan, reused: Sequence[str], needed: Sequence[str]
    ) -> Placement | None:
        wanted = set(needed) | set(reused)
        names = [operator.name for operator in plan.operators if operator.name in wanted]
        at = {name: number for number, name in enumerate(names)}
        operators = [plan.by_name[name] for name in names]
        candidates, left_s = self._candidates(plan, names, set(reused))
        if candidates is None:
            return None
        most = max(len(operator.inputs) for operator in operators)
        inputs = np.full((len(names), most), _NOWHERE, dtype=np.int64)
        for number, operator in enumerate(operators):
            if operator.name not in reused:
                for slot, input in enumerate(operator.inputs):
                    inputs[number, slot] = at[input]
        shares = np.array([(o.need, o.tau_s, o.bandwidth, o.sigma_s) for o in operators])
        nodes, left_s, phi = best_graph(
            shares, inputs, candidates, left_s, plan.limit_s,
            self.loads, self.most_factor, self.link_used, self._delays_s,
        )  # fmt: skip
        if nodes[0] == _NOWHERE:
            return None
        placed = {name: int(node) for name, node in zip(names, nodes, strict=True)}
        left = dict(zip(names, left_s.tolist(), strict=True))
        return Placement(placed, tuple(reused), left, float(phi))

    def _candidates(
        self, plan: QueryPlan, names: Sequence[str], reused: set[str]
    ) -> tuple[Ints | None, Floats]:
        """For every operator the nodes to try, and when a reused stream's tuples leave."""
        left_s = np.full(len(names), math.nan)
        rows: list[list[int]] = []
        for number, name in enumerate(names):
            if name in reused:
                running = self._running[self._streams[plan.streams[name]][0]]
                left_s[number] = running.left_s
                rows.append([running.node])
                continue
            offered = self._offered.get(plan.by_name[name].does or name, ())
            if offered:
                rows.append(self._pick(offered))
            elif rows:
                rows.append(rows[-1])
            else:
                return None, left_s
        widest = max(map(len, rows))
        filled = [row + [_NOWHERE] * (widest - len(row)) for row in rows]
        return np.array(filled, dtype=np.int64), left_s

    def _pick(self, offered: tuple[int, ...]) -> list[int]:
        asked = math.ceil(self._ratio * len(offered) - 1e-9)
        if asked <= 1:  # The usual case, and several times as quick.
            return [offered[int(self._rng.random() * len(offered))]]
        return self._rng.sample(offered, asked)

    def _admit(self, request: str, plan: QueryPlan, found: Placement) -> None:
        lineage: dict[str, tuple[int, ...]] = {}
        used: dict[int, None] = {}
        for operator in plan.operators:
            name = operator.name
            if name not in found.nodes:
                continue
            if name in found.reused:
                lineage[name] = self._running[self._streams[plan.streams[name]][0]].lineage
            else:
                lineage[name] = self._start(plan, name, found, lineage)
            used.update(dict.fromkeys(lineage[name]))
        self._uses[request] = tuple(used)
        slack_s = plan.limit_s - found.time_s
        taus_s: dict[int, float] = {}
        for number in used:
            running = self._running[number]
            running.users.add(request)
            taus_s[running.node] = taus_s.get(running.node, 0.0) + running.tau_s
        for node, tau_s in taus_s.items():
            allowed = 1 / (1 - float(self.loads[node])) + (slack_s / tau_s if tau_s else math.inf)
            self._allowed[node][request] = allowed
            if allowed < self.most_factor[node]:
                self.most_factor[node] = allowed

    def _start(
        self, plan: QueryPlan, name: str, found: Placement, lineage: Mapping[str, tuple[int, ...]]
    ) -> tuple[int, ...]:
        operator, node = plan.by_name[name], found.nodes[name]
        number = self._next = self._next + 1
        links = tuple(
            (found.nodes[input], plan.by_name[input].bandwidth)
            for input in operator.inputs
            if found.nodes[input] != node
        )
        for upstream, bandwidth in links:
            self.link_used[upstream, node] += bandwidth
        self.loads[node] += operator.need
        made = tuple(
            dict.fromkeys(
                (*(known for input in operator.inputs for known in lineage[input]), number)
            )
        )
        stream = plan.streams[name]
        self._running[number] = _Running(
            node, found.left_s[name], operator.need, operator.tau_s, made, links, stream
        )
        self._streams.setdefault(stream, []).append(number)
        return made

    def _stop(self, number: int) -> None:
        running = self._running.pop(number)
        self.loads[running.node] -= running.need
        for upstream, bandwidth in running.links:
            self.link_used[upstream, running.node] -= bandwidth
        self._streams[running.stream].remove(number)
        if not self._streams[running.stream]:
            del self._streams[running.stream]


@compiled
def best_graph(
    shares: Floats,
    inputs: Ints,
    candidates: Ints,
    reused_left_s: Floats,
    limit_s: float,
    loads: Floats,
    most_factor: Floats,
    link_used: Floats,
    delays_s: Floats,
) -> tuple[Ints, Floats, float]:
    """The graph of least phi among all combinations of candidates that qualify; -1 for none.

    ``shares`` has need, tau, bandwidth and sigma of every operator, each after what it reads;
    reused ones have a time in ``reused_left_s`` and need nothing. Takes time in the combinations.
    """
    count, width = candidates.shape
    picked = np.zeros(count, dtype=np.int64)
    best = np.full(count, -1, dtype=np.int64)
    best_left_s = np.zeros(count)
    best_phi = np.inf
    left_s = np.zeros(count)
    while True:
        phi = judge_placed(
            shares, inputs, candidates, picked, reused_left_s, limit_s,
            loads, most_factor, link_used, delays_s, left_s,
        )  # fmt: skip
        if phi < best_phi:
            best_phi = phi
            for at in range(count):
                best[at] = candidates[at, picked[at]]
                best_left_s[at] = left_s[at]
        at = count - 1
        while at >= 0:
            picked[at] += 1
            if picked[at] < width and candidates[at, picked[at]] >= 0:
                break
            picked[at] = 0
            at -= 1
        if at < 0:
            return best, best_left_s, best_phi


@compiled
def judge_placed(
    shares: Floats,
    inputs: Ints,
    candidates: Ints,
    picked: Ints,
    reused_left_s: Floats,
    limit_s: float,
    loads: Floats,
    most_factor: Floats,
    link_used: Floats,
    delays_s: Floats,
    left_s: Floats,
) -> float:
    """Phi of one graph, infinite if it does not qualify; ``left_s`` is filled in."""
    count = len(picked)
    phi = 0.0
    for at in range(count):
        if not np.isnan(reused_left_s[at]):
            left_s[at] = reused_left_s[at]
            if left_s[at] > limit_s:
                return np.inf
            continue
        node = candidates[at, picked[at]]
        after = loads[node]
        for other in range(count):
            if np.isnan(reused_left_s[other]) and candidates[other, picked[other]] == node:
                after += shares[other, 0]
        if after >= 1 or 1 / (1 - after) > most_factor[node]:
            return np.inf
        if shares[at, 0] > 0:
            phi += shares[at, 0] / (1 - after + shares[at, 0])
        arrived_s = 0.0
        for slot in range(inputs.shape[1]):
            input = inputs[at, slot]
            if input < 0:
                continue
            before = candidates[input, picked[input]]
            on_link_s = 0.0
            if before != node:
                used = link_used[before, node]
                for other in range(count):
                    for side in range(inputs.shape[1]):
                        sender = inputs[other, side]
                        to_here = sender >= 0 and candidates[other, picked[other]] == node
                        if to_here and candidates[sender, picked[sender]] == before:
                            used += shares[sender, 2]
                if used >= 1:
                    return np.inf
                if shares[input, 2] > 0:
                    phi += shares[input, 2] / (1 - used + shares[input, 2])
                on_link_s = delays_s[before, node] + shares[input, 3] / (1 - used)
            arrived_s = max(arrived_s, left_s[input] + on_link_s)
        left_s[at] = arrived_s + shares[at, 1] / (1 - after)
        if left_s[at] > limit_s:
            return np.inf
    return phi
