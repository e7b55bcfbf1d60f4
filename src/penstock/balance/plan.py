"""What was decided: a new place for some operators, with the numbers it was decided by."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby

import numpy as np

from penstock.balance.situation import HOMELESS, Situation
from penstock.errors import InputError
from penstock.load.arrays import Floats, Ints
from penstock.load.correlation import deviations, least_mean_deviation, mean_pair_correlation


@dataclass(frozen=True)
class PlannedMove:
    """One operator changes its node; ``source`` is -1 if it had none.

    ``load`` is its mean load. ``source_correlation`` is the correlation with the rest of its old
    node, ``target_correlation`` with the new node, both before the plan; ``score`` is half their
    difference. Loads of nodes are relative to capacity, before and after the whole plan.
    """

    operator: int
    source: int
    target: int
    load: float
    score: float
    source_correlation: float
    target_correlation: float
    source_before: float
    source_after: float
    target_before: float
    target_after: float


@dataclass(frozen=True)
class Balance:
    """How well balanced an assignment is.

    ``least_deviation`` is what no assignment can go below: sd(X)/n.
    """

    highest_load: float
    lowest_load: float
    mean_deviation: float
    least_deviation: float
    mean_correlation: float


@dataclass(frozen=True, eq=False)
class MovePlan:
    """A decision: who moves, from what situation, by which policy.

    Moves are in the order they are to be carried out: pair by pair of nodes, because only one
    pair moves at a time.
    """

    policy: str
    situation: Situation
    moves: tuple[PlannedMove, ...]

    @cached_property
    def assignment(self) -> Ints:
        """Where everything is once all moves are made."""
        after = self.situation.assignment.copy()
        for move in self.moves:
            after[move.operator] = move.target
        return after

    @property
    def moved_load(self) -> float:
        return sum(move.load for move in self.moves)

    @property
    def batches(self) -> tuple[tuple[PlannedMove, ...], ...]:
        """The moves, those of one pair of nodes together."""
        return tuple(tuple(moves) for _, moves in groupby(self.moves, key=_pair))

    @cached_property
    def before(self) -> Balance:
        return balance_of(self.situation)

    @cached_property
    def after(self) -> Balance:
        return balance_of(replace(self.situation, assignment=self.assignment))


def move_plan(policy: str, situation: Situation, assignment: Ints) -> MovePlan:
    """The plan that turns a situation into an assignment: only operators whose node changes."""
    outside = np.flatnonzero((assignment < HOMELESS) | (assignment >= situation.nodes))
    if outside.size:
        raise InputError(
            f"policy {policy} put operator {outside[0]} on node {assignment[outside[0]]}; there "
            f"are {situation.nodes}, counted from 0",
            hint=f"The policy {policy} has to be mended.",
        )
    movers = np.flatnonzero(assignment != situation.assignment)
    if not movers.size:
        return MovePlan(policy, situation, ())
    source, target = situation.assignment[movers], assignment[movers]
    after = situation.series.totals(assignment, situation.nodes).mean(axis=1)
    after /= situation.capacities
    at_source = _relations(situation, movers, source, leave_out=True)
    at_target = _relations(situation, movers, target, leave_out=False)
    before = situation.node_loads
    nan = float("nan")
    moves = [
        PlannedMove(
            operator=int(operator),
            source=int(old),
            target=int(new),
            load=float(situation.series.means[operator]),
            score=(rho_old - rho_new) / 2,
            source_correlation=rho_old,
            target_correlation=rho_new,
            source_before=float(before[old]) if old >= 0 else nan,
            source_after=float(after[old]) if old >= 0 else nan,
            target_before=float(before[new]),
            target_after=float(after[new]),
        )
        for operator, old, new, rho_old, rho_new in zip(
            movers, source, target, at_source.tolist(), at_target.tolist(), strict=True
        )
    ]
    moves.sort(key=_in_order)
    return MovePlan(policy, situation, tuple(moves))


def balance_of(situation: Situation) -> Balance:
    """How well balanced a situation is.

    >>> from penstock.balance.situation import Situation
    >>> found = balance_of(Situation.of([[0.2, 0.6], [0.6, 0.2]], [0, 1], [1, 1]))
    >>> round(found.mean_deviation, 3), found.mean_correlation, round(found.least_deviation, 3)
    (0.2, -1.0, 0.0)
    """
    series = situation.node_series
    return Balance(
        highest_load=float(situation.node_loads.max()),
        lowest_load=float(situation.node_loads.min()),
        mean_deviation=float(deviations(series).mean()),
        least_deviation=least_mean_deviation(series),
        mean_correlation=mean_pair_correlation(series),
    )


def _relations(situation: Situation, movers: Ints, nodes: Ints, leave_out: bool) -> Floats:
    """rho(o, N) of operators and nodes, pairwise; 0 where there is no node."""
    own = situation.series.loads[movers]
    others = situation.node_series[nodes] - own if leave_out else situation.node_series[nodes]
    own = own - own.mean(axis=1, keepdims=True)
    others = others - others.mean(axis=1, keepdims=True)
    scale = np.sqrt((own**2).sum(axis=1) * (others**2).sum(axis=1))
    is_defined = (scale > situation.series.quantum**2 / 2) & (nodes >= 0)
    found = np.divide((own * others).sum(axis=1), scale, np.zeros(movers.size), where=is_defined)
    clipped: Floats = np.clip(found, -1.0, 1.0)
    return clipped


def _pair(move: PlannedMove) -> tuple[int, int]:
    return min(move.source, move.target), max(move.source, move.target)


def _in_order(move: PlannedMove) -> tuple[tuple[int, int], int]:
    return _pair(move), move.operator
