"""The feasible set of a plan: the rates that overload no node and no link.

All of it is in the normalised space x_k = l_k r_k / C_T, where the half-space of node i is a row w
with w x <= 1 - f_i, f_i being the part of its CPU that fixed loads take. Summed over all nodes by
their capacities that is x_1 + … + x_d <= 1 - F, with F the fixed part of all CPU: no plan can take
more. This is the ideal set, that of a plan which shares every stream and every fixed load out in
proportion to the capacities: all of its weights are 1 and all of its f_i are F.

What plans are compared by are rows as seen from the lower bound of the rates (:func:`seen_rows`),
scaled such that the ideal is again x_1 + … + x_d <= 1 and all ones.
"""

from __future__ import annotations

import numpy as np

from penstock.load.arrays import Flags, Floats, Ints, sums_by
from penstock.load.problem import Problem


def node_coefficients(problem: Problem, assignment: Ints) -> Floats:
    """The load rows of the nodes (n x d), with what moving streams between nodes costs.

    A node has the row of an opening once if it has any of its units. Half of a stream's transfer
    cost falls on the node that sends it, half on the other.
    """
    _, nodes, width = problem.size
    loads = np.zeros((nodes, width))
    np.add.at(loads, assignment, problem.rows)
    if problem.openings:
        loads += opened_nodes(problem, assignment) @ problem.opening_rows
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


def fixed_shares(problem: Problem, assignment: Ints) -> Floats:
    """The part of every node's CPU that fixed loads take, those of openings included."""
    loads = sums_by(assignment, problem.fixed, len(problem.nodes))
    if problem.openings:
        fixed = np.array([opening.fixed for opening in problem.openings])
        loads = loads + opened_nodes(problem, assignment) @ fixed
    return loads / problem.capacities


def opened_nodes(problem: Problem, assignment: Ints) -> Flags:
    """Which openings each node has to pay (n x k): those of the units it has."""
    found = np.zeros((len(problem.nodes), len(problem.openings)), dtype=np.bool_)
    np.logical_or.at(found, assignment, problem.opens)
    return found


def rooms(problem: Problem, assignment: Ints) -> Floats:
    """What fixed loads leave of every half-space of :func:`weights`; links have none."""
    shares = fixed_shares(problem, assignment)
    links = int(np.isfinite(problem.bandwidths).sum() + np.isfinite(problem.total_bandwidth))
    return np.concatenate((1.0 - shares, np.ones(links)))


def seen_rows(problem: Problem, assignment: Ints) -> Floats | None:
    """The half-spaces of a plan as seen from the lower bound; None if no rates are feasible."""
    rows, left = weights(problem, assignment), rooms(problem, assignment)
    return anchored(rows, problem.lower_point, left, problem.ideal_room)


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


def anchored(
    rows: Floats,
    lower_point: Floats,
    rooms: Floats | float = 1.0,
    ideal_room: float = 1.0,
) -> Floats | None:
    """The half-spaces as seen from the lower bound, scaled so that the ideal is again all ones.

    ``rooms`` are what fixed loads leave of each, ``ideal_room`` what they leave of the ideal. None
    if fixed loads and the lower bound overload something: then no rates at all are feasible.

    >>> anchored(np.array([[2.0, 0.0], [0.0, 2.0]]), np.array([0.25, 0.0])).tolist()
    [[3.0, 0.0], [0.0, 1.5]]
    >>> anchored(np.array([[1.0], [1.0]]), np.zeros(1), np.array([0.5, 1.0]), 0.75).tolist()
    [[1.5], [0.75]]
    """
    room = rooms - rows @ lower_point
    # What is full and gets nothing from any stream limits none.
    if (room < 0).any() or rows[room == 0].any():
        return None
    anchored: Floats = rows * (ideal_room - lower_point.sum()) / np.where(room, room, 1.0)[:, None]
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
