"""The global correlation algorithm: a first placement from load series (Figs. 5.6 and 5.7)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from penstock.balance.dealing import deal_out
from penstock.balance.improvement import candidates, improve
from penstock.balance.members import WorkingPlan, cluster_operators
from penstock.balance.plan import MovePlan, move_plan
from penstock.balance.rounds import ONE_WAY, balance_round
from penstock.balance.situation import HOMELESS, Situation, Thresholds
from penstock.errors import InputError
from penstock.load.arrays import Flags, Floats, Ints
from penstock.load.series import LoadSeries, load_series

THETA = 0.8
# Up to 51 nodes the source's limit n (n - 1) is smaller. Beyond, the bulk of the gain is had long
# before this one, and where the total load hardly varies no number of rounds is enough.
_ROUNDS_PER_NODE = 50
# So many rounds of improvement take about a tenth of a second.
_ROUNDS_AT_ONCE = 2_000


def global_assignment(
    series: LoadSeries | ArrayLike,
    capacities: ArrayLike,
    *,
    assignment: ArrayLike | None = None,
    movable: ArrayLike | None = None,
    theta: float = THETA,
    out_of_time: Callable[[], bool] | None = None,
) -> Ints:
    """A node for every operator, such that nodes are equally loaded and correlate highly.

    ``series`` has a row of load samples per operator and a column per period, in units of
    capacity. Operators that are not ``movable`` stay where ``assignment`` says; where the others
    were does not matter. ``out_of_time`` is asked now and then while correlations are raised,
    each step of which leaves a complete plan: True ends the search early. Deterministic: equally
    good operators and nodes are taken in the order of their numbers.

    >>> busy_first, busy_last = [0.8, 0.2], [0.2, 0.8]
    >>> global_assignment([busy_first, busy_first, busy_last, busy_last], [1.0, 1.0])
    array([0, 1, 0, 1])
    """
    loads = series if isinstance(series, LoadSeries) else load_series(series)
    sizes = _checked_capacities(capacities)
    free = np.ones(loads.operators, bool) if movable is None else np.array(movable, bool)
    start = np.full(loads.operators, -1) if assignment is None else np.array(assignment, np.int64)
    _check_sticky(start, free, sizes.size)
    sticky = np.where(free, -1, start)
    cluster = cluster_operators(loads.quanta, free, sizes, sticky)
    deal_out(cluster)
    balance_round(cluster, ONE_WAY, 0.0, 0.0, np.zeros(loads.operators))
    _raise_correlations(cluster, theta, out_of_time)
    return cluster.assignment


def global_correlation(
    situation: Situation,
    thresholds: Thresholds | None = None,
    out_of_time: Callable[[], bool] | None = None,
) -> MovePlan:
    """The plan that deals out a situation's operators afresh, whatever has to move for it."""
    limits = thresholds or Thresholds()
    assignment = global_assignment(
        situation.series,
        situation.capacities,
        assignment=situation.assignment,
        movable=situation.free | (situation.assignment == HOMELESS),
        theta=limits.theta,
        out_of_time=out_of_time,
    )
    return move_plan("global", situation, assignment)


def _checked_capacities(capacities: ArrayLike) -> Floats:
    sizes = np.array(capacities, dtype=np.float64)
    if sizes.ndim != 1 or not sizes.size or not np.all(np.isfinite(sizes) & (sizes > 0)):
        raise InputError(
            f"capacities {sizes.tolist()}", hint="Give at least one node, each more than zero."
        )
    return sizes


def _check_sticky(start: Ints, free: Flags, nodes: int) -> None:
    lost = np.flatnonzero(~free & ((start < 0) | (start >= nodes)))
    if start.shape != free.shape or lost.size:
        raise InputError(
            f"operators {lost.tolist()} may not move and have no node",
            hint="Give each operator that is not movable its node in assignment.",
        )


def _raise_correlations(
    cluster: WorkingPlan, theta: float, out_of_time: Callable[[], bool] | None
) -> None:
    nodes = cluster.first.shape[0]
    found = candidates(cluster, theta)
    left = nodes * min(nodes - 1, _ROUNDS_PER_NODE)
    while left > 0 and not (out_of_time and out_of_time()):
        wanted = min(left, _ROUNDS_AT_ONCE)
        if improve(cluster, found, theta, wanted) < wanted:
            return
        left -= wanted
