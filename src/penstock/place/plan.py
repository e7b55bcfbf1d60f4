"""Plans and how good they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from penstock.errors import listed
from penstock.load.arrays import Ints
from penstock.load.feasible import (
    axis_product,
    cut_arcs,
    fixed_shares,
    plane_distance,
    seen_rows,
    weights,
)
from penstock.load.problem import Problem
from penstock.load.volume import MOST_VARIABLES, Volume, volume
from penstock.place.strategy import Strategy, check_assignment

_SHOWN = 5


@dataclass(frozen=True)
class Quality:
    """What a plan is worth; all but ``cut_streams`` and ``fixed`` are parts of the ideal.

    ``volume`` is None where there are too many variables to integrate; ``fixed`` is the part of
    every node's CPU that is in use whatever the rates are.
    """

    volume: Volume | None
    axis_product: float
    plane_distance: float
    cut_streams: int
    fixed: tuple[float, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Plan:
    """Where every unit goes, by whom that was decided, how good it is and how long it took."""

    algorithm: str
    assignment: Ints
    quality: Quality
    seconds: float


def judge_assignment(problem: Problem, assignment: Ints) -> Quality:
    """How good an assignment is.

    A plan that cannot even carry its fixed loads and the lower bound of the rates has volume 0 and
    says so.
    """
    rows = seen_rows(problem, assignment)
    fixed = tuple(fixed_shares(problem, assignment).tolist())
    cut = len(cut_arcs(problem, assignment))
    notes = _overloads(problem, assignment)
    if rows is None:
        return Quality(Volume(0.0), 0.0, 0.0, cut, fixed, (_infeasible(problem, fixed), *notes))
    found = volume(rows)
    if found is None:
        notes += (
            f"{len(problem.variables)} variables are more than the {MOST_VARIABLES} "
            "that can be integrated: no volume",
        )
    return Quality(found, axis_product(rows), plane_distance(rows), cut, fixed, notes)


def _infeasible(problem: Problem, fixed: tuple[float, ...]) -> str:
    """Why nothing is feasible."""
    full = [
        f"{node} ({share:.2f} of its CPU)"
        for node, share in zip(problem.nodes, fixed, strict=True)
        if share >= 1
    ]
    if full:
        return f"full of fixed loads alone: {_some(full)}: nothing is feasible"
    return "overloaded at the lower bound of the rates: nothing is feasible"


def _overloads(problem: Problem, assignment: Ints) -> tuple[str, ...]:
    """What is too much already at typical rates."""
    at_typical = problem.rates * problem.totals / problem.capacity
    loads = weights(problem, assignment) @ at_typical
    loads[: len(problem.nodes)] += fixed_shares(problem, assignment)
    nodes = [
        f"{problem.nodes[at]} ({loads[at]:.2f} of its CPU)"
        for at in np.flatnonzero(loads[: len(problem.nodes)] > 1)
    ]
    links = loads[len(problem.nodes) :]
    notes = [f"overloaded at typical rates: {_some(nodes)}"] if nodes else []
    if len(links) and links.max() > 1:
        notes.append(f"a link is overloaded at typical rates: {links.max():.2f} of its bandwidth")
    return tuple(notes)


def misfits(problem: Problem) -> tuple[str, ...]:
    """The units that fit nowhere: at typical rates they need more than the largest node has."""
    loads = problem.loads_at(problem.rates)
    largest = float(problem.capacities.max())
    found = [
        f"{problem.units[at]} (needs {loads[at]:.2f} of {largest:g})"
        for at in np.flatnonzero(loads > largest)
    ]
    return (f"fits on no node at typical rates: {_some(found)}",) if found else ()


def _some(names: list[str]) -> str:
    more = len(names) - _SHOWN
    return listed(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def make_plan(
    problem: Problem, strategy: Strategy, clock: Callable[[], float], seed: int = 0
) -> Plan:
    """The plan of one strategy; ``clock`` gives seconds, to tell how long it took."""
    started = clock()
    assignment = strategy.place(problem, np.random.default_rng(seed))
    seconds = clock() - started
    good = check_assignment(problem, assignment, strategy.name)
    return Plan(strategy.name, good, judge_assignment(problem, good), seconds)


def best_first(plans: Iterable[Plan]) -> list[Plan]:
    """Plans by volume, by plane distance where there is none; ties by name."""
    return sorted(plans, key=lambda plan: (*_merit(plan.quality), plan.algorithm))


def _merit(quality: Quality) -> tuple[float, float]:
    return -(quality.volume.ratio if quality.volume else 0.0), -quality.plane_distance


def nodes_by_operator(problem: Problem, plan: Plan) -> Mapping[str, str]:
    """The name of the node of every operator."""
    return {
        member: problem.nodes[node]
        for members, node in zip(problem.members, plan.assignment, strict=True)
        for member in members
    }
