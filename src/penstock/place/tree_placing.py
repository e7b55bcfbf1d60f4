"""Where units of a tree of nodes may run, and a first placement that keeps to it.

Streams flow from child to parent only, so a unit may run only where all its inputs pass: on the
node where they meet, or above.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter

from penstock.errors import InputError
from penstock.model.node_tree import NodeTree


@dataclass(frozen=True)
class TreeWiring:
    """What flows where in a tree: for every unit the streams it reads, with the units behind them.

    ``attached`` are the units that bring streams in, each with the node at which the rows come in.

    >>> wiring = TreeWiring(
    ...     NodeTree({"root": None, "a": "root", "b": "root"}),
    ...     {"m1": {}, "m2": {}, "f": {"m1": "m1"}, "g": {"f": "f", "m2": "m2"}},
    ...     {"m1": "a", "m2": "b"},
    ... )
    >>> wiring.path("f", {}), wiring.path("g", {"f": "a"})
    (('a', 'root'), ('root',))
    >>> wiring.find_missing("g", "b", {"f": "a"})
    ('f', 'a')
    """

    nodes: NodeTree
    reads: Mapping[str, Mapping[str, str]]
    attached: Mapping[str, str]

    def path(self, unit: str, places: Mapping[str, str | None]) -> tuple[str, ...]:
        """The nodes where a unit may run, the lowest first; none while an input has no place."""
        if unit in self.attached:
            return self.nodes.path_up(self.attached[unit])
        origins = [self.origin(maker, places) for maker in self.reads.get(unit, {}).values()]
        known = [origin for origin in origins if origin is not None]
        return self.nodes.common_path(known) if known and len(known) == len(origins) else ()

    def origin(self, unit: str, places: Mapping[str, str | None]) -> str | None:
        """The node where the stream of a unit begins: where it runs, or comes in."""
        return places.get(unit) or self.attached.get(unit)

    def find_missing(
        self, unit: str, node: str, places: Mapping[str, str | None]
    ) -> tuple[str, str] | None:
        """A stream that a unit would miss on a node, and where that begins; None if all pass."""
        if unit in self.attached:
            home = self.attached[unit]
            return None if self.nodes.passes(home, node) else (unit, home)
        for stream, maker in self.reads.get(unit, {}).items():
            origin = self.origin(maker, places)
            if origin is not None and not self.nodes.passes(origin, node):
                return stream, origin
        return None

    def check_place(self, unit: str, node: str, places: Mapping[str, str | None]) -> None:
        """Raises, naming the stream that does not pass, unless a unit may run on a node."""
        missing = self.find_missing(unit, node, places)
        if missing is not None:
            stream, origin = missing
            above = ", ".join(self.path(unit, places)) or "none"
            raise InputError(
                f"{unit} cannot run on {node}: {stream} from {origin} does not pass there",
                hint=f"Streams flow to the parent only; it can run on {above}.",
            )

    def readers(self, unit: str) -> tuple[str, ...]:
        """The units that read the stream of a unit."""
        return tuple(name for name, read in self.reads.items() if unit in read.values())

    def in_order(self, units: Iterable[str]) -> list[str]:
        """Units, none before those that it reads."""
        wanted = dict.fromkeys(units)
        sorter: TopologicalSorter[str] = TopologicalSorter()
        for unit in wanted:
            sorter.add(
                unit, *(name for name in self.reads.get(unit, {}).values() if name in wanted)
            )
        return list(sorter.static_order())


def place_in_tree(
    wiring: TreeWiring,
    units: Sequence[str],
    places: Mapping[str, str | None],
    pinned: Mapping[str, str],
    wished: Mapping[str, str],
) -> dict[str, str]:
    """A node for each of the units, where all its inputs pass; pins hold or are refused.

    Where its wish does not pass, a unit goes as far down as its inputs and its readers' pins allow.

    >>> wiring = TreeWiring(
    ...     NodeTree({"root": None, "a": "root", "b": "root"}),
    ...     {"m": {}, "f": {"m": "m"}, "g": {"f": "f"}},
    ...     {"m": "a"},
    ... )
    >>> place_in_tree(wiring, ["f", "g"], {"m": "a"}, {}, {"f": "b", "g": "root"})
    {'f': 'a', 'g': 'root'}
    >>> place_in_tree(wiring, ["f", "g"], {"m": "a"}, {"g": "a"}, {"f": "root"})
    {'f': 'a', 'g': 'a'}
    """
    found = dict(places)
    chosen: dict[str, str] = {}
    ceilings = _ceilings(wiring, units, pinned)
    for unit in wiring.in_order(units):
        if unit in pinned:
            wiring.check_place(unit, pinned[unit], found)
            chosen[unit] = found[unit] = pinned[unit]
            continue
        path = wiring.path(unit, found)
        below = [node for node in path if _is_below_all(wiring.nodes, node, ceilings[unit])]
        if path:
            node = wished.get(unit, "")
            chosen[unit] = found[unit] = node if node in below else path[0]
    return {unit: chosen[unit] for unit in units if unit in chosen}


def _is_below_all(nodes: NodeTree, node: str, ceilings: Iterable[str]) -> bool:
    return all(nodes.passes(node, ceiling) for ceiling in ceilings)


def _ceilings(
    wiring: TreeWiring, units: Sequence[str], pinned: Mapping[str, str]
) -> dict[str, frozenset[str]]:
    """The nodes that the stream of each unit has to pass, for readers that are pinned."""
    found: dict[str, set[str]] = {unit: set() for unit in units}
    for unit in reversed(wiring.in_order(units)):
        own = {pinned[unit]} if unit in pinned else found[unit]
        for maker in wiring.reads.get(unit, {}).values():
            if maker in found:
                found[maker] |= own
    return {unit: frozenset(nodes) for unit, nodes in found.items()}
