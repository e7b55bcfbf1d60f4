"""Which node takes a unit that has none: the one with least to do, or the nearest one in a tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from penstock.control.records import NodeRecord, UnitRecord
from penstock.place.tree_placing import TreeWiring


class NodeChoice:
    """Chooses among living nodes, and counts what it gives to them.

    ``load`` is how much each has to do; ``waiting`` are units that others may run now. In a tree a
    unit goes where all its inputs pass, and all that read it still get its stream; one whose node
    fell silent goes to the nearest such node, above rather than below, a new one as far down as it
    can.
    """

    def __init__(
        self,
        load: dict[str, float],
        alive: Mapping[str, NodeRecord],
        wiring: TreeWiring | None,
        units: Sequence[UnitRecord],
        waiting: Sequence[UnitRecord],
    ) -> None:
        self._load = load
        self._alive = alive
        self._wiring = wiring
        self._places = {unit.name: unit.node for unit in units}
        self._leaving = {unit.name for unit in waiting if unit.node not in alive}

    def in_order(self, units: Sequence[UnitRecord]) -> list[UnitRecord]:
        """The units; in a tree none before those that it reads."""
        if self._wiring is None:
            return list(units)
        by_name = {unit.name: unit for unit in units}
        return [by_name[name] for name in self._wiring.in_order(by_name)]

    def take(self, unit: UnitRecord) -> str | None:
        """A node for a unit, from now on busier; None if there is none now."""
        wishes = (unit.pinned, unit.planned if unit.node is None else None)
        open_to_it = self._open_to(unit)
        wished = next((name for name in wishes if name in open_to_it), None)
        node = wished or next(iter(open_to_it), None)
        if node is not None:
            self._load[node] += 1 / self._alive[node].cores
            self._places[unit.name] = node
            self._leaving.discard(unit.name)
        return node

    def may_run(self, unit: UnitRecord, node: str) -> bool:
        """Whether a unit gets all its inputs on a node, and its readers what it makes."""
        if self._wiring is None:
            return True
        return node in self._wiring.path(unit.name, self._places) and self._reaches(unit, node)

    def find_misplaced(
        self, units: Sequence[UnitRecord], moving: set[str]
    ) -> Iterator[tuple[UnitRecord, str, str]]:
        """Units that run where an input does not pass, a node where all do, and that stream."""
        if self._wiring is None:
            return
        for unit in units:
            if (
                unit.node is None
                or unit.node not in self._alive
                or not unit.is_up
                or unit.is_dropped
            ):
                continue
            if unit.has_said("finished") or {unit.name, *self._makers(unit.name)} & moving:
                continue
            missing = self._wiring.find_missing(unit.name, unit.node, self._places)
            fed = [
                node for node in self._wiring.path(unit.name, self._places) if node in self._alive
            ]
            if missing is not None and fed:
                yield unit, fed[0], missing[0]

    def _makers(self, unit: str) -> tuple[str, ...]:
        assert self._wiring is not None
        return tuple(self._wiring.reads.get(unit, {}).values())

    def _open_to(self, unit: UnitRecord) -> list[str]:
        """The living nodes that may take a unit, the best first."""
        if self._wiring is None:
            return sorted(self._load, key=lambda name: (self._load[name], name))
        path = [node for node in self._wiring.path(unit.name, self._places) if node in self._alive]
        found = [node for node in path if self._reaches(unit, node)]
        parents = self._wiring.nodes.parents
        known = unit.node is not None and unit.node in parents
        above = self._wiring.nodes.path_up(str(unit.node)) if known else ()
        return [*(node for node in found if node in above), *(n for n in found if n not in above)]

    def _reaches(self, unit: UnitRecord, node: str) -> bool:
        """Whether the stream of a unit on this node gets to all that read it where they are."""
        assert self._wiring is not None
        places = [
            self._places.get(reader)
            for reader in self._wiring.readers(unit.name)
            if reader not in self._leaving
        ]
        return all(place is None or self._wiring.nodes.passes(node, place) for place in places)
