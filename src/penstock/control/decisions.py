"""What the controller decides, given what the catalog says: no clock, no catalog, no effects.

A unit has one owner at a time, numbered by its epoch. Giving it away means raising the epoch; the
next owner waits until the former one has stopped, or its lease has run out. Whatever a former owner
still does after that is refused where it would count, so a decision here can be late or repeated
without doing harm.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from penstock.control.node_choice import NodeChoice
from penstock.control.records import MoveRecord, NodeRecord, UnitRecord
from penstock.control.returning import BringBack, Standstill, bring_back, is_awaited
from penstock.place.tree_placing import TreeWiring

RESTARTS_AT_MOST = 3
HEALTHY_AFTER_S = 600.0
"""A unit that has run for so long is given all its restarts again."""
PREPARATION_AT_MOST_S = 30.0


@dataclass(frozen=True)
class Assign:
    """Give a unit to a node; ``lost_s`` is when its owner's lease ended, if that is why.

    ``belongs`` is the node it goes back to; None if it stays where it is given.
    """

    unit: UnitRecord
    node: str
    reason: str
    is_restart: bool = False
    lost_s: float | None = None
    belongs: str | None = None


@dataclass(frozen=True)
class ChangeMove:
    """Record how far a move has come."""

    move: MoveRecord
    state: str
    error: str = ""


@dataclass(frozen=True)
class Forgive:
    """Forget that a unit had to be started again and brought back: it has long been well."""

    unit: UnitRecord


@dataclass(frozen=True)
class Reroute:
    """Begin to move a unit up a tree, to where all its inputs pass again."""

    unit: UnitRecord
    node: str
    reason: str


Instruction = Assign | ChangeMove | Forgive | BringBack | Reroute


def decide(
    units: Sequence[UnitRecord],
    nodes: Sequence[NodeRecord],
    moves: Sequence[MoveRecord],
    now_s: float,
    began_s: float = -math.inf,
    wiring: TreeWiring | None = None,
    standstill: Standstill | None = None,
    is_negotiated: bool = False,
) -> list[Instruction]:
    """What to do now; linear in units, nodes and moves, but for the choice of nodes.

    ``began_s`` is when whoever decides has begun to: nodes that were away then may be starting.
    ``wiring`` is what flows where, if the nodes form a tree; if it is balanced by neighbours
    (``is_negotiated``), what nobody has pinned is left to them once it runs. ``standstill`` is the
    last time in which nothing was seen.
    """
    alive = {node.name: node for node in nodes if node.is_alive(now_s)}
    by_name = {unit.name: unit for unit in units}
    # Others have to wait: two owners ago somebody may be running it still.
    free = {unit.name for unit in units if _is_left_by_former(unit, nodes, now_s)}
    moving = {move.unit for move in moves if move.is_open}
    done: list[Instruction] = []
    for move in moves:
        if move.is_open and move.unit not in by_name:
            done.append(ChangeMove(move, "failed", f"{move.unit} is gone"))
        elif move.is_open and move.error and _is_kept(move, by_name[move.unit], free):
            done += _kept(move, by_name[move.unit], alive)
        elif move.is_open and move.unit in free:
            done += _advanced(move, by_name[move.unit], alive, now_s)
    known = {node.name: node for node in nodes}
    open_to_all = [
        unit
        for unit in units
        if unit.name in free and not is_awaited(unit, known, now_s, began_s, standstill)
    ]
    choice = NodeChoice(_load(units, alive), alive, wiring, units, open_to_all)
    for unit in choice.in_order(open_to_all):
        leases = [known[name].lease_until_s for name in (unit.node,) if name in known]
        # One that was given back ended when somebody looked.
        done += _placed(unit, alive, choice, moving, max(leases, default=0.0) or now_s)
    settled = [unit for unit in units if unit.name in free]
    returning = [unit for unit in settled if unit.pinned is not None or not is_negotiated]
    done += bring_back(returning, alive, moves, now_s, choice.may_run)
    done += [
        Reroute(unit, node, f"{stream} does not pass {unit.node}")
        for unit, node, stream in choice.find_misplaced(settled, moving)
    ]
    return done + [Forgive(unit) for unit in units if _is_well(unit, now_s)]


def silence_text(node: str) -> str:
    """Why something leaves a node whose lease has run out.

    >>> silence_text("a")
    'node a fell silent'
    """
    return f"node {node} fell silent"


def _is_well(unit: UnitRecord, now_s: float) -> bool:
    """Whether it had to be started again or brought back, and has been running for long since."""
    if not (unit.restarts or unit.returns) or not unit.is_up or unit.since_s is None:
        return False
    return now_s - unit.since_s >= HEALTHY_AFTER_S


def _is_kept(move: MoveRecord, unit: UnitRecord, free: set[str]) -> bool:
    """Whether the unit was given to the target, but the source could not stop it."""
    return unit.name not in free and unit.node == move.target and unit.previous == move.source


def _kept(move: MoveRecord, unit: UnitRecord, alive: Mapping[str, NodeRecord]) -> list[Instruction]:
    """The target has not begun and never will: the source gets it back, and tries on."""
    failed = ChangeMove(move, "failed", move.error)
    if unit.is_dropped or move.source not in alive:
        return [failed]
    return [_back(move, unit, move.error), failed]


def _back(move: MoveRecord, unit: UnitRecord, why: str) -> Assign:
    """Gives the unit to the source of its move again; what was on its way home still is."""
    home = move.target if move.by == "return" else unit.belongs
    belongs = None if home == move.source else home
    return Assign(unit, move.source, f"back to {move.source}: {why}", belongs=belongs)


def _load(units: Iterable[UnitRecord], alive: Mapping[str, NodeRecord]) -> dict[str, float]:
    """How much each living node has to do, as units for each core."""
    load = dict.fromkeys(alive, 0.0)
    for unit in units:
        if unit.node in load and not unit.has_said("finished"):
            load[unit.node] += 1 / alive[unit.node].cores
    return load


def _placed(
    unit: UnitRecord,
    alive: Mapping[str, NodeRecord],
    choice: NodeChoice,
    moving: set[str],
    lost_s: float,
) -> list[Instruction]:
    """A node for a unit that has none, whose node is gone, or that has failed and may try again."""
    if not alive or unit.has_said("finished") or unit.is_dropped or unit.is_unread:
        return []
    if unit.node is None:
        return _given(unit, choice, "new")
    if unit.node not in alive:
        return _given(unit, choice, silence_text(unit.node), lost_s)
    if unit.has_said("failed"):
        if unit.name in moving or unit.restarts >= RESTARTS_AT_MOST:
            return []
        why = f"started again after: {unit.error}"
        return [Assign(unit, unit.node, why, is_restart=True, belongs=unit.belongs)]
    if unit.released_epoch >= unit.epoch:
        why = f"node {unit.node} had stopped it"
        return [Assign(unit, unit.node, why, belongs=unit.belongs)]
    return []


def _given(
    unit: UnitRecord, choice: NodeChoice, reason: str, lost_s: float | None = None
) -> list[Instruction]:
    node = choice.take(unit)
    if node is None:
        return []
    home = unit.belongs or (unit.pinned if unit.node is None else unit.node)
    is_home = node in (home, unit.pinned)
    return [Assign(unit, node, reason, lost_s=lost_s, belongs=None if is_home else home)]


def _advanced(
    move: MoveRecord, unit: UnitRecord, alive: Mapping[str, NodeRecord], now_s: float
) -> list[Instruction]:
    """The next step of a move. The unit stays where it is until its target is ready for it."""
    if unit.is_dropped:
        return [ChangeMove(move, "failed", f"{unit.name} is being dropped")]
    if move.state == "preparing" and move.by == "neighbours":
        return _negotiated(move, unit, alive, now_s)
    if move.state == "preparing":
        return _prepared(move, unit, alive, now_s)
    if unit.node == move.target and unit.is_up:
        return [ChangeMove(move, "done")]
    if unit.node == move.target and unit.has_said("failed"):
        # Where it fell silent nobody sends anything back to.
        goes_back = move.source in alive and move.by not in ("failover", "neighbours")
        back = [_back(move, unit, unit.error)] if goes_back else []
        return [*back, ChangeMove(move, "failed", unit.error)]
    if unit.node != move.target:
        why = f"{unit.name} was given to {unit.node} meanwhile"
        return [ChangeMove(move, "failed", why)]
    return []


def _negotiated(
    move: MoveRecord, unit: UnitRecord, alive: Mapping[str, NodeRecord], now_s: float
) -> list[Instruction]:
    """The owner carries it through, unless it is gone, or has been another life's."""
    if unit.node == move.target:
        return [ChangeMove(move, "moving")]
    if unit.node != move.source or move.source not in alive:
        return [ChangeMove(move, "failed", f"{unit.name} has left {move.source} meanwhile")]
    if now_s - move.created_s > PREPARATION_AT_MOST_S:
        return [ChangeMove(move, "failed", f"{move.source} did not go on with it")]
    return []


