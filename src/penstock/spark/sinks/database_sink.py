"""Results in a database table, in one transaction with the number of the batch they came in."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from penstock.errors import RunError
from penstock.feeds.convert import null_outside_calendar
from penstock.model.operators import SqlWrite
from penstock.model.schema import Schema
from penstock.spark.lookup import SQL_TYPES, engine_of
from penstock.spark.sinks.batch import Batch, Rows, collect

_ROWS_AT_ONCE = 1_000
_ATTEMPTS = 5
_PAUSE_S = 0.1

_COMMITS = sa.Table(
    "penstock_commits",
    sa.MetaData(),
    sa.Column("writer", sa.String(200), primary_key=True),
    sa.Column("batch_id", sa.BigInteger(), nullable=False),
    sa.Column("epoch", sa.BigInteger(), nullable=False),
)


class DatabaseSink:
    """Appends each batch to the table, which is made if it is not there.

    Rows and batch number go into one transaction, so a batch is in the table once or not at all.
    Once a sink with a higher epoch is made for the same ``writer``, this one is refused.
    """

    def __init__(self, write: SqlWrite, writer: str, epoch: int) -> None:
        self._write = write
        self._writer = writer
        self._epoch = epoch
        self._table = _table(write.table, write.input.schema)
        _make_folder(write.database.url)
        with self._refusals():
            self._make_tables()
            self._claim()

    def write(self, rows: Rows, batch: Batch) -> int:
        names = self._write.input.schema.names
        if isinstance(rows, pa.Table):
            table = rows.select(names)
        else:
            table = collect(rows.select(*(f"`{name}`" for name in names)))
        with self._refusals():
            self._commit(table, batch.id)
        return int(table.num_rows)

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            raise RunError(
                f"{self._write.database.shown} refused rows for {self._write.table}: "
                f"{getattr(error, 'orig', None) or error}",
                hint="Nothing of this batch was written. Mend the database and run again.",
            ) from error

    def _commit(self, table: pa.Table, batch_id: int) -> None:
        with engine_of(self._write.database.url).begin() as connection:
            if not self._is_new(connection, batch_id):
                return
            # What Python cannot hold its databases cannot be given.
            records = null_outside_calendar(table).to_pylist()
            for at in range(0, len(records), _ROWS_AT_ONCE):
                connection.execute(sa.insert(self._table), records[at : at + _ROWS_AT_ONCE])

    def _make_tables(self) -> None:
        """Makes the tables that are not there; another writer may be making them just now."""
        for attempts_left in reversed(range(_ATTEMPTS)):
            try:
                with engine_of(self._write.database.url).begin() as connection:
                    _COMMITS.create(connection, checkfirst=True)
                    self._table.create(connection, checkfirst=True)
                return
            except SQLAlchemyError:
                if not attempts_left:
                    raise
                time.sleep(_PAUSE_S)

    def _claim(self) -> None:
        mine = _COMMITS.c.writer == self._writer
        with engine_of(self._write.database.url).begin() as connection:
            claim = sa.update(_COMMITS).where(mine, _COMMITS.c.epoch <= self._epoch)
            if connection.execute(claim.values(epoch=self._epoch)).rowcount:
                return
            self._check_owner(connection)
            first = {"writer": self._writer, "batch_id": -1, "epoch": self._epoch}
            connection.execute(sa.insert(_COMMITS), first)

    def _is_new(self, connection: sa.Connection, batch_id: int) -> bool:
        """Records the batch and locks the writer's row; whether the batch was not there before."""
        mine = (_COMMITS.c.writer == self._writer, _COMMITS.c.epoch == self._epoch)
        newer = sa.update(_COMMITS).where(*mine, _COMMITS.c.batch_id < batch_id)
        if connection.execute(newer.values(batch_id=batch_id)).rowcount:
            return True
        self._check_owner(connection)
        return False

    def _check_owner(self, connection: sa.Connection) -> None:
        mine = _COMMITS.c.writer == self._writer
        epoch = connection.execute(sa.select(_COMMITS.c.epoch).where(mine)).scalar()
        if epoch is not None and epoch > self._epoch:
            raise RunError(
                f"{self._write.table} belongs to a newer writer "
                f"(epoch {epoch}, this one has {self._epoch})",
                hint="This writer was replaced and must stop.",
            )


def _make_folder(url: str) -> None:
    """Makes the folder of a database that is a file: SQLite makes the file but not its folder."""
    parsed = sa.make_url(url)
    if parsed.get_backend_name() == "sqlite" and parsed.database not in (None, "", ":memory:"):
        Path(str(parsed.database)).parent.mkdir(parents=True, exist_ok=True)


def _table(name: str, schema: Schema) -> sa.Table:
    columns = [sa.Column(field.name, SQL_TYPES[field.type]) for field in schema]
    return sa.Table(name, sa.MetaData(), *columns)
