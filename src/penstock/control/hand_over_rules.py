"""When a unit may change hands by what neighbours of a tree agreed: one rule, pure.

Whoever records a change asks it of the records as they are in the very transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from penstock.control.records import NodeRecord, UnitRecord
from penstock.place.tree_placing import TreeWiring


@dataclass(frozen=True)
class HandOver:
    """Units that their owner gives to a neighbour, all of them or none.

    ``life`` is the owner's incarnation, ``epochs`` those with which it owns them, ``until_s`` the
    end of what was agreed, by the catalog's clock.
    """

    source: str
    life: str
    target: str
    epochs: tuple[tuple[str, int], ...]
    until_s: float

    @property
    def units(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.epochs)


def why_not(
    step: HandOver,
    units: Mapping[str, UnitRecord],
    nodes: Mapping[str, NodeRecord],
    moving: Collection[str],
    wiring: TreeWiring,
    now_s: float,
) -> str:
    """Why units may not change hands; empty if they may. ``moving`` are on another move."""
    return (
        _who(step, nodes, now_s)
        or _what(step, units, nodes, moving, now_s)
        or _where(step, units, wiring)
    )


def _who(step: HandOver, nodes: Mapping[str, NodeRecord], now_s: float) -> str:
    source, target = nodes.get(step.source), nodes.get(step.target)
    if now_s > step.until_s:
        return "what was agreed holds no longer"
    if source is None or source.incarnation != step.life or not source.is_alive(now_s):
        return f"{step.source} has lost its lease"
    if target is None or not target.is_alive(now_s):
        return f"{step.target} is not alive"
    if source.parent != target.name and target.parent != source.name:
        return f"{step.target} is no neighbour of {step.source}"
    return ""


def _what(
    step: HandOver,
    units: Mapping[str, UnitRecord],
    nodes: Mapping[str, NodeRecord],
    moving: Collection[str],
    now_s: float,
) -> str:
    for name, epoch in step.epochs:
        unit = units.get(name)
        if unit is None or unit.node != step.source or unit.epoch != epoch or unit.is_dropped:
            return f"{name} is not {step.source}'s any more"
        if name in moving:
            return f"{name} is being moved already"
        former = nodes.get(unit.previous or "")
        is_left = unit.released_epoch >= epoch - 1 or unit.previous in (None, unit.node)
        if not is_left and former is not None and former.is_alive(now_s):
            return f"{name} has not been left by {unit.previous} yet"
    return ""


def _where(step: HandOver, units: Mapping[str, UnitRecord], wiring: TreeWiring) -> str:
    """Every unit that moves, and every reader of one, gets its inputs afterwards."""
    places = {name: unit.node for name, unit in units.items()} | dict.fromkeys(
        step.units, step.target
    )
    for name in (*step.units, *(reader for unit in step.units for reader in wiring.readers(unit))):
        node = places.get(name)
        missing = None if node is None else wiring.find_missing(name, node, places)
        if missing is not None:
            return f"{name} on {node} would not get {missing[0]}"
    return ""
