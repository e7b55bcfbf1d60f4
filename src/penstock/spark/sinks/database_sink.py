"""Results in a database table, in one transaction with the number of the batch they came in."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import sqlalchemy as sa
from pyspark.sql import DataFrame
from sqlalchemy.exc import SQLAlchemyError

from penstock.errors import RunError
from penstock.model.operators import SqlWrite
from penstock.model.schema import Schema
from penstock.spark.lookup import SQL_TYPES, engine_of
from penstock.spark.sinks.batch import Batch

_ROWS_AT_ONCE = 1_000
_ATTEMPTS = 5
_PAUSE_S = 0.1

_COMMITS = sa.Table(
    "penstock_commits",
    sa.MetaData(),
    sa.Column("writer", sa.String(200), primary_key=True),
    sa.Column("batch_id", sa.BigInteger(), nullable=False),
)


class TableSink:
    """Appends each batch to the table, which is made if it is not there.

    Rows and batch number go into one transaction, so a batch is in the table once or not at all.
    """

    def __init__(self, write: SqlWrite, writer: str) -> None:
        self._write = write
        self._writer = writer
        self._table = _table(write.table, write.input.schema)
        self._ready = False
        _make_folder(write.database.url)

    def write(self, rows: DataFrame, batch: Batch) -> int:
        table = rows.select(*(f"`{name}`" for name in self._write.input.schema.names)).toArrow()
        try:
            self._commit(table, batch.id)
        except SQLAlchemyError as error:
            raise RunError(
                f"{self._write.database.shown} refused rows for {self._write.table}: "
                f"{getattr(error, 'orig', None) or error}",
                hint="Nothing of this batch was written. Mend the database and run again.",
            ) from error
        return int(table.num_rows)

    def _commit(self, table: pa.Table, batch_id: int) -> None:
        if not self._ready:
            self._make_tables()
            self._ready = True
        with engine_of(self._write.database.url).begin() as connection:
            if self._is_committed(connection, batch_id):
                return
            records = table.to_pylist()
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

    def _is_committed(self, connection: sa.Connection, batch_id: int) -> bool:
        mine = _COMMITS.c.writer == self._writer
        last = connection.execute(sa.select(_COMMITS.c.batch_id).where(mine)).scalar()
        if last is None:
            connection.execute(sa.insert(_COMMITS), {"writer": self._writer, "batch_id": batch_id})
        elif last < batch_id:
            connection.execute(sa.update(_COMMITS).where(mine).values(batch_id=batch_id))
        return last is not None and last >= batch_id


def _make_folder(url: str) -> None:
    """Makes the folder of a database that is a file: SQLite makes the file but not its folder."""
    parsed = sa.make_url(url)
    if parsed.get_backend_name() == "sqlite" and parsed.database not in (None, "", ":memory:"):
        Path(str(parsed.database)).parent.mkdir(parents=True, exist_ok=True)


def _table(name: str, schema: Schema) -> sa.Table:
    columns = [sa.Column(field.name, SQL_TYPES[field.type]) for field in schema]
    return sa.Table(name, sa.MetaData(), *columns)
