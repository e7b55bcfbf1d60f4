"""The tree that the nodes of a running system form, and what flows in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from penstock.control.records import MoveRecord, NodeRecord, UnitRecord
from penstock.control.system import System
from penstock.errors import InputError
from penstock.model.node_tree import NodeTree, tree_of
from penstock.place.tree_placing import TreeWiring


def node_tree(nodes: Iterable[NodeRecord]) -> NodeTree | None:
    """The tree that nodes form; None where they form none."""
    return tree_of({node.name: node.parent for node in nodes})


def tree_wiring(nodes: Iterable[NodeRecord], system: System) -> TreeWiring | None:
    """What flows where in the tree of a system; None where its nodes form none."""
    tree = node_tree(nodes)
    if tree is None:
        return None
    makers = {stream: unit.name for stream, unit in system.makers.items()}
    reads = {
        unit.name: {stream: makers[stream] for stream in unit.reads if stream in makers}
        for unit in system.units.values()
    }
    intakes = [unit for unit in system.units.values() if unit.fragment is None]
    # One from before there was a tree comes in at the root: whoever reads it runs there.
    attached = {
        unit.name: tree.root if unit.on is None or unit.on not in tree.parents else unit.on
        for unit in intakes
    }
    return TreeWiring(tree, reads, attached)


def check_attached(nodes: Iterable[NodeRecord], system: System, submission: int) -> None:
    """Raises if a submission brings in a stream that is attached to no node of a tree."""
    if node_tree(nodes) is None:
        return
    for unit in system.units.values():
        if unit.submission == submission and unit.fragment is None and unit.on is None:
            raise InputError(
                f"stream {unit.name} is attached to no node of the tree",
                hint="Say where its rows come in: on: NODE.",
            )


def check_plan(
    wiring: TreeWiring,
    units: Mapping[str, UnitRecord],
    moves: Sequence[MoveRecord],
    wishes: Mapping[str, str],
) -> None:
    """Raises if one of these moves, all done, leaves a unit where an input does not pass.

    What is under way may end on either node.
    """
    places = {name: unit.node for name, unit in units.items()}
    wanted = {**places, **wishes}
    targets = {move.unit: move.target for move in moves if move.is_open}
    for name in dict.fromkeys([*wishes, *(r for wish in wishes for r in wiring.readers(wish))]):
        for node in {wanted.get(name), targets.get(name)} - {None}:
            for open_ends in ({}, targets):
                wiring.check_place(name, str(node), {**wanted, **open_ends})
