"""The catalog: the one truth about a system, shared by its controller and its nodes.

Everything is said here and nowhere else: where a unit is to run, who ran it last, which nodes are
alive. Agents read it and report to it directly, so a system goes on while its controller is away,
and a controller that comes back finds everything as it is.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from penstock.control.catalog_database import count_change, number_of
from penstock.control.codec import Codec
from penstock.control.move_rows import MoveRows
from penstock.control.node_rows import NodeRows
from penstock.control.records import (
    BalanceRecord,
    EventRecord,
    Submission,
    UnitRecord,
)
from penstock.control.tables import (
    events,
    moves,
    nodes,
    plans,
    settings,
    submissions,
    units,
)
from penstock.errors import InputError, UnreachableError
from penstock.model.measurements import FragmentStatus

_KEPT_EVENTS = 2_000
_UP = ("running", "held back")
_BALANCE = "balance"
_BALANCES: Codec[BalanceRecord] = Codec(BalanceRecord)


class Catalog(NodeRows, MoveRows):
    """A catalog in the database at ``url``: submissions, units and events, besides its parts."""

    def submissions(self) -> tuple[Submission, ...]:
        """All submissions, oldest first."""
        with self._read() as connection:
            rows = connection.execute(sa.select(submissions).order_by(submissions.c.id))
            return tuple(Submission(**row) for row in rows.mappings())

    def plans(self) -> dict[int, str]:
        """The recorded plans by submission, oldest first."""
        with self._read() as connection:
            rows = connection.execute(sa.select(plans).order_by(plans.c.submission))
            return {row.submission: row.plan for row in rows}

    def plan(self, submission: int) -> str | None:
        """The recorded plan of a submission."""
        with self._read() as connection:
            asked = sa.select(plans.c.plan).where(plans.c.submission == submission)
            return connection.execute(asked).scalar()

    def record_plans(self, made: Mapping[int, str]) -> None:
        """Records these plans in place of all that there are."""
        with self._begin() as connection:
            connection.execute(sa.delete(plans))
            rows = [{"submission": number, "plan": plan} for number, plan in made.items()]
            if rows:
                connection.execute(sa.insert(plans), rows)

    def add(
        self,
        submission: Mapping[str, Any],
        made: list[UnitRecord],
        woken: Iterable[str] = (),
        plan: str = "",
        balance: BalanceRecord | None = None,
    ) -> int:
        """Adds a submission with its units and its plan, all or nothing; its number.

        From now on somebody reads the streams that are ``woken``, and the system is balanced as
        the submission says, unless there was a command.
        """
        try:
            with self._begin() as connection:
                added = connection.execute(sa.insert(submissions).values(**submission))
                number = number_of(added)
                rows = [{**vars(unit), "submission": number} for unit in made]
                if rows:
                    connection.execute(sa.insert(units), rows)
                connection.execute(sa.insert(plans).values(submission=number, plan=plan))
                read = units.c.name.in_(tuple(woken))
                connection.execute(sa.update(units).where(read).values(is_unread=False))
                if balance is not None:
                    _offer(connection, balance)
                count_change(connection)
                return number
        except UnreachableError as error:
            if isinstance(error.__cause__, IntegrityError):
                raise self._taken(submission["name"], made) from None
            raise

    def _taken(self, name: str, made: list[UnitRecord]) -> InputError:
        """Which of these names another submission has."""
        known = {submission.id: submission.name for submission in self.submissions()}
        units = {unit.name: unit.submission for unit in self.units()}
        owner = next((units[unit.name] for unit in made if unit.name in units), None)
        hint = "Give it another name, or drop the other first."
        if name in known.values():
            return InputError(f"the name {name} is taken by another submission", hint=hint)
        if owner is not None:
            taken = next(unit.name for unit in made if unit.name in units)
            part = known.get(owner, f"submission {owner}")
            return InputError(f"the name {taken} is taken by a part of {part}", hint=hint)
        return InputError(
            f"another submission came at the same moment as {name}", hint="Submit it again."
        )

    def rewrite(
        self, submission: int, text: str, plan: str, nodes: Mapping[str, str | None]
    ) -> None:
        """Changes how a submission is written, and where its units are written to run."""
        with self._begin() as connection:
            mine = submissions.c.id == submission
            connection.execute(sa.update(submissions).where(mine).values(text=text))
            planned = plans.c.submission == submission
            connection.execute(sa.update(plans).where(planned).values(plan=plan))
            for name, node in nodes.items():
                unit = units.c.name == name
                connection.execute(sa.update(units).where(unit).values(pinned=node))
            count_change(connection)

    def balance(self) -> BalanceRecord | None:
        """How the system is balanced; None if nobody has said anything."""
        with self._read() as connection:
            asked = sa.select(settings.c.record).where(settings.c.name == _BALANCE)
            written = connection.execute(asked).scalar()
        return None if written is None else _BALANCES.decode(written)

    def set_balance(self, record: BalanceRecord) -> None:
        """Records how the system is balanced from now on."""
        with self._begin() as connection:
            _set(connection, record)
            count_change(connection)

    def offer_balance(self, record: BalanceRecord) -> None:
        """The same, unless it has been commanded otherwise."""
        with self._begin() as connection:
            _offer(connection, record)
            count_change(connection)

    def drop(self, submission: int) -> None:
        """Lets the units of a submission stop for good."""
        with self._begin() as connection:
            mine = units.c.submission == submission
            connection.execute(sa.update(units).where(mine).values(is_dropped=True))
            count_change(connection)

    def replan(
        self,
        made: Mapping[int, str],
        changed: Collection[str],
        gone: Collection[str] = (),
        dropped: int | None = None,
    ) -> None:
        """Changes plans of submissions that run, all at once.

        Units that have ``changed`` are begun anew where they are, those that are ``gone`` stop for
        good, and of the submission that is ``dropped`` only what others share is left.
        """
        now_s = self.now_s()
        with self._begin() as connection:
            for number, plan in made.items():
                mine = plans.c.submission == number
                connection.execute(sa.update(plans).where(mine).values(plan=plan))
            stopping = units.c.name.in_(tuple(gone))
            connection.execute(sa.update(units).where(stopping).values(is_dropped=True))
            again = units.c.name.in_(tuple(changed)) & units.c.node.is_not(None)
            values = {"epoch": units.c.epoch + 1, "previous": units.c.node, "assigned_s": now_s}
            connection.execute(sa.update(units).where(again).values(**values))
            if dropped is not None:
                mine = submissions.c.id == dropped
                connection.execute(sa.update(submissions).where(mine).values(is_dropped=True))
            count_change(connection)

    def remove_shared(
        self, names: Collection[str], made: Mapping[int, str], over: Collection[int]
    ) -> None:
        """Takes out units that have stopped for good, and the submissions that are ``over``.

        The others go on by the plans that were ``made``.
        """
        gone = tuple(names)
        with self._begin() as connection:
            connection.execute(sa.delete(moves).where(moves.c.unit.in_(gone)))
            connection.execute(sa.delete(units).where(units.c.name.in_(gone)))
            for number, plan in made.items():
                mine = plans.c.submission == number
                connection.execute(sa.update(plans).where(mine).values(plan=plan))
            ended = tuple(over)
            connection.execute(sa.delete(plans).where(plans.c.submission.in_(ended)))
            connection.execute(sa.delete(submissions).where(submissions.c.id.in_(ended)))
            count_change(connection)

    def remove(self, submission: int) -> None:
        """Takes a submission and its units out."""
        with self._begin() as connection:
            gone = sa.select(units.c.name).where(units.c.submission == submission)
            connection.execute(sa.delete(moves).where(moves.c.unit.in_(gone)))
            connection.execute(sa.delete(units).where(units.c.submission == submission))
            connection.execute(sa.delete(plans).where(plans.c.submission == submission))
            connection.execute(sa.delete(submissions).where(submissions.c.id == submission))
            count_change(connection)

    def units(self) -> tuple[UnitRecord, ...]:
        """All units by name."""
        with self._read() as connection:
            rows = connection.execute(sa.select(units).order_by(units.c.name))
            return tuple(UnitRecord(**row) for row in rows.mappings())

    def assign(
        self,
        unit: UnitRecord,
        node: str,
        is_restart: bool = False,
        lost_s: float | None = None,
        belongs: str | None = None,
    ) -> bool:
        """Gives a unit, as it was seen, to a node as its next owner; False if it has changed.

        What is being dropped is given to nobody. A restart is counted with it. ``lost_s`` is when
        the lease of the present owner ended, if that is why; ``belongs`` the node it goes back to.
        """
        now_s = self.now_s()
        seen = (units.c.name == unit.name, units.c.epoch == unit.epoch, ~units.c.is_dropped)
        values = {
            "node": node,
            "epoch": unit.epoch + 1,
            "previous": unit.node,
            "restarts": units.c.restarts + int(is_restart),
            "assigned_s": now_s,
            "lost_s": lost_s,
            "belongs": belongs,
        }
        with self._begin() as connection:
            given = sa.update(units).where(*seen).values(**values)
            is_given = bool(connection.execute(given).rowcount)
            # Always last: whoever holds this row waits for no other.
            count_change(connection)
            return is_given

    def report(
        self,
        unit: str,
        epoch: int,
        state: str,
        error: str = "",
        measured: FragmentStatus | None = None,
    ) -> None:
        """Records what the owner with this epoch says; a former owner is not listened to."""
        mine = (units.c.name == unit, units.c.epoch == epoch)
        now_s = self.now_s()
        goes_on = sa.and_(units.c.reported_epoch == epoch, units.c.state.in_(_UP))
        with self._begin() as connection:
            values = {
                "state": state,
                "error": error,
                "reported_epoch": epoch,
                "measured": measured,
                "since_s": sa.case((goes_on, units.c.since_s), else_=now_s)
                if state in _UP
                else now_s,
            }
            connection.execute(sa.update(units).where(*mine).values(**values))

    def forgive(self, unit: str, epoch: int) -> None:
        """Forgets how often a unit was started again or brought back, if its owner is the same."""
        mine = (units.c.name == unit, units.c.epoch == epoch)
        with self._begin() as connection:
            connection.execute(sa.update(units).where(*mine).values(restarts=0, returns=0))

    def release(self, unit: str, epoch: int, by: tuple[str, str] | None = None) -> None:
        """Records that the owner with this epoch has stopped.

        ``by`` is the node that says so and its incarnation: a process is not listened to once
        another one has become its node, which may be running the unit with that very epoch.
        """
        mine = [units.c.name == unit, units.c.released_epoch < epoch]
        if by is not None:
            known = sa.select(nodes.c.incarnation).where(nodes.c.name == by[0])
            mine.append(known.scalar_subquery() == by[1])
        values = {"released_epoch": epoch, "released_s": self.now_s()}
        with self._begin() as connection:
            connection.execute(sa.update(units).where(*mine).values(**values))
            count_change(connection)

    def tell(self, kind: str, subject: str, text: str, **numbers: object) -> None:
        """Adds to the story of the system; the oldest parts are forgotten."""
        row = {"at_s": time.time(), "kind": kind, "subject": subject, "text": text}
        with self._begin() as connection:
            added = connection.execute(sa.insert(events).values(**row, numbers=numbers))
            oldest = number_of(added) - _KEPT_EVENTS
            connection.execute(sa.delete(events).where(events.c.id <= oldest))

    def events(
        self, after: int = 0, last: int = 100, kind: str | None = None
    ) -> tuple[EventRecord, ...]:
        """The latest events after a number, all or of one kind, oldest first."""
        asked = sa.select(events).where(events.c.id > after).order_by(events.c.id.desc())
        if kind is not None:
            asked = asked.where(events.c.kind == kind)
        with self._read() as connection:
            rows = connection.execute(asked.limit(last)).mappings().all()
        return tuple(EventRecord(**row) for row in reversed(rows))


def _offer(connection: sa.Connection, record: BalanceRecord) -> None:
    known = sa.select(settings.c.set_by).where(settings.c.name == _BALANCE)
    if connection.execute(known).scalar() != "command":
        _set(connection, record)


def _set(connection: sa.Connection, record: BalanceRecord) -> None:
    connection.execute(sa.delete(settings).where(settings.c.name == _BALANCE))
    row = {"name": _BALANCE, "record": _BALANCES.encode(record), "set_by": record.set_by}
    connection.execute(sa.insert(settings).values(**row))
