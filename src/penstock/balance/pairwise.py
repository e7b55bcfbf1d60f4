"""Pairwise balancing by correlation, once per statistics period."""

from __future__ import annotations

import numpy as np

from penstock.balance.dealing import deal_out
from penstock.balance.members import WorkingPlan, cluster_operators
from penstock.balance.plan import MovePlan, move_plan
from penstock.balance.rounds import (
    BY_PRIORITY,
    EXCHANGE,
    ONE_WAY,
    REDISTRIBUTE,
    balance_round,
    improvement_round,
)
from penstock.balance.situation import HOMELESS, Situation, Thresholds
from penstock.load.arrays import Floats

_DEFAULT = Thresholds()


def one_way(situation: Situation, thresholds: Thresholds = _DEFAULT) -> MovePlan:
    """The least movement: only from the heavier node of a pair to the lighter (COR-BAL).

    Node 1 is busy late, so it gets an operator that is busy early:

    >>> early, late = [0.4, 0.1], [0.1, 0.4]
    >>> situation = Situation.of([late, early, early, late, late], [0, 0, 0, 0, 1], [2.0, 2.0])
    >>> [(move.operator, move.source, move.target) for move in one_way(situation).moves]
    [(1, 0, 1)]
    """
    return _balanced("one-way", situation, thresholds, ONE_WAY)


def redistribution(situation: Situation, thresholds: Thresholds = _DEFAULT) -> MovePlan:
    """The best plan: pairs that differ too much are dealt out afresh."""
    return _balanced("redistribution", situation, thresholds, REDISTRIBUTE)


def selective_exchange(situation: Situation, thresholds: Thresholds = _DEFAULT) -> MovePlan:
    """The compromise: evened out, and operators that gain much change sides."""
    return _balanced("selective-exchange", situation, thresholds, EXCHANGE)


def improved_redistribution(situation: Situation, thresholds: Thresholds = _DEFAULT) -> MovePlan:
    """Redistribution, also of nodes close to overload that are balanced on average."""
    return _balanced("improved-redistribution", situation, thresholds, REDISTRIBUTE, True)


def improved_selective_exchange(
    situation: Situation, thresholds: Thresholds = _DEFAULT
) -> MovePlan:
    """Selective exchange, also of nodes close to overload that are balanced on average."""
    return _balanced("improved-selective-exchange", situation, thresholds, EXCHANGE, True)


def settled(situation: Situation) -> WorkingPlan:
    """The situation as a plan in which operators whose node has left have a new one.

    They go where the global algorithm would put them, with everybody else where they are.
    """
    cluster = cluster_operators(
        situation.series.quanta, situation.free, situation.capacities, situation.assignment
    )
    if np.any(situation.assignment == HOMELESS):
        deal_out(cluster)
    return cluster


def balanced_by_priority(
    policy: str, situation: Situation, thresholds: Thresholds, priority: Floats
) -> MovePlan:
    """Pairwise balancing that takes operators in an order given beforehand."""
    cluster = settled(situation)
    epsilon = thresholds.epsilon / situation.series.quantum
    balance_round(cluster, BY_PRIORITY, epsilon, thresholds.delta, priority)
    return move_plan(policy, situation, cluster.assignment)


def _balanced(
    policy: str, situation: Situation, thresholds: Thresholds, algorithm: int, improve: bool = False
) -> MovePlan:
    cluster = settled(situation)
    quantum = situation.series.quantum
    no_priority = np.zeros(situation.series.operators)
    balance_round(cluster, algorithm, thresholds.epsilon / quantum, thresholds.delta, no_priority)
    if improve:
        improvement_round(cluster, algorithm, thresholds.delta, thresholds.theta, 1.0 / quantum)
    return move_plan(policy, situation, cluster.assignment)
