"""Balancing a running system: measured loads, a policy's decision, the moves that follow."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from typing import Any

import numpy as np

from penstock.balance.balancer import BalancingLoop
from penstock.balance.moves import moves_of
from penstock.balance.settings import BalanceSettings
from penstock.balance.situation import Situation
from penstock.balance.world import (
    BalanceInstruction,
    CarryOut,
    Observation,
    Suggest,
    TellFailure,
    TellLate,
)
from penstock.control.catalog import Catalog
from penstock.control.controller import Controller
from penstock.control.loads import measured_loads
from penstock.control.records import BalanceRecord, NodeRecord, UnitRecord
from penstock.control.system import Unit
from penstock.control.system_balance import balance_settings, read_balance
from penstock.errors import PenstockError
from penstock.model.binding import may_move
from penstock.model.fragments import Fragment
from penstock.model.moves import Move

log = logging.getLogger(__name__)

_LEAST_SAMPLES = 3


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


class LiveWorld:
    """A running system as its catalog has it; moves go through its controller."""

    def __init__(self, catalog: Catalog, controller: Controller) -> None:
        self._catalog = catalog
        self._controller = controller
        self.now_s = 0.0

    def observe(self, settings: BalanceSettings) -> Observation:
        """Fragments that run and where; without a situation while too little is known."""
        if self._catalog.moves(open_only=True):
            return Observation(is_moving=True)
        nodes = [node for node in self._catalog.nodes() if node.is_alive(self.now_s)]
        units = [
            unit
            for unit in self._catalog.units()
            if unit.kind == "fragment" and unit.is_up and unit.state != "finished"
        ]
        return Observation(
            [unit.name for unit in units],
            [node.name for node in nodes],
            self._situation(settings, nodes, units) if len(nodes) > 1 and units else None,
            epochs={unit.name: unit.epoch for unit in units},
        )

    def _situation(
        self,
        settings: BalanceSettings,
        nodes: Sequence[NodeRecord],
        units: Sequence[UnitRecord],
    ) -> Situation | None:
        """Loads and places as they are; None while too little is known."""
        since_s = self.now_s - settings.samples * settings.sample_s
        series = measured_loads(
            {node.name: self._catalog.samples_since(node.name, since_s) for node in nodes},
            [unit.name for unit in units],
            settings.samples,
            settings.sample_s,
            self.now_s,
        )
        if series.shape[1] < _LEAST_SAMPLES:
            return None
        numbers = {node.name: number for number, node in enumerate(nodes)}
        known = self._controller.system().units
        return Situation.of(
            series,
            [numbers.get(unit.node or "", -1) for unit in units],
            [float(node.cores) for node in nodes],
            [may_move(_fragment(known.get(unit.name)), unit.pinned) for unit in units],
        )

    def enact(self, instruction: BalanceInstruction) -> bool:
        """Does it; a plan only if nothing has been moved, or is about to, since it was seen."""
        match instruction:
            case CarryOut(plan, seen):
                return not self._has_changed(seen) and self._begin(
                    moves_of(plan, seen.names, seen.nodes)
                )
            case Suggest(plan, seen):
                if self._has_changed(seen):
                    return False
                for wish in moves_of(plan, seen.names, seen.nodes):
                    self._catalog.tell("suggest", wish.unit, f"to {wish.target}: {wish.reason}")
            case TellLate(policy, limit_s):
                text = f"no plan after {limit_s:g} s; everything stays where it is"
                self._catalog.tell("late plan", policy, text)
            case TellFailure(policy, error):
                log.warning("no plan could be made by %s: %s", policy, error)
        return True

    def _has_changed(self, seen: Observation) -> bool:
        if self._catalog.moves(open_only=True):
            return True
        now = {unit.name: unit.epoch for unit in self._catalog.units()}
        return any(now.get(name) != epoch for name, epoch in seen.epochs.items())

    def _begin(self, wishes: list[Move]) -> bool:
        try:
            if wishes:
                self._controller.move(wishes)
        except PenstockError as error:
            log.warning("a plan could not be carried out: %s", error)
            return False
        return True


class LiveBalancing:
    """Looks at a system now and then, and has moved what a policy wants moved.

    Plans are made in another thread: whoever calls :meth:`tick` has nodes to watch meanwhile.
    """

    def __init__(
        self, catalog: Catalog, controller: Controller, planners: Executor | None = None
    ) -> None:
        self._catalog = catalog
        self._world = LiveWorld(catalog, controller)
        rng = np.random.default_rng(0)
        self._loop = BalancingLoop(self._world, rng, planners or DaemonThreads())
        self._known = BalanceRecord(), BalanceSettings()
        self._looked_s = 0.0

    def settings(self) -> BalanceSettings:
        """Those of the system."""
        record = read_balance(self._catalog)
        if record != self._known[0]:
            self._known = record, balance_settings(record)
        return self._known[1]

    def tick(self, now_s: float) -> None:
        """Asks for a plan if it is time to, and begins the moves of one that is there."""
        self._world.now_s = now_s
        if self._loop.is_planning:
            self._loop.go_on()
            return
        settings = self.settings()
        # Neighbours in a tree do it among themselves.
        is_on = settings.policy != "off" and settings.tree is None
        if is_on and now_s - self._looked_s >= settings.every_s:
            self._looked_s = now_s
            self._loop.look(settings)


def _fragment(unit: Unit | None) -> Fragment | None:
    return None if unit is None else unit.fragment
