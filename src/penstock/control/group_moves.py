"""Groups of a join on their way between its parts: asked for, carried out, and recorded.

A move is recorded in the catalog first, then entered into the join's table of owners; the parts do
the rest, and the table says when they have. Whatever the controller was doing when it died, the
next one finds from the two how far it had come.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.channels.group_files import GroupFiles
from penstock.channels.layout import StateLayout
from penstock.control.catalog import Catalog
from penstock.control.records import MoveRecord, UnitRecord
from penstock.control.system import System
from penstock.errors import InputError, listed, suggestion
from penstock.model.group_table import GroupTable
from penstock.model.ids import FragmentId
from penstock.model.partition_groups import PartitionGroups
from penstock.model.parts import JoinSpread, parts_of

BETWEEN = ":"
"""What stands between a join and the groups that are to move."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SpreadJoin:
    """A join in parts: where each part runs, and who owns what."""

    name: str
    spread: JoinSpread
    nodes: Mapping[int, str]
    table: GroupTable

    def part_on(self, node: str) -> int:
        """The part that runs on a node, the one with most groups if there are several."""
        here = [number for number, name in self.nodes.items() if name == node]
        if not here:
            running = sorted(set(self.nodes.values()))
            raise InputError(
                f"no part of {self.name} runs on {node}",
                hint=f"Its parts run on {listed(running)}. Move one first, for example: "
                f"penstock move {self.name}_part1 {node}.",
            )
        return max(here, key=lambda number: (len(self.table.groups_of(number)), -number))

    def nodes_of(self, groups: Sequence[int]) -> list[str]:
        """The nodes that have some of these groups."""
        owners = {self.table.owners[group] for group in groups}
        return sorted({self.nodes.get(owner, "nowhere") for owner in owners})


class GroupMoves:
    """Moves groups between parts of the joins of one system; ``state`` is its state folder."""

    def __init__(self, catalog: Catalog, state: Path, system: Callable[[], System]) -> None:
        self._catalog = catalog
        self._layout = StateLayout(state)
        self._system = system

    def joins(self) -> list[SpreadJoin]:
        """All joins in parts."""
        units = {unit.name: unit for unit in self._catalog.units()}
        found = []
        for name, unit in self._system().units.items():
            spread = None if unit.fragment is None else unit.fragment.gathers
            if spread is not None:
                table = self._files(name).owners(spread)
                found.append(SpreadJoin(name, spread, _nodes(name, spread, units), table))
        return found

    def _files(self, join: str) -> GroupFiles:
        return GroupFiles(self._layout.groups(FragmentId(join)))

    def join(self, name: str) -> SpreadJoin:
        """The join of this name; raises if there is none in parts."""
        known = {join.name: join for join in self.joins()}
        if name not in known:
            hint = f"Joins in parts: {listed(known)}. {suggestion(name, known)}".strip()
            raise InputError(
                f"{name} is no join in parts",
                hint=hint if known else "Say join: {spread: 2} of its query.",
            )
        return known[name]

    def begin(
        self, written: str, node: str, reason: str, numbers: Mapping[str, object] | None
    ) -> MoveRecord:
        """Begins to move groups, as in ``pairs:3,7``, to the part on a node.

        Those that are there already stay where they are.
        """
        name, _, groups = written.partition(BETWEEN)
        join = self.join(name)
        named = sorted(PartitionGroups(("",), join.spread.groups).named(groups))
        part = join.part_on(node)
        away = [group for group in named if join.table.owners[group] != part]
        return self.give(join, away or named, part, reason, numbers)

    def give(
        self,
        join: SpreadJoin,
        groups: Sequence[int],
        part: int,
        reason: str,
        numbers: Mapping[str, object] | None = None,
    ) -> MoveRecord:
        """Begins to move groups to a part; raises where that makes no sense."""
        self._check(join, groups, part)
        row: dict[str, Any] = {
            "unit": f"{join.name}{BETWEEN}{','.join(map(str, groups))}"[:200],
            "source": ", ".join(join.nodes_of(groups))[:200],
            "target": join.nodes[part],
            "state": "moving",
            "created_s": self._catalog.now_s(),
            "reason": reason,
            "numbers": {
                **(numbers or {"by": "people"}),
                "join": join.name,
                "groups": list(groups),
                "part": part,
                "table": join.table.number,
            },
        }
        (number,) = self._catalog.add_moves([row])
        move = self._catalog.move(number)
        assert move is not None
        self._advance(move)
        return self._catalog.move(number) or move

    def _check(self, join: SpreadJoin, groups: Sequence[int], part: int) -> None:
        try:
            join.table.moved(groups, part)
        except InputError as error:
            # People know nodes, not the numbers of parts.
            raise InputError(
                error.what.replace(f"part {part} ", f"{join.nodes.get(part)} "),
                hint=error.hint or "",
            ) from None

    def carry_on(self, moves: Sequence[MoveRecord]) -> None:
        """Carries on with those of these open moves that are of groups."""
        for move in moves:
            if move.is_of_groups:
                self._advance(move)

    def _advance(self, move: MoveRecord) -> None:
        numbers: Mapping[str, Any] = move.numbers
        groups, part = numbers["groups"], numbers["part"]
        found = next((join for join in self.joins() if join.name == numbers["join"]), None)
        if found is None:
            self._end(move, "failed", f"{numbers['join']} is gone")
            return
        table = found.table
        if any(table.epochs[group] > numbers["table"] for group in groups):
            # It is in the table: groups of one move come and go together.
            if any(table.owners[group] != part for group in groups):
                self._end(move, "failed", "they were given to another node meanwhile")
            elif not set(groups) & set(table.moving):
                pauses = [table.pauses[group] for group in groups if group in table.pauses]
                self._end(move, "done", pause_s=max(pauses, default=None))
            return
        try:
            entered = self._files(found.name).propose(table.moved(groups, part))
        except InputError as error:
            self._end(move, "failed", error.what)
            return
        if entered:
            log.info("groups %s of %s go to part %d", groups, found.name, part)

    def _end(
        self, move: MoveRecord, state: str, error: str = "", pause_s: float | None = None
    ) -> None:
        """Records what came of a move; ``pause_s`` is the longest that a group was not joined."""
        now_s = self._catalog.now_s()
        ended: dict[str, object] = {"state": state, "error": error, "ended_s": now_s}
        if self._catalog.change_move(move.id, **ended, pause_s=pause_s):
            how = f": {error}" if error else f" in {now_s - move.created_s:.1f} s"
            text = f"{move.source} → {move.target} {state}{how}"
            self._catalog.tell("move", move.unit, text, move=move.id, **dict(move.numbers))


def _nodes(name: str, spread: JoinSpread, units: Mapping[str, UnitRecord]) -> dict[int, str]:
    found = {}
    for part in parts_of(name, spread):
        unit = units.get(part.id)
        if unit is not None and unit.node is not None:
            found[part.number] = unit.node
    return found
