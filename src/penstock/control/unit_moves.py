"""Moves that were asked for: looked at as things are, and begun together or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from penstock.control.catalog import Catalog
from penstock.control.live_tree import check_plan, tree_wiring
from penstock.control.records import MoveRecord, UnitRecord
from penstock.control.system import System
from penstock.errors import InputError, listed, suggestion
from penstock.model.moves import Move


def begin_moves(catalog: Catalog, system: System, wishes: Sequence[Move]) -> tuple[MoveRecord, ...]:
    """Begins the moves of one plan; raises, and begins none, if one of them makes no sense."""
    units = {unit.name: unit for unit in catalog.units()}
    moving = {move.unit for move in catalog.moves(open_only=True)}
    for wish in wishes:
        _check_move(catalog, wish, units, moving)
        moving.add(wish.unit)
    wiring = tree_wiring(catalog.nodes(), system)
    if wiring is not None:
        moves = catalog.moves(open_only=True)
        check_plan(wiring, units, moves, {wish.unit: wish.target for wish in wishes})
    now_s = catalog.now_s()
    rows = [
        {
            "unit": wish.unit,
            "source": units[wish.unit].node,
            "target": wish.target,
            "state": "preparing",
            "created_s": now_s,
            "reason": wish.reason,
            "numbers": dict(wish.numbers or {"by": "people"}),
        }
        for wish in wishes
    ]
    begun = map(catalog.move, catalog.add_moves(rows))
    return tuple(move for move in begun if move is not None)


def _check_move(
    catalog: Catalog, wish: Move, units: Mapping[str, UnitRecord], moving: set[str]
) -> None:
    names = list(units)
    if wish.unit not in units:
        hint = f"There are {listed(names)}. {suggestion(wish.unit, names)}".strip()
        raise InputError(f"no fragment {wish.unit}", hint=hint)
    now_s, nodes = catalog.now_s(), catalog.nodes()
    alive = [node.name for node in nodes if node.is_alive(now_s)]
    if wish.target not in [node.name for node in nodes]:
        raise no_node(wish.target, alive)
    if wish.target not in alive:
        raise InputError(
            f"node {wish.target} is not alive", hint=f"Those that are: {listed(alive)}."
        )
    unit = units[wish.unit]
    if unit.node == wish.target:
        raise InputError(
            f"{wish.unit} already runs on {wish.target}", hint="Nothing needs to be done."
        )
    if unit.name in moving:
        raise InputError(f"{wish.unit} is being moved already", hint="Wait until it is done.")
    if unit.node is None or unit.state == "finished" or unit.is_dropped:
        raise InputError(f"{wish.unit} is not running", hint="Only what runs can be moved.")


def no_node(name: str, names: Iterable[str]) -> InputError:
    """The error for a node that is not known."""
    known = list(names)
    hint = f"There are {listed(known)}. {suggestion(name, known)}".strip()
    return InputError(f"no node {name}", hint=hint)
