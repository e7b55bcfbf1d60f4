"""Which nodes are waited for, and what goes back to a node that has come back: decisions, pure.

A node that comes and goes must not take its units with it each time: it has to have been up for a
while, and a unit is brought back a few times only, until it has been well for long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from penstock.control.records import MoveRecord, NodeRecord, UnitRecord

AWAITED_AT_START_S = 120.0
"""How long a node is waited for that was away when the system was started."""
AWAITED_WITH_PINS_S = 60.0
"""How long what is pinned waits for a node that falls silent."""
STEADY_AFTER_S = 30.0
"""How long a node must have been up without a break before anything goes back to it."""
STANDSTILL_S = 2.0
"""When nothing was seen for so long, nodes may have stood still as well, and be well."""
AWAITED_AFTER_STANDSTILL_S = 10.0
"""How long a node is waited for whose lease ended then: it stops what it runs and joins again."""
RETURNS_AT_MOST = 3
RETURNS_AT_ONCE = 2


@dataclass(frozen=True)
class BringBack:
    """Begin to move a unit to the node it belongs to."""

    unit: UnitRecord
    node: str
    reason: str


@dataclass(frozen=True)
class Standstill:
    """A time in which whoever decides saw nothing: it, or the whole machine, did not go on."""

    from_s: float
    until_s: float

    def may_hide(self, lease_until_s: float, now_s: float) -> bool:
        """Whether a node lost its lease in it and has not had the time to join again."""
        was_lost = self.from_s < lease_until_s <= self.until_s + STANDSTILL_S
        return was_lost and now_s < self.until_s + AWAITED_AFTER_STANDSTILL_S


def is_awaited(
    unit: UnitRecord,
    nodes: Mapping[str, NodeRecord],
    now_s: float,
    began_s: float,
    standstill: Standstill | None = None,
) -> bool:
    """Whether a unit waits for its node to come up, instead of going to another.

    All wait for a node that was away at ``began_s``: it may have been stopped with the whole system
    and be starting with it. So they do, for a moment, for one that nobody could hear in a
    standstill: an idle node joins again sooner than one with work, and would be given all of it.
    What is pinned waits for its node whenever that falls silent.

    >>> b = NodeRecord("b", 1, 1 << 30, lease_until_s=100.0)
    >>> pinned = UnitRecord("q", "fragment", 1, "b", 1, pinned="b")
    >>> [is_awaited(pinned, {"b": b}, now_s, began_s=0.0) for now_s in (99.0, 159.0, 160.0)]
    [False, True, False]
    """
    wanted = unit.pinned if unit.node is None else unit.node
    node = nodes.get(wanted or "")
    if node is None or node.is_alive(now_s):
        return False
    if node.lease_until_s <= began_s:
        return now_s < began_s + AWAITED_AT_START_S
    if standstill is not None and standstill.may_hide(node.lease_until_s, now_s):
        return True
    return node.name == unit.pinned and now_s < node.lease_until_s + AWAITED_WITH_PINS_S


def bring_back(
    units: Iterable[UnitRecord],
    alive: Mapping[str, NodeRecord],
    moves: Sequence[MoveRecord],
    now_s: float,
    may_run: Callable[[UnitRecord, str], bool] = lambda *_: True,
) -> list[BringBack]:
    """The units to bring back now, a few at a time; linear in units and moves.

    Where nodes form a tree, ``may_run`` says whether a unit gets all its inputs on a node.
    """
    moving = {move.unit for move in moves if move.is_open}
    room = RETURNS_AT_ONCE - sum(move.is_open and move.by == "return" for move in moves)
    found = []
    for unit in units:
        home = alive.get(unit.belongs or "")
        if home is None or unit.name in moving or not _may_return(unit, alive):
            continue
        if now_s - home.joined_s >= STEADY_AFTER_S and may_run(unit, home.name):
            found.append(BringBack(unit, home.name, f"node {home.name} is back"))
    return found[: max(0, room)]


def _may_return(unit: UnitRecord, alive: Mapping[str, NodeRecord]) -> bool:
    is_there = unit.node in alive and not unit.is_dropped and unit.node != unit.belongs
    can_move = unit.has_said("failed") or (unit.is_up and not unit.has_said("finished"))
    return is_there and can_move and unit.returns < RETURNS_AT_MOST
