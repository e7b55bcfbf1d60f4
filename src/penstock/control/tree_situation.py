"""What a node of a tree knows of itself, and what of it may leave: from records, pure.

What a node needs of the catalog is its own: which units it has and in which epoch, which of its
links their inputs come through. It looks at nobody's load but its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.balance.hierarchy.measures import Capacity
from penstock.balance.hierarchy.settings import HierarchySettings, Utilisation
from penstock.balance.hierarchy.state import HeldOperator, LocalView, measure_sizes
from penstock.balance.hierarchy.transfers import PlacedOperators, Transfer
from penstock.control.records import MoveRecord, NodeRecord, UnitRecord
from penstock.control.tree_sizes import MeasuredSizes
from penstock.model.node_tree import NodeTree
from penstock.model.tree_network import TreeInput, TreeNetwork, TreeOperator
from penstock.place.tree_placing import TreeWiring

_BESIDES = "\0besides"


@dataclass(frozen=True)
class TreeSituation:
    """The records that a node has read, and what it has measured, at one time.

    ``life`` is its own, empty while it has no lease. ``bound`` are units that may not be handed on
    while they run. ``catalog_s`` is the catalog's time. ``budget_bytes`` is the memory that counts
    as all of any node, if it is not the node's own.
    """

    node: str
    life: str
    wiring: TreeWiring
    units: Mapping[str, UnitRecord]
    nodes: Mapping[str, NodeRecord]
    moves: tuple[MoveRecord, ...] = ()
    sizes: MeasuredSizes = field(default_factory=MeasuredSizes)
    bound: frozenset[str] = frozenset()
    catalog_s: float = 0.0
    budget_bytes: int | None = None

    @property
    def tree(self) -> NodeTree:
        return self.wiring.nodes

    @property
    def neighbours(self) -> tuple[str, ...]:
        """The parent and the children that are alive, as far as the node knows."""
        return tuple(
            name
            for name in self.tree.neighbours(self.node)
            if name in self.nodes and self.nodes[name].is_alive(self.catalog_s)
        )

    def capacity(self, node: str) -> Capacity:
        """What a node has of which sizes are percent."""
        known = self.nodes[node]
        return Capacity(known.cores, self.budget_bytes or known.memory_bytes)

    def owns(self, unit: str, node: str) -> bool:
        """Whether a unit belongs to a node."""
        return unit in self.units and self.units[unit].node == node


def may_be_given(unit: UnitRecord, situation: TreeSituation) -> bool:
    """Whether a unit of a node may be handed to a neighbour as it is now."""
    if unit.kind != "fragment" or not unit.is_up or unit.has_said("finished") or unit.is_dropped:
        return False
    if unit.pinned is not None or unit.name in situation.bound:
        return False
    return not any(move.unit == unit.name and move.is_open for move in situation.moves)


def look_around(
    situation: TreeSituation, settings: HierarchySettings, promised: Mapping[str, float]
) -> LocalView:
    """The protocol's view of a node: utilisation, operators, and what may leave it.

    What has come but was not measured here yet counts as much as was ``promised``.
    """
    mine = [
        unit
        for unit in situation.units.values()
        if unit.node == situation.node and unit.kind == "fragment" and not unit.is_dropped
    ]
    measured = situation.sizes
    cpu = {unit.name: measured.cpu.get(unit.name, 0.0) for unit in mine}
    memory = {unit.name: measured.memory.get(unit.name, 0.0) for unit in mine}
    for unit in mine:
        if unit.name not in measured.cpu:
            cpu[unit.name] = memory[unit.name] = promised.get(unit.name, 0.0)
    besides = {
        _BESIDES: measured.cpu_besides if settings.utilisation != Utilisation.MEMORY else 0.0
    }
    used, sizes = measure_sizes({**memory, _BESIDES: 0.0}, {**cpu, **besides}, settings.utilisation)
    operators = tuple(HeldOperator(unit.name, sizes[unit.name], unit.epoch) for unit in mine)
    return LocalView(used, operators, _transfers(situation, settings, mine))


def _transfers(
    situation: TreeSituation, settings: HierarchySettings, mine: list[UnitRecord]
) -> tuple[Transfer, ...]:
    """What may move to a neighbour that is there: nothing in it is bound to the node."""
    network = _own_network(situation, mine)
    if network is None:
        return ()
    free = {unit.name for unit in mine if may_be_given(unit, situation)}
    near = set(situation.neighbours)
    found = PlacedOperators(network, settings.rule).transfers(situation.node)
    return tuple(
        transfer
        for transfer in found
        if transfer.to in near and free.issuperset(transfer.operators)
    )


def _own_network(situation: TreeSituation, mine: list[UnitRecord]) -> TreeNetwork | None:
    """The node's own fragments, and where their inputs come from; None if there are none.

    One whose input does not pass here, while that is being mended, is left out, with its readers.
    """
    wiring, node = situation.wiring, situation.node
    places = {name: unit.node for name, unit in situation.units.items()}
    own = [unit.name for unit in mine]
    inputs: dict[str, TreeInput] = {}
    operators: dict[str, TreeOperator] = {}
    for name in wiring.in_order(own):
        makers = wiring.reads.get(name, {}).values()
        origins = {
            maker: wiring.origin(maker, places) for maker in makers if maker not in operators
        }
        if not makers or not all(
            origin is not None and maker not in own and situation.tree.passes(origin, node)
            for maker, origin in origins.items()
        ):
            continue
        inputs |= {maker: TreeInput(maker, str(origin)) for maker, origin in origins.items()}
        operators[name] = TreeOperator(name, tuple(makers), 0.0, node)
    if not operators:
        return None
    return TreeNetwork(situation.tree, tuple(inputs.values()), tuple(operators.values()))
