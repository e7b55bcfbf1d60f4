"""A plan under local search: its half-spaces, who is loaded most where, and what a change gives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.load.arrays import Flags, Floats, Ints
from penstock.load.compiled import compiled
from penstock.load.feasible import fixed_shares
from penstock.load.feasible import weights as weights_of
from penstock.load.problem import UNPINNED, Problem
from penstock.place.search_kernel import (
    Rays,
    Weights,
    along,
    is_limit,
    power,
    rank,
    room_of,
    seen_from,
    shift,
    value,
)

_GAIN = 1e-12
"""By what part of the directions a change must be better, so that rounding is no reason to move."""


@dataclass(frozen=True, eq=False)
class Search:
    """What stays the same during a search, as arrays for compiled loops."""

    problem: Problem
    weights: Weights
    rays: Rays

    @property
    def is_local(self) -> bool:
        """Whether streams are free to move, so that only the CPU of nodes counts."""
        return not (self.weights.cpu.any() or self.weights.link.any())


def search_of(problem: Problem, directions: Floats) -> Search:
    """The arrays of a search that measures plans along ``directions``.

    All are copies: loops are compiled anew for arrays that may not be written to.
    """
    units, nodes, width = problem.size
    without_fixed = np.zeros((len(problem.arcs), 1))
    arcs = problem.arcs
    ends = np.concatenate((arcs.sources, arcs.targets))
    order = np.argsort(ends, kind="stable")
    starts = np.zeros(units + 1, dtype=np.int64)
    np.cumsum(np.bincount(ends, minlength=units), out=starts[1:])
    to_rates = problem.capacity / problem.totals
    limited = np.isfinite(problem.bandwidths).any() or np.isfinite(problem.total_bandwidth)
    scales = np.zeros((3, nodes, width + 1))
    scales[0, :, :-1] = to_rates / problem.capacities[:, np.newaxis]
    scales[0, :, -1] = 1.0 / problem.capacities
    scales[1, :, :-1] = to_rates / problem.bandwidths[:, np.newaxis]
    scales[2, :, :-1] = to_rates / problem.total_bandwidth
    weights = Weights(
        np.column_stack((problem.rows, problem.fixed)),
        scales,
        starts,
        np.concatenate((arcs.targets, arcs.sources))[order],
        (np.arange(len(ends)) % max(1, len(arcs)))[order],
        np.hstack((arcs.cpu / 2, without_fixed)),
        np.hstack((arcs.bytes * 1.0 if limited else np.zeros(arcs.bytes.shape), without_fixed)),
        np.column_stack((problem.opening_rows, [opening.fixed for opening in problem.openings])),
        np.array(problem.opens),
    )
    ray = problem.ideal_room - float(problem.lower_point.sum())
    rays = Rays(np.append(problem.lower_point, 1.0), ray, np.array(directions))
    return Search(problem, weights, rays)


class State:
    """A plan that is changed step by step, always for the better."""

    def __init__(self, search: Search, plan: Ints) -> None:
        nodes, points = len(search.problem.nodes), len(search.rays.directions)
        self._search = search
        self.plan = plan.copy()
        self._top = np.zeros((4, points))
        self._who = np.full((4, points), -1, dtype=np.int64)
        self._loads = np.zeros((nodes, points))
        self.restart(plan)

    def restart(self, plan: Ints) -> None:
        """Goes on from another plan."""
        self.plan = plan.copy()
        self._limits = _limits(self._search, plan)
        self._counts = _counts(self._search.problem, plan)
        self.total = _measure(self._limits, self._search.rays, self._loads, self._top, self._who)

    @property
    def volume(self) -> float:
        """The volume ratio of the plan, along the directions of the search."""
        return float(self.total) / len(self._search.rays.directions)

    def improve(self, unit: int, evaluations: int) -> int:
        """Makes the best change of ``unit``: a move, or a swap with a unit elsewhere.

        Gives how many changes were looked at, at most about ``evaluations``; the plan stays as it
        is if none is better.
        """
        search = self._search
        looked, node, partner = _best_change(
            unit,
            evaluations,
            2 if search.is_local else 5,
            np.array(search.problem.pinned),
            self.plan,
            self._counts,
            self._limits,
            self._top,
            self._who,
            self.total,
            search.weights,
            search.rays,
        )
        if node >= 0:
            plan = self.plan.copy()
            if partner >= 0:
                plan[partner] = plan[unit]
            plan[unit] = node
            self.restart(plan)
        return int(looked)


def _counts(problem: Problem, plan: Ints) -> Ints:
    """How many units of each node need each opening."""
    counts = np.zeros((len(problem.nodes), len(problem.openings)), dtype=np.int64)
    np.add.at(counts, plan, problem.opens.astype(np.int64))
    return counts


def _limits(search: Search, plan: Ints) -> Floats:
    """CPU rows of all nodes, link rows of all nodes, the row of the network; fixed parts last."""
    _, nodes, width = search.problem.size
    rows = np.zeros((2 * nodes + 1, width + 1))
    found = weights_of(search.problem, plan)
    rows[:nodes, :-1] = found[:nodes]
    rows[:nodes, -1] = fixed_shares(search.problem, plan)
    limited = np.flatnonzero(np.isfinite(search.problem.bandwidths))
    rows[nodes + limited, :-1] = found[nodes : nodes + len(limited)]
    if np.isfinite(search.problem.total_bandwidth):
        rows[-1, :-1] = found[-1]
    return rows


@compiled
def _measure(
    limits: Floats,
    rays: Rays,
    loads: Floats,
    top: Floats,
    who: Ints,
) -> float:
    """Fills in who is loaded most in each direction; the sum of the rays' shares of the volume."""
    low, ray, directions = rays
    nodes, points = loads.shape
    width = directions.shape[1]
    for i in range(nodes):
        room, link_room = room_of(limits[i], low), room_of(limits[nodes + i], low)
        if not is_limit(limits[i], room):
            room = 1.0
        for p in range(points):
            if room <= 0.0 or link_room <= 0.0:
                loads[i, p] = np.inf
            else:
                cpu = along(limits[i], directions[p]) / room
                loads[i, p] = ray * max(cpu, along(limits[nodes + i], directions[p]) / link_room)
    rank(loads, top, who)
    total, room = 0.0, room_of(limits[2 * nodes], low)
    for p in range(points):
        network = ray * along(limits[2 * nodes], directions[p]) / room if room > 0.0 else np.inf
        total += power(max(top[0, p], network), width)
    return total


