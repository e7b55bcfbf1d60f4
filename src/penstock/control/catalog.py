"""The catalog: the one truth about a system, shared by its controller and its nodes.

Everything is said here and nowhere else: where a unit is to run, who ran it last, which nodes are
alive. Agents read it and report to it directly, so a system goes on while its controller is away,
and a controller that comes back finds everything as it is.
"""

from __future__ import annotations

import sqlite3
import time
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from penstock import __version__
from penstock.control.codec import Codec
from penstock.control.hand_over_rules import HandOver, why_not
from penstock.control.records import (
    BalanceRecord,
    Contact,
    EventRecord,
    MoveRecord,
    NodeRecord,
    Submission,
    UnitRecord,
)
from penstock.control.tables import (
    VERSION,
    contacts,
    events,
    meta,
    metadata,
    moves,
    nodes,
    plans,
    samples,
    settings,
    submissions,
    units,
)
from penstock.errors import InputError, PenstockError, UnreachableError
from penstock.model.measurements import FragmentStatus, NodeSample
from penstock.place.tree_placing import TreeWiring

_KEPT_EVENTS = 2_000
_KEPT_SAMPLES = 600
_KEPT_MOVES = 1_000
_PATIENCE_S = 10.0
_READING = "penstock_reading"
_PREPARING = 0x70656E73746F636B  # "penstock"; any number would do that others do not use
_HANDING = _PREPARING + 1
_OPEN = ("preparing", "moving")
_UP = ("running", "held back")
_BALANCE = "balance"
_BALANCES: Codec[BalanceRecord] = Codec(BalanceRecord)


