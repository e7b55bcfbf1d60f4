"""The feasible set of a plan: the rates that overload no node and no link.

All of it is in the normalised space x_k = l_k r_k / C_T, where every half-space is a row w with
w x <= 1 and the ideal plan, which shares every stream out evenly, has all weights 1.
"""

from __future__ import annotations

import numpy as np

from penstock.load.arrays import Floats, Ints
from penstock.load.problem import Problem


def node_coefficients(problem: Problem, assignment: Ints) -> Floats:
    """The load rows of the nodes (n x d), with what moving streams between nodes costs.

    Half of a stream's transfer cost falls on the node that sends it, half on the other.
    """
    _, nodes, width = problem.size
    loads = np.zeros((nodes, width))
    np.add.at(loads, assignment, problem.rows)
    arcs = problem.arcs
    if arcs.cpu.any():
        cut = cut_arcs(problem, assignment)
        half = arcs.cpu[cut] / 2
        np.add.at(loads, assignment[arcs.sources[cut]], half)
        np.add.at(loads, assignment[arcs.targets[cut]], half)
    return loads


def cut_arcs(problem: Problem, assignment: Ints) -> Ints:
    """The numbers of the streams whose ends are on different nodes."""
    arcs = problem.arcs
    cut: Ints = np.flatnonzero(assignment[arcs.sources] != assignment[arcs.targets])
    return cut


def weights(problem: Problem, assignment: Ints) -> Floats:
    """The half-spaces of a plan: a row for every node's CPU, then for every limited bandwidth."""
    scale = problem.totals / problem.capacity
    loads = node_coefficients(problem, assignment)
    rows = [loads / problem.capacities[:, np.newaxis] / scale]
    if np.isfinite(problem.bandwidths).any() or np.isfinite(problem.total_bandwidth):
        rows.append(_bandwidth_rows(problem, assignment) / scale)
    return np.vstack(rows)


def _bandwidth_rows(problem: Problem, assignment: Ints) -> Floats:
    """Bytes per second of every limited node and of the network, as parts of their limits."""
    _, nodes, width = problem.size
    arcs, cut = problem.arcs, cut_arcs(problem, assignment)
    moved = np.zeros((nodes, width))
    np.add.at(moved, assignment[arcs.sources[cut]], arcs.bytes[cut])
    np.add.at(moved, assignment[arcs.targets[cut]], arcs.bytes[cut])
    limited = np.isfinite(problem.bandwidths)
    rows = moved[limited] / problem.bandwidths[limited, np.newaxis]
    if np.isfinite(problem.total_bandwidth):
        rows = np.vstack((rows, arcs.bytes[cut].sum(axis=0) / problem.total_bandwidth))
    return rows


def anchored(rows: Floats, lower_point: Floats) -> Floats | None:
    """The half-spaces as seen from the lower bound, scaled so that the ideal is again all ones.

    None if the lower bound itself overloads something: then no rates at all are feasible.

    >>> anchored(np.array([[2.0, 0.0], [0.0, 2.0]]), np.array([0.25, 0.0])).tolist()
    [[3.0, 0.0], [0.0, 1.5]]
    """
    room = 1.0 - rows @ lower_point
    if (room <= 0).any():
        return None
    anchored: Floats = rows * (1.0 - lower_point.sum()) / room[:, np.newaxis]
    return anchored


def axis_product(rows: Floats) -> float:
    """g: the product of the least axis distances; the volume ratio is never below it.

    >>> axis_product(np.array([[2.0, 0.0], [0.0, 1.0]]))
    0.5
    """
    return float(np.prod(1.0 / np.maximum(rows.max(axis=0), 1.0)))


def plane_distance(rows: Floats) -> float:
    """r / r*: how far the nearest hyperplane is, compared with the ideal one.

    >>> round(plane_distance(np.array([[2.0, 0.0], [0.0, 2.0]])), 4)
    0.7071
    """
    norms = np.sqrt((rows**2).sum(axis=1))
    return float(np.sqrt(rows.shape[1]) / norms.max())
