"""Units that were started and have not got through a batch yet, as their agent watches them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from penstock.control.catalog import Catalog
from penstock.control.records import UnitRecord
from penstock.control.recovery import hand_over_phases, pause_s, recovery_text, time_spent


class Resuming:
    """Says, once a unit works again, what the time until then went into.

    ``milestones`` gives the wall times of what a unit has reached so far.
    """

    def __init__(
        self,
        node: str,
        catalog: Catalog,
        milestones: Callable[[str], Mapping[str, float]],
        lease_s: float,
    ) -> None:
        self._node = node
        self._catalog = catalog
        self._milestones = milestones
        self._lease_s = lease_s
        self._units: dict[str, UnitRecord] = {}

    def begin(self, unit: UnitRecord) -> None:
        """A unit was started, with its record from just before."""
        self._units[unit.name] = unit

    def forget(self, name: str) -> None:
        """A unit does not run here any more."""
        self._units.pop(name, None)

    def look(self, name: str) -> None:
        """Says it if the first batch is out; of an intake, if it was started."""
        unit = self._units.get(name)
        if unit is None:
            return
        reached_s = dict(self._milestones(name))
        if unit.kind == "intake":
            reached_s.setdefault("started_s", time.time())
        elif "first_batch_s" not in reached_s:
            return
        self.forget(name)
        # By the catalog's clock, like all other times of the unit.
        ahead_s = self._catalog.now_s() - time.time()
        self._tell(unit, {key: at_s + ahead_s for key, at_s in reached_s.items()})

    def _tell(self, unit: UnitRecord, reached_s: Mapping[str, float]) -> None:
        stood_s = pause_s(unit, reached_s, self._lease_s)
        if stood_s is None:
            return
        spent = time_spent(unit, reached_s, self._lease_s)
        told = {"spent": spent} if spent else {"phases": hand_over_phases(unit, reached_s)}
        move = self._catalog.end_pause(unit, stood_s, told)
        numbers = {"pause_s": stood_s, **spent} | ({} if move is None else {"move": move.id})
        if spent:
            text = recovery_text(self._node, stood_s, spent)
            self._catalog.tell("recovery", unit.name, text, **numbers)
        else:
            text = f"{unit.previous} → {self._node} paused for {stood_s:.2f} s"
            self._catalog.tell("pause", unit.name, text, **numbers)
