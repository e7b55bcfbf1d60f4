"""How much the placement of a running system takes: its feasible set, and where the rates are."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from penstock.control.api_model import ApiModel
from penstock.control.records import NodeRecord
from penstock.control.spreading import whole_fragments
from penstock.control.system import System
from penstock.errors import InputError, PenstockError, UsageError, listed, suggestion
from penstock.model.estimates import OperatorEstimate

if TYPE_CHECKING:
    from penstock.load.arrays import Floats, Ints
    from penstock.load.problem import Problem
    from penstock.load.volume import Volume

Corners = list[tuple[float, float]]
_CURRENT = "as it runs"


class PlanCut(ApiModel):
    """A plan, what it is worth, and the rates it takes in the plane of two streams.

    ``volume`` is the part of all rate mixes that any plan could serve which this one does;
    ``error`` how far the truth may lie from it. ``nodes`` says where it puts each fragment.
    """

    plan: str
    volume: float | None
    error: float
    feasible: Corners
    nodes: dict[str, str]


class Rise(ApiModel):
    """A stream: its rate now, and how far it alone could rise; null where that is not limited.

    ``observed`` is false where no rate was measured and a typical one is taken instead.
    """

    variable: str
    rate_per_s: float
    observed: bool
    most_per_s: float | None
    first_full: str


class Resilience(ApiModel):
    """What the placement of a system takes.

    ``notes`` say what was assumed, or why nothing is known.
    ``x`` and ``y`` are the streams of the cut; others are held at their rates.
    """

    x: str
    y: str
    streams: list[Rise]
    ideal: Corners
    plans: list[PlanCut]
    notes: list[str]


class ResilienceBook:
    """Plans and what they are worth, found once for every system, cluster and set of costs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._key: object = None
        self._rivals: Mapping[str, Ints] = {}
        self._worth: dict[bytes, Volume | None] = {}

    def rivals(self, key: object, problem: Problem) -> Mapping[str, Ints]:
        """The assignments of all strategies; those of another ``key`` are forgotten."""
        with self._lock:
            if self._key != key:
                self._rivals, self._worth, self._key = _rivals(problem), {}, key
            return self._rivals

    def volume(self, problem: Problem, assignment: Ints) -> Volume | None:
        """The volume of a plan: it does not depend on the rates of the moment."""
        from penstock.place.plan import judge_assignment

        plan = assignment.tobytes()
        with self._lock:
            if plan not in self._worth:
                self._worth[plan] = judge_assignment(problem, assignment).volume
            return self._worth[plan]


def resilience(
    system: System,
    nodes: Sequence[NodeRecord],
    places: Mapping[str, str | None],
    estimates: Mapping[str, OperatorEstimate],
    observed: Callable[[str], float | None],
    book: ResilienceBook,
    axes: tuple[str | None, str | None] = (None, None),
) -> Resilience:
    """The feasible set of the system as it runs, cut along two streams, with those of rivals."""
    import numpy as np

    from penstock.load.slices import plan_slice
    from penstock.place.fragments import fragments_by_unit

    fragments = whole_fragments(unit.fragment for unit in system.units.values())
    try:
        problem = system_problem(system, nodes, estimates)
    except PenstockError as error:
        return Resilience(x="", y="", streams=[], ideal=[], plans=[], notes=[error.what])
    names = fragments_by_unit(problem, fragments)
    current = _current(problem, names, places)
    rates = [observed(name) for name in problem.variables]
    point = np.array(
        [old if new is None else new for new, old in zip(rates, problem.rates, strict=True)]
    )
    problem = _at(problem, point)
    plans: dict[str, Ints] = {} if current is None else {_CURRENT: current}
    key = (tuple(system.deployments), tuple(node.name for node in nodes), tuple(sorted(estimates)))
    plans |= book.rivals(key, problem)
    x, y = _axes(problem, axes)
    cuts, ideal = [], np.zeros((0, 2))
    for plan, assignment in plans.items():
        volume, feasible = book.volume(problem, assignment), np.zeros((0, 2))
        if x != y:
            cut = plan_slice(problem, assignment, (x, y))
            feasible, ideal = cut.feasible, cut.ideal
        on = zip(names, assignment, strict=True)
        cuts.append(
            PlanCut(
                plan=plan,
                volume=None if volume is None else volume.ratio,
                error=0.0 if volume is None else volume.error,
                feasible=_corners(feasible),
                nodes={name: problem.nodes[node] for part, node in on for name in part},
            )
        )
    notes = [*problem.notes] + (
        [] if current is not None else ["some fragments run nowhere just now"]
    )
    shown = current if current is not None else next(iter(plans.values()))
    return Resilience(
        x=problem.variables[x],
        y=problem.variables[y],
        streams=_rises(problem, shown, point, [rate is not None for rate in rates]),
        ideal=_corners(ideal),
        plans=cuts,
        notes=notes,
    )


