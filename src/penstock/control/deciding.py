"""Decisions carried out: what is decided about a system becomes entries of its catalog."""

from __future__ import annotations

import logging
from collections.abc import Callable

from penstock.balance.hierarchy.written import HIERARCHY
from penstock.control.catalog import Catalog
from penstock.control.decisions import Assign, ChangeMove, Forgive, Reroute, decide
from penstock.control.group_moves import GroupMoves
from penstock.control.live_tree import tree_wiring
from penstock.control.returning import STANDSTILL_S, BringBack, Standstill
from penstock.control.system import System
from penstock.control.system_balance import read_balance

log = logging.getLogger(__name__)


class DecisionLoop:
    """Asks :func:`~penstock.control.decisions.decide` about a system, and does as it says.

    ``began_s`` is when it begins to, by the catalog's clock. Whoever calls it sees to it that
    nobody else assigns anything meanwhile.
    """

    def __init__(
        self,
        catalog: Catalog,
        groups: GroupMoves,
        system: Callable[[], System],
        began_s: float,
    ) -> None:
        self._catalog = catalog
        self._groups = groups
        self._system = system
        self._began_s = began_s
        self._decided_s: float | None = None
        self._standstill: Standstill | None = None

    def carry_on(self) -> None:
        """Looks at the system, and does what has to be done now."""
        units, nodes = self._catalog.units(), self._catalog.nodes()
        moves, now_s = self._catalog.moves(open_only=True), self._catalog.now_s()
        self._notice_standstill(now_s)
        self._groups.carry_on(moves)
        moves = tuple(move for move in moves if not move.is_of_groups)
        wiring = tree_wiring(nodes, self._system())
        is_negotiated = read_balance(self._catalog).settings.get("policy") == HIERARCHY
        given = (units, nodes, moves, now_s, self._began_s, wiring, self._standstill)
        for instruction in decide(*given, is_negotiated):
            match instruction:
                case Assign():
                    self._assign(instruction)
                case BringBack():
                    self._bring_back(instruction, now_s)
                case Reroute():
                    self._reroute(instruction, now_s)
                case ChangeMove():
                    self._change(instruction, now_s)
                case Forgive(unit):
                    self._catalog.forgive(unit.name, unit.epoch)

    def _notice_standstill(self, now_s: float) -> None:
        decided_s, self._decided_s = self._decided_s, now_s
        if decided_s is not None and now_s - decided_s >= STANDSTILL_S:
            self._standstill = Standstill(decided_s, now_s)
            log.warning("nothing was seen of the system for %.1f s", now_s - decided_s)

    def _assign(self, given: Assign) -> None:
        unit, node = given.unit, given.node
        if self._catalog.assign(unit, node, given.is_restart, given.lost_s, given.belongs):
            log.info("%s to %s: %s", unit.name, node, given.reason)
            numbers = {"epoch": unit.epoch + 1, "from": unit.node, "to": node}
            self._catalog.tell("assign", unit.name, given.reason, **numbers)
            if given.lost_s is not None:
                self._record_failover(given)

    def _bring_back(self, wanted: BringBack, now_s: float) -> None:
        unit = wanted.unit
        row = {
            "unit": unit.name,
            "source": unit.node,
            "target": wanted.node,
            "state": "preparing",
            "created_s": now_s,
            "reason": wanted.reason,
            "numbers": {"by": "return", "returns": unit.returns + 1},
        }
        if self._catalog.add_return(unit, row):
            text = f"{unit.node} → {wanted.node}: {wanted.reason}"
            self._catalog.tell("return", unit.name, text, returns=unit.returns + 1)

    def _reroute(self, wanted: Reroute, now_s: float) -> None:
        row = {
            "unit": wanted.unit.name,
            "source": wanted.unit.node,
            "target": wanted.node,
            "state": "preparing",
            "created_s": now_s,
            "reason": wanted.reason,
            "numbers": {"by": "tree"},
        }
        self._catalog.add_moves([row])

    def _record_failover(self, given: Assign) -> None:
        """A move like others, but begun: there is no owner to wait for."""
        row = {
            "unit": given.unit.name,
            "source": given.unit.node,
            "target": given.node,
            "state": "moving",
            "created_s": self._catalog.now_s(),
            "reason": given.reason,
            "numbers": {"by": "failover"},
        }
        self._catalog.add_moves([row])

    def _change(self, changed: ChangeMove, now_s: float) -> None:
        move, values = changed.move, dict[str, object](state=changed.state)
        if changed.error or changed.state == "done":
            values["error"] = changed.error
        is_over = changed.state in ("done", "failed")
        if is_over:
            values["ended_s"] = now_s
        if self._catalog.change_move(move.id, **values) and is_over:
            text = f"{move.source} → {move.target} {changed.state}"
            text += f": {changed.error}" if changed.error else f" in {now_s - move.created_s:.1f} s"
            self._catalog.tell("move", move.unit, text, move=move.id, **dict(move.numbers))
