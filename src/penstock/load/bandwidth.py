"""Whether links can ever be the bottleneck."""

from __future__ import annotations

import numpy as np

from penstock.load.arrays import Floats
from penstock.load.problem import Problem


def is_abundant(problem: Problem) -> bool:
    """Whether bandwidth can be left out: no plan and no rates saturate a link before a CPU.

    That is so iff every unit by itself needs less of any node's link than of its CPU, and all
    streams together less of the network than all units of the CPUs (theorem 3, with the total
    capacities the right way up). Fixed loads fill CPUs still earlier.
    """
    per_unit = _ratio(_bytes_per_unit(problem), problem.rows)
    links = problem.bandwidths / problem.capacities
    if not per_unit.max(initial=0.0) < links.min():
        return False
    all_streams = _ratio(problem.arcs.bytes.sum(axis=0), problem.totals)
    return bool(all_streams.max() < problem.total_bandwidth / problem.capacity)


def is_limited(problem: Problem) -> bool:
    """Whether any bandwidth is limited at all."""
    return bool(np.isfinite(problem.bandwidths).any() or np.isfinite(problem.total_bandwidth))


def _bytes_per_unit(problem: Problem) -> Floats:
    moved = np.zeros_like(problem.rows)
    np.add.at(moved, problem.arcs.sources, problem.arcs.bytes)
    np.add.at(moved, problem.arcs.targets, problem.arcs.bytes)
    return moved


def _ratio(moved: Floats, load: Floats) -> Floats:
    """Bytes per processor second; infinite where something is moved without load."""
    ratio = np.where(moved > 0, np.inf, 0.0)
    np.divide(moved, load, out=ratio, where=load > 0)
    return ratio