class Catalog:
    """A catalog in the database at ``url``."""

    def __init__(self, url: str | sa.URL) -> None:
        self.url = url
        self._engine = _engine(url)
        self._reading = self._engine.execution_options(**{_READING: True})
        self._name = sa.make_url(url).render_as_string(hide_password=True)

    def prepare(self) -> None:
        """Makes the tables if there are none, and brings those of an older version to this one.

        Refuses tables of a newer version, and to change any while nodes use them.
        """
        with self._begin() as connection:
            if self._engine.dialect.name == "postgresql":
                # One after the other: there, tables of one name made at once are an error.
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_PREPARING)))
            if not sa.inspect(connection).has_table(meta.name):
                _create(connection)
            version = _known(connection, "version")
            if version != str(VERSION):
                self._migrate(connection, version or "")

    def _migrate(self, connection: sa.Connection, version: str) -> None:
        # Only now: it takes a while to load, and is needed once.
        from penstock.control.migrating import is_known, migrate

        if not is_known(version):
            raise self._made_by_another(version, _known(connection, "penstock"))
        self._check_unused(connection)
        migrate(connection, version)
        tables = meta.c.key == "version"
        connection.execute(sa.update(meta).where(tables).values(value=str(VERSION)))

    def _check_unused(self, connection: sa.Connection) -> None:
        """Raises if a node may be at work with the tables as they are."""
        asked = sa.select(nodes.c.name, nodes.c.version).where(nodes.c.lease_until_s > self.now_s())
        alive = connection.execute(asked.order_by(nodes.c.name)).first()
        if alive is not None:
            raise InputError(
                f"the catalog {self._name} is of an older version, and in use by node "
                f"{alive.name}, penstock {alive.version}",
                hint="Stop the system with that version's penstock down; "
                "then penstock up goes on with this one.",
            )

    def _made_by_another(self, version: str | None, program: str | None) -> InputError:
        by = f"penstock {program}" if program else "another version of Penstock"
        return InputError(
            f"the catalog {self._name} was made by {by} "
            f"(tables {version}, penstock {__version__} has {VERSION})",
            hint="Use that version, or start a new system in another folder.",
        )

    def run_by(self) -> str:
        """The version of Penstock whose controller was the last to run the system.

        Refuses a catalog whose tables are those of another version.
        """
        with self._read() as connection:
            version, program = _known(connection, "version"), _known(connection, "penstock")
        if version != str(VERSION):
            raise self._made_by_another(version, program)
        return program or "unknown"

    def adopt(self) -> None:
        """Records that from now on a controller of this version runs the system."""
        with self._begin() as connection:
            ours = meta.c.key == "penstock"
            connection.execute(sa.update(meta).where(ours).values(value=__version__))

    @contextmanager
    def _begin(self, engine: sa.Engine | None = None) -> Iterator[sa.Connection]:
        try:
            with (engine or self._engine).begin() as connection:
                yield connection
        except PenstockError:
            raise
        except SQLAlchemyError as error:
            raise UnreachableError(
                f"the catalog {self._name} cannot be used: {getattr(error, 'orig', None) or error}",
                hint="Check that its database runs and its disk has room.",
            ) from error

    def _read(self) -> AbstractContextManager[sa.Connection]:
        return self._begin(self._reading)

    def now_s(self) -> float:
        """The time that leases go by: the database's, where several machines share one."""
        if self._engine.dialect.name != "postgresql":
            return time.time()
        with self._read() as connection:
            clock = sa.text("SELECT extract(epoch FROM clock_timestamp())")
            return float(connection.execute(clock).scalar_one())

    def changes(self) -> int:
        """A number that grows with everything a node has to look at."""
        with self._read() as connection:
            asked = sa.select(meta.c.value).where(meta.c.key == "changes")
            return int(connection.execute(asked).scalar_one())

    def close(self) -> None:
        """Gives back the connections."""
        self._engine.dispose()

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
                number = _number(added)
                rows = [{**vars(unit), "submission": number} for unit in made]
                if rows:
                    connection.execute(sa.insert(units), rows)
                connection.execute(sa.insert(plans).values(submission=number, plan=plan))
                read = units.c.name.in_(tuple(woken))
                connection.execute(sa.update(units).where(read).values(is_unread=False))
                if balance is not None:
                    _offer(connection, balance)
                _count_change(connection)
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
            _count_change(connection)

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
            _count_change(connection)

    def offer_balance(self, record: BalanceRecord) -> None:
        """The same, unless it has been commanded otherwise."""
        with self._begin() as connection:
            _offer(connection, record)
            _count_change(connection)

    def drop(self, submission: int) -> None:
        """Lets the units of a submission stop for good."""
        with self._begin() as connection:
            mine = units.c.submission == submission
            connection.execute(sa.update(units).where(mine).values(is_dropped=True))
            _count_change(connection)

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
            _count_change(connection)

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
            _count_change(connection)

    def remove(self, submission: int) -> None:
        """Takes a submission and its units out."""
        with self._begin() as connection:
            gone = sa.select(units.c.name).where(units.c.submission == submission)
            connection.execute(sa.delete(moves).where(moves.c.unit.in_(gone)))
            connection.execute(sa.delete(units).where(units.c.submission == submission))
            connection.execute(sa.delete(plans).where(plans.c.submission == submission))
            connection.execute(sa.delete(submissions).where(submissions.c.id == submission))
            _count_change(connection)

    def nodes(self) -> tuple[NodeRecord, ...]:
        """All nodes by name."""
        with self._read() as connection:
            rows = connection.execute(sa.select(nodes).order_by(nodes.c.name))
            return tuple(NodeRecord(**row) for row in rows.mappings())

    def declare(self, node: NodeRecord) -> None:
        """Makes a node known that has not joined yet."""
        with self._begin() as connection:
            known = sa.select(nodes.c.name).where(nodes.c.name == node.name)
            if connection.execute(known).scalar() is None:
                connection.execute(sa.insert(nodes), vars(node))

    def hang(self, parents: Mapping[str, str | None]) -> None:
        """Records the parents of nodes, from their next start on."""
        with self._begin() as connection:
            for name, parent in parents.items():
                mine = nodes.c.name == name
                connection.execute(sa.update(nodes).where(mine).values(parent=parent))
            _count_change(connection)

    def resize(self, node: str, cores: int, memory_bytes: int) -> None:
        """Changes what a node has, from its next start on."""
        values = {"cores": cores, "memory_bytes": memory_bytes}
        with self._begin() as connection:
            connection.execute(sa.update(nodes).where(nodes.c.name == node).values(**values))

    def join(self, node: NodeRecord, former: Collection[str] = ()) -> bool:
        """Records that a new process runs the node, with a lease; False if another one does.

        ``former`` are lives that whoever joins had itself: their leases need not have run out.
        """
        now_s = self.now_s()
        mine = nodes.c.name == node.name
        is_free = (nodes.c.lease_until_s <= now_s) | nodes.c.incarnation.in_(former)
        with self._begin() as connection:
            told = {key: value for key, value in vars(node).items() if key != "parent"}
            values = sa.update(nodes).where(mine, is_free).values(**told)
            if connection.execute(values).rowcount:
                return True
            is_known = connection.execute(sa.select(nodes.c.name).where(mine)).scalar() is not None
            if not is_known:
                connection.execute(sa.insert(nodes), vars(node))
            return not is_known

    def renew(self, node: str, incarnation: str, until_s: float) -> bool:
        """Prolongs a lease; False if it has run out: others may have seen that."""
        is_left = nodes.c.lease_until_s > self.now_s()
        mine = (nodes.c.name == node, nodes.c.incarnation == incarnation, is_left)
        with self._begin() as connection:
            renewal = sa.update(nodes).where(*mine).values(lease_until_s=until_s)
            return bool(connection.execute(renewal).rowcount)

    def publish(self, node: str, life: str, address: str) -> None:
        """Makes known where a node takes messages in this life."""
        values = {"life": life, "address": address, "heard": {}, "heard_s": self.now_s()}
        with self._begin() as connection:
            told = sa.update(contacts).where(contacts.c.node == node).values(**values)
            if not connection.execute(told).rowcount:
                connection.execute(sa.insert(contacts), {"node": node, **values})

    def note_heard(self, node: str, heard: Mapping[str, float]) -> None:
        """Records how old what a node has heard of others is."""
        values = {"heard": dict(heard), "heard_s": self.now_s()}
        with self._begin() as connection:
            connection.execute(sa.update(contacts).where(contacts.c.node == node).values(**values))

    def contacts(self) -> dict[str, Contact]:
        """Where the living nodes take messages: nobody else is to be told or listened to."""
        is_present = (contacts.c.node == nodes.c.name) & (contacts.c.life == nodes.c.incarnation)
        present = sa.select(contacts).join(nodes, is_present)
        present = present.where(nodes.c.lease_until_s > self.now_s()).order_by(contacts.c.node)
        with self._read() as connection:
            rows = connection.execute(present).mappings()
            return {row["node"]: Contact(**row) for row in rows}

    def forget_node(self, node: str) -> None:
        """Takes a node out."""
        with self._begin() as connection:
            connection.execute(sa.delete(contacts).where(contacts.c.node == node))
            connection.execute(sa.delete(nodes).where(nodes.c.name == node))
            connection.execute(sa.delete(samples).where(samples.c.node == node))

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
            _count_change(connection)
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
            _count_change(connection)

    def moves(self, open_only: bool = False, last: int = 100) -> tuple[MoveRecord, ...]:
        """The latest moves, or all that are open, oldest first."""
        asked = sa.select(moves).order_by(moves.c.id.desc())
        asked = asked.where(moves.c.state.in_(_OPEN)) if open_only else asked.limit(last)
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
            numbers = [_number(inserted) for inserted in added]
            is_old = moves.c.id <= max(numbers, default=0) - _KEPT_MOVES
            connection.execute(sa.delete(moves).where(is_old, moves.c.state.not_in(_OPEN)))
            _count_change(connection)
            return numbers

    def begin_hand_over(
        self, step: HandOver, wiring: TreeWiring, made: list[dict[str, Any]]
    ) -> tuple[list[int], str]:
        """Adds the moves of what neighbours agreed, all or none; their numbers, or why not."""
        with self._begin() as connection:
            why = self._why_not(connection, step, wiring, ())
            added = [] if why else [connection.execute(sa.insert(moves).values(**m)) for m in made]
            _count_change(connection)
            return [_number(inserted) for inserted in added], why

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
                ours = (moves.c.id.in_(tuple(mine)), moves.c.state.in_(_OPEN))
                connection.execute(sa.update(moves).where(*ours).values(state="moving"))
            _count_change(connection)
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
        is_other = (moves.c.state.in_(_OPEN), moves.c.id.not_in(tuple(mine)))
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
            _count_change(connection)
            return is_counted

    def change_move(self, move: int, **values: object) -> bool:
        """Records how far a move has come; False if it has ended before."""
        mine = (moves.c.id == move, moves.c.state.in_(_OPEN))
        with self._begin() as connection:
            changed = connection.execute(sa.update(moves).where(*mine).values(**values))
            _count_change(connection)
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

    def tell(self, kind: str, subject: str, text: str, **numbers: object) -> None:
        """Adds to the story of the system; the oldest parts are forgotten."""
        row = {"at_s": time.time(), "kind": kind, "subject": subject, "text": text}
        with self._begin() as connection:
            added = connection.execute(sa.insert(events).values(**row, numbers=numbers))
            oldest = _number(added) - _KEPT_EVENTS
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

    def sample(self, node: str, measured: NodeSample) -> None:
        """Keeps what a node measured; a bounded series for each."""
        row = {"node": node, "at_s": measured.at_s, "numbers": measured}
        with self._begin() as connection:
            connection.execute(sa.insert(samples).values(**row))
            ours = samples.c.node == node
            newest = sa.select(samples.c.id).where(ours).order_by(samples.c.id.desc())
            cut = newest.offset(_KEPT_SAMPLES).limit(1).scalar_subquery()
            connection.execute(sa.delete(samples).where(ours, samples.c.id <= cut))

    def samples(self, node: str, last: int = _KEPT_SAMPLES) -> tuple[NodeSample, ...]:
        """A node's latest measurements, oldest first."""
        asked = sa.select(samples.c.numbers).where(samples.c.node == node)
        with self._read() as connection:
            found = connection.execute(asked.order_by(samples.c.id.desc()).limit(last))
            return tuple(reversed(found.scalars().all()))

    def samples_since(self, node: str, since_s: float) -> tuple[NodeSample, ...]:
        """A node's measurements from a time on, oldest first, and the last one before it."""
        ours = samples.c.node == node
        before = sa.select(sa.func.max(samples.c.id)).where(ours, samples.c.at_s <= since_s)
        first = sa.func.coalesce(before.scalar_subquery(), 0)
        asked = sa.select(samples.c.numbers).where(ours, samples.c.id >= first)
        with self._read() as connection:
            return tuple(connection.execute(asked.order_by(samples.c.id)).scalars())

    def latest_sample(self, node: str) -> NodeSample | None:
        """What a node measured last."""
        found = self.samples(node, 1)
        return found[0] if found else None


