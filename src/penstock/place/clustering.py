"""Clustering: connected units that had better stay together, found before ROD places the clusters.

Moving a stream between nodes costs CPU at both ends and bandwidth in between. Where that is large
compared with the work of an end, its two ends are merged, unless the cluster would become too
heavy to be balanced. The work of an end counts as where the ideal plan is full, its fixed load
included (``Problem.full_rows``). Which thresholds are best depends on the network, so a small grid
of them is tried and the best plan kept. The source keeps the one whose nearest hyperplane is
farthest away; that stands in for the volume, and where the volume itself can be measured it
decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import ClassVar

import numpy as np

from penstock.load.arrays import Floats, Ints, sums_by
from penstock.load.bandwidth import is_abundant, is_limited
from penstock.load.feasible import plane_distance, seen_rows
from penstock.load.linear import Arcs
from penstock.load.problem import UNPINNED, Problem
from penstock.load.volume import MOST_VARIABLES, directions, volume
from penstock.place.rod import rod
from penstock.place.strategy import Strategy

Measure = Callable[[Problem, Ints], float]
"""How good a plan is; more is better."""

_LOG2_POINTS = 8
_LARGE = 5_000_000
"""From so many units times nodes on a coarser grid is tried, so that it takes seconds."""
RATIO_STEPS = (0.0, 0.1, 0.3, 0.9)
"""Thresholds of the ratios that are tried, as parts of the median ratio."""
MOST_WEIGHTS = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0)
"""Thresholds of the weight that are tried; 1 is what a node holds of a stream in the ideal plan."""


class Order(Enum):
    """Which of the candidate streams is merged first."""

    RATIO_FIRST = 0
    BANDWIDTH_FIRST = 1
    WEIGHT_FIRST = 2


@dataclass(frozen=True)
class MergeThresholds:
    """When a stream's ends are merged; infinite where a ratio does not count.

    Candidates have a communication ratio above ``least_cpu`` or a bandwidth ratio above
    ``least_bytes``, and a clustering weight below ``most_weight``.
    """

    least_cpu: float
    least_bytes: float
    most_weight: float
    order: Order


class ClusteredRod(Strategy):
    """ROD on clusters, for networks where moving streams costs something; plain ROD where not."""

    name: ClassVar[str] = "rod-clustered"

    def place(self, problem: Problem, rng: np.random.Generator) -> Ints:
        return clustered_rod(problem)


def clustered_rod(problem: Problem, measure: Measure | None = None) -> Ints:
    """The plan of the sweep that is best by ``measure``, plain ROD's included; ties: the first.

    Without one that is the volume, or the plane distance if there are too many variables.
    """
    better = measure or (by_volume if problem.size[2] <= MOST_VARIABLES else by_distance)
    return max(candidates(problem), key=lambda plan: better(problem, plan))


def candidates(problem: Problem) -> Iterator[Ints]:
    """Plain ROD's plan, then one for every set of thresholds that gives other clusters.

    Where nodes pay openings, also some with the units of each in a few clusters: ROD looks at one
    node at a time, and does not see that it opens another one without need.
    """
    yield rod(problem)
    for labels in by_openings(problem):
        yield rod(merged_units(problem, labels))[labels]
    seen: set[bytes] = set()
    for thresholds in sweep(problem):
        labels = cluster(problem, thresholds)
        if labels.tobytes() not in seen:
            seen.add(labels.tobytes())
            yield rod(merged_units(problem, labels))[labels]


def by_openings(problem: Problem) -> Iterator[Ints]:
    """Clusters of the units of each opening that costs anything: one, two, … up to one a node."""
    costly = [opening for opening in problem.openings if opening.fixed or opening.row.any()]
    for pieces in range(1, len(problem.nodes) + 1) if costly else ():
        labels = np.arange(problem.size[0], dtype=np.int64)
        for opening in reversed(costly):
            free = opening.units[problem.pinned[opening.units] == UNPINNED]
            for piece in range(pieces):
                labels[free[piece::pieces]] = free[piece : piece + 1]
        yield np.unique(labels, return_inverse=True)[1].astype(np.int64)


def by_distance(problem: Problem, plan: Ints) -> float:
    """The least plane distance of a plan, links included: what the source goes by."""
    rows = seen_rows(problem, plan)
    return 0.0 if rows is None else plane_distance(rows)


def by_volume(problem: Problem, plan: Ints) -> float:
    """The volume of a plan, along a few directions."""
    rows = seen_rows(problem, plan)
    if rows is None:
        return 0.0
    found = volume(rows, directions(rows.shape[1], _LOG2_POINTS))
    assert found is not None
    return found.ratio


def sweep(problem: Problem) -> Iterator[MergeThresholds]:
    """The thresholds to try: communication, bandwidth, or both, by what the problem has."""
    by_cpu = bool(problem.arcs.cpu.any())
    by_bytes = is_limited(problem) and not is_abundant(problem)
    orders = [Order.WEIGHT_FIRST]
    orders += [Order.RATIO_FIRST] if by_cpu else []
    orders += [Order.BANDWIDTH_FIRST] if by_bytes else []
    cpu, bytes_ = (
        _median_ratio(problem, problem.arcs.cpu),
        _median_ratio(problem, problem.arcs.bytes),
    )
    is_large = problem.size[0] * problem.size[1] > _LARGE
    for step in (RATIO_STEPS[::2] if is_large else RATIO_STEPS) if by_cpu or by_bytes else ():
        for most_weight in MOST_WEIGHTS[1::4] if is_large else MOST_WEIGHTS:
            for order in orders:
                yield MergeThresholds(
                    step * cpu if by_cpu else np.inf,
                    step * bytes_ if by_bytes else np.inf,
                    most_weight,
                    order,
                )


def _median_ratio(problem: Problem, moved: Floats) -> float:
    rows = problem.full_rows
    lightest = np.minimum(rows[problem.arcs.sources], rows[problem.arcs.targets])
    known = (moved > 0) & (lightest > 0)
    return float(np.median(moved[known] / lightest[known])) if known.any() else 0.0


def cluster(problem: Problem, thresholds: MergeThresholds) -> Ints:
    """The number of every unit's cluster, counted from 0 in the order of their first units."""
    from penstock.place.clustering_kernel import Limits, clusters

    arcs = problem.arcs
    limits = Limits(
        len(problem.nodes),
        float(thresholds.least_cpu),
        float(thresholds.least_bytes),
        float(thresholds.most_weight),
        thresholds.order.value,
    )
    leaders = clusters(
        np.array(problem.full_rows),
        np.array(problem.pinned),
        np.array(arcs.sources),
        np.array(arcs.targets),
        np.array(arcs.cpu),
        np.array(arcs.bytes),
        np.array(problem.full_rows.sum(axis=0)),
        limits,
    )
    labels: Ints = np.unique(leaders, return_inverse=True)[1].astype(np.int64)
    return labels


def merged_units(problem: Problem, labels: Ints) -> Problem:
    """The problem of placing clusters instead of units."""
    count = int(labels.max()) + 1
    rows = np.zeros((count, problem.rows.shape[1]))
    np.add.at(rows, labels, problem.rows)
    members: list[list[str]] = [[] for _ in range(count)]
    for label, names in zip(labels, problem.members, strict=True):
        members[label] += names
    pinned = np.full(count, -1, dtype=np.int64)
    np.maximum.at(pinned, labels, problem.pinned)
    sticky = np.zeros(count, dtype=np.bool_)
    np.logical_or.at(sticky, labels, problem.sticky)
    arcs = problem.arcs
    between = labels[arcs.sources] != labels[arcs.targets]
    return replace(
        problem,
        units=tuple(names[0] for names in members),
        members=tuple(map(tuple, members)),
        rows=rows,
        fixed=sums_by(labels, problem.fixed, count),
        arcs=Arcs(
            labels[arcs.sources[between]],
            labels[arcs.targets[between]],
            arcs.cpu[between],
            arcs.bytes[between],
        ),
        sticky=sticky,
        pinned=pinned,
        openings=tuple(
            replace(opening, units=np.unique(labels[opening.units])) for opening in problem.openings
        ),
    )
