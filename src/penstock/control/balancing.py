"""Balancing a running system: measured loads, a policy's decision, the moves that follow."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from penstock.balance.guards import GuardState, guarded, rested
from penstock.balance.situation import Situation
from penstock.control.balance_settings import BalanceSettings
from penstock.control.catalog import Catalog
from penstock.control.controller import Controller, MoveRequest
from penstock.control.loads import measured_loads
from penstock.control.reasons import reasons
from penstock.control.records import NodeRecord, UnitRecord
from penstock.errors import PenstockError

if TYPE_CHECKING:
    from penstock.balance.plan import Move

log = logging.getLogger(__name__)

_LEAST_SAMPLES = 3


class Balancer:
    """Looks at a system now and then, and has moved what a policy wants moved."""

    def __init__(self, catalog: Catalog, controller: Controller) -> None:
        self._catalog = catalog
        self._controller = controller
        self._state = GuardState()
        self._looked_s = 0.0
        self._rng = np.random.default_rng(0)

    def settings(self) -> BalanceSettings:
        """Those of the newest submission that has some."""
        deployments = self._controller.system().deployments
        for number in sorted(deployments, reverse=True):
            if deployments[number].balance:
                return BalanceSettings.parse(deployments[number].balance)
        return BalanceSettings()

    def tick(self, now_s: float) -> None:
        """Decides if it is time to, and begins the moves."""
        settings = self.settings()
        if settings.policy == "off" or now_s - self._looked_s < settings.every_s:
            return
        self._looked_s = now_s
        if self._catalog.moves(open_only=True):
            return
        nodes = [node for node in self._catalog.nodes() if node.is_alive(now_s)]
        units = [
            unit
            for unit in self._catalog.units()
            if unit.kind == "fragment" and unit.is_up and unit.state != "finished"
        ]
        if len(nodes) > 1 and units:
            self._balance(settings, nodes, units, now_s)

    def _balance(
        self,
        settings: BalanceSettings,
        nodes: Sequence[NodeRecord],
        units: Sequence[UnitRecord],
        now_s: float,
    ) -> None:
        # Only now: what compiles the policies takes seconds to load.
        from penstock.balance.policies import decide

        names = [unit.name for unit in units]
        series = measured_loads(
            {node.name: self._catalog.samples(node.name) for node in nodes},
            names,
            settings.samples,
            settings.sample_s,
            now_s,
        )
        if series.shape[1] < _LEAST_SAMPLES:
            return
        numbers = {node.name: number for number, node in enumerate(nodes)}
        situation = Situation.of(
            series,
            [numbers.get(unit.node or "", -1) for unit in units],
            [float(node.cores) for node in nodes],
            [unit.pinned is None or unit.pinned != unit.node for unit in units],
        )
        situation = rested(situation, names, settings.guards, self._state, now_s)
        wanted = decide(settings.policy, situation, self._rng, settings.thresholds)
        plan, self._state = guarded(wanted, names, settings.guards, self._state, now_s)
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
        elif wishes:
            self._begin(wishes)

    def _begin(self, wishes: list[MoveRequest]) -> None:
        try:
            self._controller.move(wishes)
        except PenstockError as error:
            log.warning("a plan could not be carried out: %s", error)


def _reason(move: Move, nodes: Sequence[NodeRecord]) -> str:
    source, target = nodes[move.source].name, nodes[move.target].name
    return (
        f"correlation with the rest of {source} {move.source_correlation:.2f}, "
        f"with {target} {move.target_correlation:.2f}; "
        f"node {source} {move.source_before:.2f} → {move.source_after:.2f}, "
        f"{target} {move.target_before:.2f} → {move.target_after:.2f}"
    )
