"""The one record of who owns which operator: changed by compare-and-set, or not at all."""

from __future__ import annotations

from penstock.balance.hierarchy.instructions import ChangeOwner
from penstock.balance.hierarchy.transfers import PlacedOperators


class Ownership:
    """Owners and epochs of all operators.

    A change counts only if every operator still has the epoch it is asked for with, belongs to who
    asks, and every operator receives its inputs afterwards. Epochs grow with every change, so of
    two changes that were asked for in the same situation at most one happens.
    """

    def __init__(self, placed: PlacedOperators) -> None:
        self.placed = placed
        self._epochs: dict[str, int] = {}

    def epoch(self, operator: str) -> int:
        """How often the operator has changed its owner."""
        return self._epochs.get(operator, 0)

    def change(self, step: ChangeOwner) -> bool:
        """Carries out the whole step and says so, or does nothing."""
        names = tuple(name for name, _ in step.epochs)
        is_current = all(
            self.placed.node_of(name) == step.source and self.epoch(name) == epoch
            for name, epoch in step.epochs
        )
        if not is_current or step.target not in self.placed.nodes.neighbours(step.source):
            return False
        self.placed.move(names, step.target)
        if self.placed.find_misplaced(names) is not None:
            self.placed.move(names, step.source)
            return False
        self._count(names)
        return True

    def take_over(self, node: str, target: str) -> tuple[str, ...]:
        """Gives everything of a node that died to another, as whoever watches over leases does."""
        names = self.placed.on(node)
        self.placed.move(names, target)
        self._count(names)
        return names

    def _count(self, operators: tuple[str, ...]) -> None:
        for name in operators:
            self._epochs[name] = self.epoch(name) + 1
