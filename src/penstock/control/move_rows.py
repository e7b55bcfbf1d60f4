"""What the catalog has of moves: which are under way, and how units change hands by them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sa

from penstock.control.catalog_database import PREPARING, CatalogDatabase, count_change, number_of
from penstock.control.hand_over_rules import HandOver, why_not
from penstock.control.records import MoveRecord, NodeRecord, UnitRecord
from penstock.control.tables import moves, nodes, units
from penstock.place.tree_placing import TreeWiring

_KEPT_MOVES = 1_000
_HANDING = PREPARING + 1
OPEN_STATES = ("preparing", "moving")


class MoveRows(CatalogDatabase):
    """The part of a catalog that is about moves."""

    def moves(self, open_only: bool = False, last: int = 100) -> tuple[MoveRecord, ...]:
        """The latest moves, or all that are open, oldest first."""
        asked = sa.select(moves).order_by(moves.c.id.desc())
        asked = asked.where(moves.c.state.in_(OPEN_STATES)) if open_only else asked.limit(last)
        with self._read() as connection:
            rows = connection.execute(asked).mappings().all()
        return tuple(MoveRecord(**row) for row in reversed(rows))

    def move(self, number: int) -> MoveRecord | None:
        """The move with this number."""
        with self._read() as connection:
            rows = connection.execute(sa.select(moves).where(moves.c.id == number)).mappings()
            return next((MoveRecord(**row) for row in rows), None)

    def add_moves(self, made: list[dict[str, Any]]) -> list[int]:
        """Adds the moves of one plan, all or none; their numbers."""
        with self._begin() as connection:
            added = [connection.execute(sa.insert(moves).values(**move)) for move in made]
            numbers = [number_of(inserted) for inserted in added]
            is_old = moves.c.id <= max(numbers, default=0) - _KEPT_MOVES
            connection.execute(sa.delete(moves).where(is_old, moves.c.state.not_in(OPEN_STATES)))
            count_change(connection)
            return numbers

    def begin_hand_over(
        self, step: HandOver, wiring: TreeWiring, made: list[dict[str, Any]]
    ) -> tuple[list[int], str]:
        """Adds the moves of what neighbours agreed, all or none; their numbers, or why not."""
        with self._begin() as connection:
            why = self._why_not(connection, step, wiring, ())
            added = [] if why else [connection.execute(sa.insert(moves).values(**m)) for m in made]
            count_change(connection)
            return [number_of(inserted) for inserted in added], why

    def hand_over(self, step: HandOver, wiring: TreeWiring, mine: Collection[int]) -> str:
        """Gives units to their new owner, all of them or none; why not, or nothing.

        What was agreed is looked at again as things are now; ``mine`` are the moves it is made of.
        """
        with self._begin() as connection:
            why = self._why_not(connection, step, wiring, mine)
            if not why:
                now_s = self.now_s()
                for name, epoch in step.epochs:
                    seen = (units.c.name == name, units.c.epoch == epoch)
                    values = {
                        "node": step.target,
                        "epoch": epoch + 1,
                        "previous": step.source,
                        "assigned_s": now_s,
                        "lost_s": None,
                        "belongs": None,
                    }
                    connection.execute(sa.update(units).where(*seen).values(**values))
                ours = (moves.c.id.in_(tuple(mine)), moves.c.state.in_(OPEN_STATES))
                connection.execute(sa.update(moves).where(*ours).values(state="moving"))
            count_change(connection)
            return why

    def _why_not(
        self,
        connection: sa.Connection,
        step: HandOver,
        wiring: TreeWiring,
        mine: Collection[int],
    ) -> str:
        if self._engine.dialect.name == "postgresql":
            # One after the other: what one looks at, another must not change meanwhile.
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_HANDING)))
            locked = sa.select(units.c.name).where(units.c.name.in_(step.units))
            connection.execute(locked.order_by(units.c.name).with_for_update())
        found = connection.execute(sa.select(units)).mappings()
        known = {row["name"]: UnitRecord(**row) for row in found}
        there = connection.execute(sa.select(nodes)).mappings()
        is_other = (moves.c.state.in_(OPEN_STATES), moves.c.id.not_in(tuple(mine)))
        moving = set(connection.execute(sa.select(moves.c.unit).where(*is_other)).scalars())
        by_name = {row["name"]: NodeRecord(**row) for row in there}
        return why_not(step, known, by_name, moving, wiring, self.now_s())

    def add_return(self, unit: UnitRecord, move: Mapping[str, Any]) -> bool:
        """Adds the move that brings a unit, as it was seen, back, and counts it; False if late.

        Two who decide the same at once count, and begin, only one.
        """
        seen = (units.c.name == unit.name, units.c.epoch == unit.epoch, ~units.c.is_dropped)
        with self._begin() as connection:
            counted = sa.update(units).where(*seen, units.c.returns == unit.returns)
            values = {"returns": unit.returns + 1}
            is_counted = bool(connection.execute(counted.values(**values)).rowcount)
            if is_counted:
                connection.execute(sa.insert(moves).values(**move))
            count_change(connection)
            return is_counted

    def change_move(self, move: int, **values: object) -> bool:
        """Records how far a move has come; False if it has ended before."""
        mine = (moves.c.id == move, moves.c.state.in_(OPEN_STATES))
        with self._begin() as connection:
            changed = connection.execute(sa.update(moves).where(*mine).values(**values))
            count_change(connection)
            return bool(changed.rowcount)

    def end_pause(
        self, unit: UnitRecord, pause_s: float, spent: Mapping[str, object]
    ) -> MoveRecord | None:
        """Records for how long nobody worked on a unit that was moved; the move, if there is one.

        What the time was ``spent`` on is added to the numbers of the move.
        """
        last = sa.select(moves).where(moves.c.unit == unit.name, moves.c.target == unit.node)
        with self._begin() as connection:
            row = connection.execute(last.order_by(moves.c.id.desc()).limit(1)).mappings().first()
            if row is None or row["pause_s"] is not None or row["state"] == "failed":
                return None
            if row["ended_s"] is not None and row["ended_s"] < (unit.assigned_s or 0.0):
                return None  # That one brought it here in an earlier life.
            values = {"pause_s": pause_s, "numbers": {**row["numbers"], **spent}}
            mine = moves.c.id == row["id"]
            connection.execute(sa.update(moves).where(mine).values(**values))
            return MoveRecord(**{**row, **values})
