"""Balancing: look, decide, have moved. One loop for simulated systems and running ones."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.balance.guards import GuardState, apply_guards, without_resting
from penstock.balance.settings import BalanceSettings
from penstock.balance.situation import Situation
from penstock.balance.world import CarryOut, Observation, Suggest, TellFailure, TellLate, World
from penstock.errors import PenstockError

if TYPE_CHECKING:
    from penstock.balance.plan import MovePlan


@dataclass(frozen=True, eq=False)
class PlanQuestion:
    """What a plan is wanted for: a system as it was seen at one time.

    In ``situation`` those that moved lately may not move. ``turn`` numbers the decisions.
    """

    settings: BalanceSettings
    seen: Observation
    situation: Situation
    asked_s: float
    turn: int

    def answer(self, rng: np.random.Generator) -> MovePlan:
        """What the policy wants."""
        # Only now: what compiles the policies takes seconds to load.
        from penstock.balance.deciding import decide

        settings = self.settings
        limits, scope = settings.thresholds, settings.scope
        return decide(settings.make_policy(), self.situation, rng, limits, scope, self.turn)


@dataclass(frozen=True)
class Balancer:
    """What is remembered between decisions: what the guards know, and how many there were.

    It decides and does nothing: what is seen goes in, questions and instructions come out, and a
    new balancer for what is remembered from then on.
    """

    guards: GuardState = field(default_factory=GuardState)
    turn: int = 0

    def ask(
        self, settings: BalanceSettings, seen: Observation, now_s: float
    ) -> tuple[Balancer, PlanQuestion | None]:
        """What a plan is wanted for now; nothing while something moves or too little is known."""
        turned = replace(self, turn=self.turn + 1)
        if settings.policy == "off" or seen.is_moving or seen.situation is None:
            return turned, None
        free = without_resting(seen.situation, seen.names, settings.guards, self.guards, now_s)
        return turned, PlanQuestion(settings, seen, free, now_s, turned.turn)

    def take(
        self, question: PlanQuestion, plan: MovePlan, now_s: float
    ) -> tuple[Balancer, CarryOut | Suggest]:
        """What of a plan is done, and what is remembered once it was."""
        settings, seen = question.settings, question.seen
        kept, guards = apply_guards(plan, seen.names, settings.guards, self.guards, now_s)
        done = replace(self, guards=guards)
        return done, Suggest(kept, seen) if settings.suggest else CarryOut(kept, seen)


class ImmediateExecutor(Executor):
    """Does work while it is given, which in simulated time takes none."""

    def submit(self, work: Callable[..., Any], /, *given: Any, **more: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(work(*given, **more))
        except PenstockError as error:
            done.set_exception(error)
        return done


class BalancingLoop:
    """Balances a world: :meth:`look` as often as is wanted, :meth:`go_on` while plans are made.

    ``planners`` make plans; who watches nodes meanwhile gives some that do so beside it. A plan
    that takes longer than it may is thrown away.
    """

    def __init__(
        self, world: World, rng: np.random.Generator, planners: Executor | None = None
    ) -> None:
        self._world = world
        self._rng = rng
        self._planners = planners or ImmediateExecutor()
        self._balancer = Balancer()
        self._asked: tuple[PlanQuestion, Future[MovePlan]] | None = None
        self._is_late = False

    @property
    def is_planning(self) -> bool:
        """Whether a plan is being made: no other is asked for meanwhile."""
        return self._asked is not None

    def look(self, settings: BalanceSettings) -> None:
        """Looks at the world, and asks for a plan if it is one to be balanced."""
        seen = self._world.observe(settings)
        self._balancer, question = self._balancer.ask(settings, seen, self._world.now_s)
        if question is not None:
            self._is_late = False
            self._asked = question, self._planners.submit(question.answer, self._rng)
            self.go_on()

    def go_on(self) -> None:
        """Has done what a plan says, once there is one."""
        if self._asked is None:
            return
        question, planned = self._asked
        now_s, limit_s = self._world.now_s, question.settings.planning_s
        if now_s - question.asked_s > limit_s and not self._is_late:
            self._is_late = True
            self._world.enact(TellLate(question.settings.policy, limit_s))
        if planned.done():
            self._asked = None
            if not self._is_late:
                self._conclude(question, planned, now_s)

    def _conclude(self, question: PlanQuestion, planned: Future[MovePlan], now_s: float) -> None:
        try:
            plan = planned.result()
        except PenstockError as error:
            self._world.enact(TellFailure(question.settings.policy, error))
            return
        balancer, instruction = self._balancer.take(question, plan, now_s)
        if self._world.enact(instruction):
            self._balancer = balancer