def _offer(connection: sa.Connection, record: BalanceRecord) -> None:
    known = sa.select(settings.c.set_by).where(settings.c.name == _BALANCE)
    if connection.execute(known).scalar() != "command":
        _set(connection, record)


def _set(connection: sa.Connection, record: BalanceRecord) -> None:
    connection.execute(sa.delete(settings).where(settings.c.name == _BALANCE))
    row = {"name": _BALANCE, "record": _BALANCES.encode(record), "set_by": record.set_by}
    connection.execute(sa.insert(settings).values(**row))


def _create(connection: sa.Connection) -> None:
    metadata.create_all(connection)
    told = {
        "version": str(VERSION),
        "changes": "0",
        "life": uuid.uuid4().hex[:8],
        "penstock": __version__,
    }
    rows = [{"key": key, "value": value} for key, value in told.items()]
    connection.execute(sa.insert(meta), rows)


def _known(connection: sa.Connection, key: str) -> str | None:
    found = connection.execute(sa.select(meta.c.value).where(meta.c.key == key)).scalar()
    return None if found is None else str(found)


def _count_change(connection: sa.Connection) -> None:
    grown = sa.cast(sa.cast(meta.c.value, sa.BigInteger) + 1, sa.Text)
    connection.execute(sa.update(meta).where(meta.c.key == "changes").values(value=grown))


def _number(added: sa.CursorResult[Any]) -> int:
    """The number the database gave to a row it was told to insert."""
    key = added.inserted_primary_key
    assert key is not None
    return int(key[0])


def _engine(url: str | sa.URL) -> sa.Engine:
    engine = sa.create_engine(url, pool_pre_ping=True)
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", _prepare_sqlite)
        sa.event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _: object) -> None:
    # Our own begin below, so that a writer waits its turn instead of failing halfway.
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout={_PATIENCE_S * 1_000:.0f}")
    _write_ahead(connection)
    connection.execute("PRAGMA synchronous=NORMAL")


def _write_ahead(connection: Any) -> None:
    """Writers of a new database that choose the mode at once do not wait for each other."""
    until_s = time.monotonic() + _PATIENCE_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until_s:
                raise
            time.sleep(0.01)


def _begin_sqlite(connection: sa.Connection) -> None:
    reading = connection.get_execution_options().get(_READING)
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")
