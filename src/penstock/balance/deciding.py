"""What a policy does about a situation, looking at as much of it together as is wanted."""

from __future__ import annotations

import numpy as np

from penstock.balance.domains import in_domains
from penstock.balance.grouping import in_groups
from penstock.balance.plan import MovePlan
from penstock.balance.planning_scope import PlanningScope
from penstock.balance.policies import policy_called
from penstock.balance.policy import Policy, check_plan
from penstock.balance.situation import Situation, Thresholds


def decide(
    policy: Policy | str,
    situation: Situation,
    rng: np.random.Generator,
    thresholds: Thresholds | None = None,
    scope: PlanningScope | None = None,
    turn: int = 0,
) -> MovePlan:
    """What a policy, or the one of that name, does about a situation.

    ``turn`` numbers the decisions: with every other one the borders between domains shift.

    >>> situation = Situation.of([[0.3, 0.3], [0.2, 0.2], [0.2, 0.2]], [0, 0, 0], [1.0, 1.0])
    >>> plan = decide("one-way", situation, np.random.default_rng(0))
    >>> [(move.operator, move.target, round(move.load, 3)) for move in plan.moves]
    [(0, 1, 0.3)]
    """
    chosen = policy_called(policy)() if isinstance(policy, str) else policy
    limits, whole = thresholds or Thresholds(), scope or PlanningScope()

    def plan(now: Situation) -> MovePlan:
        return check_plan(chosen.plan(now, limits, rng), now, chosen.name)

    def plan_groups(now: Situation) -> MovePlan:
        return in_groups(now, whole.lightest, plan) if whole.lightest else plan(now)

    if not whole.domain:
        return plan_groups(situation)
    return in_domains(situation, whole.domain, plan_groups, turn)
