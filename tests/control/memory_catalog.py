"""A catalog kept in memory, with the meaning that the real one gives to the same words."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from penstock.control.decisions import Assign, ChangeMove, Forgive, Instruction, Reroute
from penstock.control.hand_over_rules import HandOver, why_not
from penstock.control.records import MoveRecord, NodeRecord, UnitRecord
from penstock.control.returning import BringBack
from penstock.place.tree_placing import TreeWiring


class MemoryCatalog:
    """Units, nodes and moves; ``tell`` is given what changes, ``changes`` counts it."""

    def __init__(self, tell: Callable[[str], None] = lambda _: None) -> None:
        self.units: dict[str, UnitRecord] = {}
        self.nodes: dict[str, NodeRecord] = {}
        self.moves: dict[int, MoveRecord] = {}
        self.owners: dict[tuple[str, int], str] = {}
        self.changes = 0
        self._tell = tell

    def join(self, node: NodeRecord, former: Collection[str], now_s: float) -> bool:
        known = self.nodes.get(node.name)
        if known is not None and known.is_alive(now_s) and known.incarnation not in former:
            return False
        self.nodes[node.name] = node
        return True

    def renew(self, node: str, life: str, until_s: float, now_s: float) -> bool:
        known = self.nodes.get(node)
        if known is None or known.incarnation != life or not known.is_alive(now_s):
            return False
        self.nodes[node] = replace(known, lease_until_s=until_s)
        return True

    def report(self, name: str, epoch: int, state: str, error: str = "") -> None:
        there = self.units[name]
        if there.epoch == epoch:
            said: dict[str, Any] = {"state": state, "error": error, "reported_epoch": epoch}
            self.units[name] = replace(there, **said)

    def release(self, name: str, epoch: int, by: tuple[str, str]) -> bool:
        there, node = self.units[name], self.nodes.get(by[0])
        is_new = there.released_epoch < epoch and node is not None and node.incarnation == by[1]
        if is_new:
            self._tell(f"{name} released, epoch {epoch}")
            self.units[name] = replace(there, released_epoch=epoch)
        self.changes += 1
        return is_new

    def drop(self, name: str) -> None:
        self._tell(f"{name} dropped")
        self.units[name] = replace(self.units[name], is_dropped=True)
        self.changes += 1

    def add_move(self, name: str, target: str, now_s: float, by: str = "people") -> None:
        source = self.units[name].node
        assert source is not None
        number = len(self.moves) + 1
        self._tell(f"move {number} of {name} from {source} to {target} asked for by {by}")
        self.moves[number] = MoveRecord(
            number, name, source, target, "preparing", False, now_s, numbers={"by": by}
        )
        self.changes += 1

    def change_move(self, number: int, **told: Any) -> None:
        if self.moves[number].is_open:
            self._tell(f"move {number} {told}")
            self.moves[number] = replace(self.moves[number], **told)
        self.changes += 1

    def carry_out(self, instruction: Instruction, now_s: float) -> None:
        """What the controller does with a decision."""
        match instruction:
            case Assign():
                self._assign(instruction)
            case ChangeMove(move, state, error):
                self.change_move(move.id, **{"state": state} | ({"error": error} if error else {}))
            case BringBack():
                self._bring_back(instruction, now_s)
            case Reroute(unit, node):
                self.add_move(unit.name, node, now_s, by="tree")
            case Forgive():
                pass

    def _assign(self, given: Assign) -> None:
        there = self.units[given.unit.name]
        self.changes += 1
        if there.epoch != given.unit.epoch or there.is_dropped:
            return
        self.units[there.name] = replace(
            there,
            node=given.node,
            epoch=there.epoch + 1,
            previous=given.unit.node,
            restarts=there.restarts + given.is_restart,
            belongs=given.belongs,
        )
        self.owners[there.name, there.epoch + 1] = given.node
        self._tell(f"{there.name} to {given.node}, epoch {there.epoch + 1}: {given.reason}")

    def _bring_back(self, wanted: BringBack, now_s: float) -> None:
        seen, there = wanted.unit, self.units[wanted.unit.name]
        is_same = there.epoch == seen.epoch and there.returns == seen.returns
        if is_same and there.node is not None and not there.is_dropped:
            self.units[there.name] = replace(there, returns=there.returns + 1)
            self._tell(f"brings {there.name} back")
            self.add_move(there.name, wanted.node, now_s, by="return")

    def begin_hand_over(
        self, step: HandOver, wiring: TreeWiring, made: list[dict[str, Any]], now_s: float
    ) -> tuple[list[int], str]:
        why = self._why_not(step, wiring, (), now_s)
        numbers = []
        for row in [] if why else made:
            number = len(self.moves) + 1
            numbers.append(number)
            self.moves[number] = MoveRecord(number, is_warm=False, **row)
            self._tell(f"move {number} of {row['unit']} to {row['target']} by neighbours")
        self.changes += 1
        return numbers, why

    def hand_over(
        self, step: HandOver, wiring: TreeWiring, mine: Collection[int], now_s: float
    ) -> str:
        why = self._why_not(step, wiring, mine, now_s)
        self.changes += 1
        if why:
            return why
        for name, epoch in step.epochs:
            there = self.units[name]
            given = {"node": step.target, "epoch": epoch + 1, "previous": step.source}
            self.units[name] = replace(there, belongs=None, **given)  # type: ignore[arg-type]
            self.owners[name, epoch + 1] = step.target
            self._tell(f"{name} to {step.target}, epoch {epoch + 1}: by {step.source}")
        for number in mine:
            if self.moves[number].is_open:
                self.moves[number] = replace(self.moves[number], state="moving")
        return ""

    def _why_not(
        self, step: HandOver, wiring: TreeWiring, mine: Collection[int], now_s: float
    ) -> str:
        moving = {move.unit for move in self.moves.values() if move.is_open and move.id not in mine}
        return why_not(step, self.units, self.nodes, moving, wiring, now_s)