def system_problem(
    system: System, nodes: Sequence[NodeRecord], estimates: Mapping[str, OperatorEstimate]
) -> Problem:
    """The problem of placing all fragments of a system, whoever submitted them."""
    from penstock.feeds.rates import known_rates
    from penstock.kernels.engine_choice import light_fragments
    from penstock.load.bridge import abstract_network
    from penstock.load.costs import measured_costs
    from penstock.load.problem import placement_problem
    from penstock.model.abstract import AbstractNetwork
    from penstock.model.network import NodeSpec
    from penstock.place.rhythm import counted_rounds_s

    specs = [NodeSpec(node.name, node.cores, node.memory_bytes) for node in nodes]
    parts = []
    for number, deployment in system.deployments.items():
        network = deployment.network
        units = [unit for unit in system.units.values() if unit.submission == number]
        mine = whole_fragments(unit.fragment for unit in units)
        if mine:
            light, rounds_s = light_fragments(network, mine), counted_rounds_s(network, mine)
            rates, costs = known_rates(network), measured_costs()
            parts.append(
                abstract_network(network, mine, specs, costs, rates, estimates, rounds_s, light)
            )
    if not parts:
        raise InputError("nothing runs yet", hint="Submit something first.")
    operators = [operator for part in parts for operator in part.operators]
    # What one submission gives, another reads: then it is no input of the whole.
    made = {operator.name for operator in operators}
    inputs = {
        stream.name: stream for part in parts for stream in part.inputs if stream.name not in made
    }
    whole = AbstractNetwork(
        tuple(inputs.values()),
        tuple(operators),
        parts[0].nodes,
        transfer_cost_s=parts[0].transfer_cost_s,
    )
    return placement_problem(whole)


def _current(
    problem: Problem, names: Sequence[Sequence[str]], places: Mapping[str, str | None]
) -> Ints | None:
    """Where units are now; None while one of them is nowhere."""
    import numpy as np

    numbers = {node: at for at, node in enumerate(problem.nodes)}
    found = [numbers.get(places.get(part[0]) or "") if part else None for part in names]
    if any(rate is None for rate in found):
        return None
    return np.array(found, dtype=np.int64)


def _at(problem: Problem, rates: Floats) -> Problem:
    """The problem with these as its typical rates."""
    from dataclasses import replace

    import numpy as np

    return replace(problem, rates=np.maximum(rates, problem.lower))


def _rivals(problem: Problem) -> Mapping[str, Ints]:
    from penstock.place.exhaustive import Exhaustive, is_small
    from penstock.place.plan import make_plan
    from penstock.place.registry import GROUP, strategies

    found = {}
    for name, strategy in strategies(entry_points(group=GROUP)).items():
        if strategy is Exhaustive and not is_small(problem):
            continue
        try:
            found[name] = make_plan(problem, strategy(), time.perf_counter).assignment
        except PenstockError:
            continue  # One that cannot place this is no rival.
    return found


def _axes(problem: Problem, asked: tuple[str | None, str | None]) -> tuple[int, int]:
    from penstock.load.slices import main_axes

    known = problem.variables
    for name in asked:
        if name is not None and name not in known:
            hint = f"There are {listed(known)}. {suggestion(name, known)}".strip()
            raise UsageError(f"no stream {name} limits this system", hint=hint)
    chosen = [known.index(name) for name in asked if name is not None]
    usual = [*main_axes(problem)] if len(known) > 1 else [0, 0]
    chosen += [name for name in usual if name not in chosen]
    return (chosen[0], chosen[1]) if len(chosen) > 1 else (chosen[0], chosen[0])


def _rises(
    problem: Problem, assignment: Ints, point: Floats, observed: Sequence[bool]
) -> list[Rise]:
    """How far each stream could rise if all others stayed as they are."""
    from penstock.load.feasible import fixed_shares, node_coefficients

    loads = node_coefficients(problem, assignment) / problem.capacities[:, None]
    left = 1.0 - fixed_shares(problem, assignment) - loads @ point
    found = []
    for at, name in enumerate(problem.variables):
        column, rate = loads[:, at], float(point[at])
        limits = [
            (max(0.0, rate + left[node] / column[node]), problem.nodes[node])
            for node in range(len(column))
            if column[node] > 0
        ]
        most = min(limits, default=(None, ""))
        found.append(
            Rise(
                variable=name,
                rate_per_s=rate,
                observed=observed[at],
                most_per_s=None if most[0] is None else float(most[0]),
                first_full=most[1],
            )
        )
    return found


def _corners(points: Floats) -> Corners:
    return [(float(x), float(y)) for x, y in points]