def _prepared(
    move: MoveRecord, unit: UnitRecord, alive: Mapping[str, NodeRecord], now_s: float
) -> list[Instruction]:
    if unit.node == move.target:
        # Whoever gave it there did not come to say so.
        return [ChangeMove(move, "moving")]
    if move.target not in alive:
        return [ChangeMove(move, "failed", silence_text(move.target))]
    if unit.node != move.source:
        return [ChangeMove(move, "failed", f"{unit.name} has left {move.source} meanwhile")]
    if unit.has_said("finished"):
        return [ChangeMove(move, "failed", f"{unit.name} has finished meanwhile")]
    if move.error:
        return [ChangeMove(move, "failed", move.error)]
    if move.is_warm or now_s - move.created_s > PREPARATION_AT_MOST_S:
        return [Assign(unit, move.target, move.reason or "moved"), ChangeMove(move, "moving")]
    return []


def may_start(unit: UnitRecord, nodes: Iterable[NodeRecord], now_s: float) -> bool:
    """Whether the owner of a unit may start it: its former owner has stopped or lost its lease.

    Once an owner has said that it stopped, nobody waits for it any more: it needs a new epoch.
    """
    return unit.released_epoch < unit.epoch and _is_left_by_former(unit, nodes, now_s)


def _is_left_by_former(unit: UnitRecord, nodes: Iterable[NodeRecord], now_s: float) -> bool:
    if unit.previous is None or unit.previous == unit.node:
        return True
    if unit.released_epoch >= unit.epoch - 1:
        return True
    former = next((node for node in nodes if node.name == unit.previous), None)
    return former is None or not former.is_alive(now_s)
