"""The database that a catalog lies in: opened, made, brought up to this version, and asked."""

from __future__ import annotations

import sqlite3
import time
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from penstock import __version__
from penstock.control.tables import VERSION, meta, metadata, nodes
from penstock.errors import InputError, PenstockError, UnreachableError

_PATIENCE_S = 10.0
_READING = "penstock_reading"
PREPARING = 0x70656E73746F636B  # "penstock"; any number would do that others do not use
"""The lock that whoever makes or changes the tables holds, where several machines share them."""


class CatalogDatabase:
    """The database at ``url``; every use of it is a transaction."""

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
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(PREPARING)))
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


def count_change(connection: sa.Connection) -> None:
    """Lets nodes see that there is something new to look at."""
    grown = sa.cast(sa.cast(meta.c.value, sa.BigInteger) + 1, sa.Text)
    connection.execute(sa.update(meta).where(meta.c.key == "changes").values(value=grown))


def number_of(added: sa.CursorResult[Any]) -> int:
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
