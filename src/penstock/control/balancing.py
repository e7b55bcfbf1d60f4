"""Balancing a running system: measured loads, a policy's decision, the moves that follow."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.balance.guards import GuardState, guarded, rested
from penstock.balance.settings import BalanceSettings
from penstock.balance.situation import Situation
from penstock.control.catalog import Catalog
from penstock.control.controller import Controller, MoveRequest
from penstock.control.loads import measured_loads
from penstock.control.reasons import reasons
from penstock.control.records import BalanceRecord, NodeRecord, UnitRecord
from penstock.control.system import Unit
from penstock.control.system_balance import balance_settings, read_balance
from penstock.errors import PenstockError

if TYPE_CHECKING:
    from penstock.balance.plan import Move, MovePlan

log = logging.getLogger(__name__)

_LEAST_SAMPLES = 3


@dataclass(frozen=True)
class _Question:
    """What a plan is wanted for: a system as it was at one time."""

    settings: BalanceSettings
    nodes: tuple[NodeRecord, ...]
    units: tuple[UnitRecord, ...]
    situation: Situation
    asked_s: float
    turn: int

    @property
    def names(self) -> list[str]:
        return [unit.name for unit in self.units]


class DaemonThreads(Executor):
    """Does work in threads of its own, which nobody waits for at the end."""

    def submit(self, work: Callable[..., Any], /, *given: Any, **more: Any) -> Future[Any]:
        done: Future[Any] = Future()

        def run() -> None:
            try:
                done.set_result(work(*given, **more))
            except BaseException as error:
                done.set_exception(error)

        threading.Thread(target=run, daemon=True, name="plan").start()
        return done


class Balancer:
    """Looks at a system now and then, and has moved what a policy wants moved.

    Plans are made in another thread: whoever calls :meth:`tick` has nodes to watch meanwhile. One
    that takes longer than it may is thrown away, and everything stays where it is.
    """

    def __init__(
        self, catalog: Catalog, controller: Controller, planners: Executor | None = None
    ) -> None:
        self._catalog = catalog
        self._controller = controller
        self._planners = planners or DaemonThreads()
        self._known = BalanceRecord(), BalanceSettings()
        self._state = GuardState()
        self._looked_s = 0.0
        self._turn = 0
        self._rng = np.random.default_rng(0)
        self._asked: tuple[_Question, Future[MovePlan]] | None = None
        self._is_late = False

    def settings(self) -> BalanceSettings:
        """Those of the system."""
        record = read_balance(self._catalog)
        if record != self._known[0]:
            self._known = record, balance_settings(record)
        return self._known[1]

    def tick(self, now_s: float) -> None:
        """Asks for a plan if it is time to, and begins the moves of one that is there."""
        if self._asked is None:
            self._ask(self.settings(), now_s)
        if self._asked is not None:
            self._look_at(*self._asked, now_s)

    def _ask(self, settings: BalanceSettings, now_s: float) -> None:
        if settings.policy == "off" or now_s - self._looked_s < settings.every_s:
            return
        self._looked_s = now_s
        if self._catalog.moves(open_only=True):
            return
        nodes = tuple(node for node in self._catalog.nodes() if node.is_alive(now_s))
        units = tuple(
            unit
            for unit in self._catalog.units()
            if unit.kind == "fragment" and unit.is_up and unit.state != "finished"
        )
        if len(nodes) > 1 and units:
            situation = self._situation(settings, nodes, units, now_s)
            if situation is not None:
                question = _Question(settings, nodes, units, situation, now_s, self._turn)
                self._turn += 1
                self._is_late = False
                self._asked = question, self._planners.submit(_planned, question, self._rng)

    def _situation(
        self,
        settings: BalanceSettings,
        nodes: Sequence[NodeRecord],
        units: Sequence[UnitRecord],
        now_s: float,
    ) -> Situation | None:
        """Loads and places as they are; None while too little is known."""
        names = [unit.name for unit in units]
        since_s = now_s - settings.samples * settings.sample_s
        series = measured_loads(
            {node.name: self._catalog.samples_since(node.name, since_s) for node in nodes},
            names,
            settings.samples,
            settings.sample_s,
            now_s,
        )
        if series.shape[1] < _LEAST_SAMPLES:
            return None
        numbers = {node.name: number for number, node in enumerate(nodes)}
        known = self._controller.system().units
        situation = Situation.of(
            series,
            [numbers.get(unit.node or "", -1) for unit in units],
            [float(node.cores) for node in nodes],
            [_may_move(unit, known.get(unit.name)) for unit in units],
        )
        return rested(situation, names, settings.guards, self._state, now_s)

    def _look_at(self, question: _Question, plan: Future[MovePlan], now_s: float) -> None:
        limit_s = question.settings.planning_s
        if now_s - question.asked_s > limit_s and not self._is_late:
            self._is_late = True
            text = f"no plan after {limit_s:g} s; everything stays where it is"
            self._catalog.tell("late plan", question.settings.policy, text)
        if not plan.done():
            return
        self._asked = None
        if self._is_late or self._has_changed(question):
            return
        try:
            wanted = plan.result()
        except PenstockError as error:
            log.warning("no plan could be made: %s", error)
            return
        self._carry_out(question, wanted, now_s)

    def _has_changed(self, question: _Question) -> bool:
        """Whether something has been moved, or is about to, since the plan was asked for."""
        if self._catalog.moves(open_only=True):
            return True
        now = {unit.name: unit.epoch for unit in self._catalog.units()}
        return any(now.get(unit.name) != unit.epoch for unit in question.units)

    def _carry_out(self, question: _Question, wanted: MovePlan, now_s: float) -> None:
        nodes, names, settings = question.nodes, question.names, question.settings
        plan, state = guarded(wanted, names, settings.guards, self._state, now_s)
        wishes = [
            MoveRequest(
                names[move.operator],
                nodes[move.target].name,
                _reason(move, nodes),
                reasons(plan, move, names, [node.name for node in nodes]),
            )
            for move in plan.moves
            if move.source >= 0
        ]
        if settings.suggest:
            for wish in wishes:
                self._catalog.tell("suggest", wish.unit, f"to {wish.node}: {wish.reason}")
        elif wishes and not self._has_begun(wishes):
            return
        self._state = state

    def _has_begun(self, wishes: list[MoveRequest]) -> bool:
        try:
            self._controller.move(wishes)
        except PenstockError as error:
            log.warning("a plan could not be carried out: %s", error)
            return False
        return True


def _may_move(record: UnitRecord, unit: Unit | None) -> bool:
    """Whether it is not bound to where it is, by its file or by what it does."""
    fragment = None if unit is None else unit.fragment
    is_bound = fragment is not None and fragment.is_bound
    return not is_bound and (record.pinned is None or record.pinned != record.node)


def _planned(question: _Question, rng: np.random.Generator) -> MovePlan:
    # Only now: what compiles the policies takes seconds to load.
    from penstock.balance.deciding import decide

    settings = question.settings
    limits, scope = settings.thresholds, settings.scope
    return decide(settings.policy, question.situation, rng, limits, scope, question.turn)


def _reason(move: Move, nodes: Sequence[NodeRecord]) -> str:
    source, target = nodes[move.source].name, nodes[move.target].name
    return (
        f"correlation with the rest of {source} {move.source_correlation:.2f}, "
        f"with {target} {move.target_correlation:.2f}; "
        f"node {source} {move.source_before:.2f} → {move.source_after:.2f}, "
        f"{target} {move.target_before:.2f} → {move.target_after:.2f}"
    )