@compiled
def _best_change(
    unit: int,
    evaluations: int,
    kinds: int,
    pinned: Ints,
    plan: Ints,
    counts: Ints,
    limits: Floats,
    top: Floats,
    who: Ints,
    total: float,
    weights: Weights,
    rays: Rays,
) -> tuple[int, int, int]:
    """How many changes were looked at, and the best: the unit's new node and swapped unit, or -1.

    Moves come first, then swaps; the first of equally good ones wins.
    """
    nodes, width = weights.scales.shape[1], weights.rows.shape[1]
    changed, seen = np.zeros((5, width)), np.zeros((5, width))
    tried = plan.copy()
    a, looked, chosen, partner = plan[unit], 0, -1, -1
    best = total + _GAIN * len(rays.directions)
    for other in range(-nodes, len(plan)):
        b = other + nodes if other < 0 else plan[other]
        if b == a or looked >= evaluations or (other >= 0 and pinned[other] != UNPINNED):
            continue
        looked += 1
        changed[0], changed[1] = limits[a], limits[b]
        changed[2], changed[3] = limits[nodes + a], limits[nodes + b]
        changed[4] = limits[2 * nodes]
        shift(unit, a, b, tried, counts, weights, changed)
        if other >= 0:
            # The second move gives to a and takes from b: the same rows, the other way round.
            _turn(changed)
            shift(other, b, a, tried, counts, weights, changed)
            _turn(changed)
            tried[other] = b
            _count(other, a, b, counts, weights.opens)
        tried[unit] = a
        _count(unit, b, a, counts, weights.opens)
        if seen_from(changed[:kinds], rays, seen):
            found = value(a, b, seen[:kinds], top, who, rays.directions, best)
            if found > best:
                best, chosen, partner = found, b, other
    return looked, chosen, partner if partner >= 0 else -1


@compiled
def _count(unit: int, a: int, b: int, counts: Ints, opens: Flags) -> None:
    """Counts a unit as moved from a to b."""
    for opening in range(counts.shape[1]):
        if opens[unit, opening]:
            counts[a, opening] -= 1
            counts[b, opening] += 1


@compiled
def _turn(changed: Floats) -> None:
    for k in range(changed.shape[1]):
        changed[0, k], changed[1, k] = changed[1, k], changed[0, k]
        changed[2, k], changed[3, k] = changed[3, k], changed[2, k]
