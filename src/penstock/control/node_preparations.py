"""Moves to a node that it gets ready for, so that they pause their units for less."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass

from penstock.control.node_instructions import CancelPreparation, PrepareMove, TellMove
from penstock.control.records import MoveRecord, UnitRecord


@dataclass
class Preparation:
    """A unit that was, or is being, got ready for a move to this node."""

    unit: str
    is_under_way: bool = True
    error: str = ""


class Preparations:
    """Gets ready for every move to ``node`` once, and says what came of it until that is known."""

    def __init__(self, node: str, next_number: Callable[[], int]) -> None:
        self._node = node
        self._next_number = next_number
        self._by_move: dict[int, Preparation] = {}
        self._under_way: dict[int, int] = {}

    def __len__(self) -> int:
        """How many are under way."""
        return len(self._under_way)

    def is_under_way(self, unit: str) -> bool:
        """Whether a unit is being got ready right now."""
        return any(
            preparation.unit == unit and preparation.is_under_way
            for preparation in self._by_move.values()
        )

    def follow(
        self, moves: Iterable[MoveRecord], units: Mapping[str, UnitRecord], kept: Set[str]
    ) -> list[PrepareMove | CancelPreparation | TellMove]:
        """What to do about the moves that are open; units that are ``kept`` run here, or will."""
        found: list[PrepareMove | CancelPreparation | TellMove] = []
        known = {move.id: move for move in moves}
        for move in known.values():
            mine = move.target == self._node and move.state == "preparing"
            if mine and not move.is_warm and move.unit in units:
                found += self._get_ready(move, units[move.unit])
        for number, preparation in tuple(self._by_move.items()):
            if number not in known and not preparation.is_under_way:
                del self._by_move[number]
                if preparation.unit not in kept:
                    found.append(CancelPreparation(self._next_number(), preparation.unit))
        return found

    def _get_ready(self, move: MoveRecord, unit: UnitRecord) -> list[PrepareMove | TellMove]:
        known = self._by_move.get(move.id)
        if known is None:
            number = self._next_number()
            self._by_move[move.id] = Preparation(move.unit)
            self._under_way[number] = move.id
            return [PrepareMove(number, move, unit)]
        if known.is_under_way or move.error:
            return []
        # It was not possible to say so at the time.
        return [TellMove(0, move.id, known.error)]

    def answer(self, number: int, error: str) -> TellMove | None:
        """What to say of a preparation that has come to its end; None if it is not one of these."""
        move = self._under_way.pop(number, None)
        if move is None:
            return None
        preparation = self._by_move[move]
        preparation.is_under_way, preparation.error = False, error
        return TellMove(0, move, error)
