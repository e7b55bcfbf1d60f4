"""The policies by name: one function from a situation to a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from penstock.balance import pairwise, rivals
from penstock.balance.domains import in_domains
from penstock.balance.global_correlation import global_assignment
from penstock.balance.grouping import in_groups
from penstock.balance.plan import MovePlan, move_plan
from penstock.balance.scope import Scope
from penstock.balance.situation import HOMELESS, Situation, Thresholds
from penstock.errors import InputError, listed, suggestion

OutOfTime = Callable[[], bool]
Policy = Callable[[Situation, Thresholds, np.random.Generator], MovePlan]


def global_correlation(
    situation: Situation,
    thresholds: Thresholds | None = None,
    out_of_time: OutOfTime | None = None,
) -> MovePlan:
    """All afresh by correlation, whatever has to move for it (COR-GLB)."""
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


def no_moves(situation: Situation) -> MovePlan:
    """Everything stays; only operators whose node has left get a new one."""
    return move_plan("off", situation, pairwise.settled(situation).assignment)


POLICIES: Mapping[str, Policy] = {
    "correlation": lambda now, limits, _: pairwise.improved_selective_exchange(now, limits),
    "one-way": lambda now, limits, _: pairwise.one_way(now, limits),
    "redistribution": lambda now, limits, _: pairwise.redistribution(now, limits),
    "selective-exchange": lambda now, limits, _: pairwise.selective_exchange(now, limits),
    "improved-redistribution": lambda now, limits, _: pairwise.improved_redistribution(now, limits),
    "improved-selective-exchange": lambda now, limits, _: pairwise.improved_selective_exchange(
        now, limits
    ),
    "global": lambda now, limits, _: global_correlation(now, limits),
    "largest-load-first": lambda now, limits, _: rivals.largest_load_first(now, limits),
    "random": lambda now, limits, rng: rivals.random_selection(now, rng, limits),
    "global-largest-load-first": lambda now, _, __: rivals.global_largest_load_first(now),
    "global-random": lambda now, _, rng: rivals.global_random(now, rng),
    "off": lambda now, _, __: no_moves(now),
}


def decide(
    policy: str,
    situation: Situation,
    rng: np.random.Generator,
    thresholds: Thresholds | None = None,
    scope: Scope | None = None,
    turn: int = 0,
) -> MovePlan:
    """What a policy does about a situation.

    ``turn`` numbers the decisions: with every other one the borders between domains shift.

    >>> situation = Situation.of([[0.3, 0.3], [0.2, 0.2], [0.2, 0.2]], [0, 0, 0], [1.0, 1.0])
    >>> plan = decide("one-way", situation, np.random.default_rng(0))
    >>> [(move.operator, move.target, round(move.load, 3)) for move in plan.moves]
    [(0, 1, 0.3)]
    """
    known, limits, whole = policy_named(policy), thresholds or Thresholds(), scope or Scope()

    def plain(now: Situation) -> MovePlan:
        return known(now, limits, rng)

    def in_all(now: Situation) -> MovePlan:
        return in_groups(now, whole.lightest, plain) if whole.lightest else plain(now)

    return in_domains(situation, whole.domain, in_all, turn) if whole.domain else in_all(situation)


def policy_named(name: str) -> Policy:
    """The policy called ``name``."""
    if name not in POLICIES:
        hint = f"There are {listed(POLICIES)}. {suggestion(name, POLICIES)}".strip()
        raise InputError(f"no balancing policy {name}", hint=hint)
    return POLICIES[name]
