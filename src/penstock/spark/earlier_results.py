"""What a deployment has written to files and tables, to be removed before it starts over.

Only what Penstock itself has written is removed: batches of files by the name that their writer
had, rows of a table if there are no others in it. What cannot be told apart is refused.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from penstock.channels.durable import read_number
from penstock.channels.layout import StateLayout
from penstock.errors import InputError, RunError
from penstock.model.ids import PartId
from penstock.model.network import Network
from penstock.model.operators import SqlWrite
from penstock.model.sources import FileSink, KafkaSink
from penstock.spark.lookup import engine_of
from penstock.spark.tallies import tally

_COMMITS = sa.table("penstock_commits", sa.column("writer"), sa.column("batch_id"))


@dataclass(frozen=True)
class EarlierResults:
    """Batches of files and rows of tables that the earlier runs of a deployment have written."""

    batches: tuple[Path, ...] = ()
    tables: tuple[tuple[SqlWrite, int, frozenset[str]], ...] = ()
    topics: tuple[str, ...] = ()

    def words(self) -> list[str]:
        """What is removed, and what cannot be."""
        folders = sorted({path.parent for path in self.batches})
        counts = {folder: sum(path.parent == folder for path in self.batches) for folder in folders}
        return [
            *(f"--fresh removes {_counted(n, 'batch')} in {place}" for place, n in counts.items()),
            *(
                f"--fresh removes {_counted(n, 'row')} of table {write.table} in "
                f"{write.database.shown}"
                for write, n, _ in self.tables
            ),
            *(
                f"what is in the topic {topic} stays: it will be there twice"
                for topic in self.topics
            ),
        ]

    def remove(self) -> None:
        """Removes them; rows that have come to a table meanwhile keep it from being emptied."""
        for write, rows, writers in self.tables:
            _empty(write, rows, writers)
        for path in self.batches:
            shutil.rmtree(path)


def earlier_results(state: Path, network: Network) -> EarlierResults:
    """What the runs whose state is in this folder have written; raises if others have as well."""
    lives = _lives(state)
    batches = [
        path
        for query in network.queries
        if isinstance(query.sink, FileSink)
        for path in _batches(query.name, query.sink, lives.values())
    ]
    writes = [operator for operator in network.operators if isinstance(operator, SqlWrite)]
    tables = [found for write in writes if (found := _written(write, state, lives)) is not None]
    topics = [
        query.sink.topic for query in network.queries if isinstance(query.sink, KafkaSink) and lives
    ]
    return EarlierResults(tuple(batches), tuple(tables), tuple(topics))


def _lives(state: Path) -> dict[PartId, str]:
    """The name by which the batches of each fragment are known outside."""
    found = {path.parent.name: read_number(path) for path in state.glob("fragments/*/life")}
    return {PartId(name): f"{number:08x}" for name, number in found.items() if number is not None}


def _batches(query: str, sink: FileSink, lives: Iterable[str]) -> list[Path]:
    name = re.compile(rf"batch={re.escape(query)}-([0-9a-f]{{8}})-\d{{8,}}")
    try:
        there = {path: name.fullmatch(path.name) for path in sorted(sink.path.iterdir())}
    except FileNotFoundError:
        return []
    known = set(lives)
    foreign = [path for path, named in there.items() if named and named.group(1) not in known]
    if foreign:
        raise InputError(
            f"{sink.path} holds {_counted(len(foreign), 'batch')} of {query} from runs that are "
            f"not known here, such as {foreign[0].name}",
            hint="With --fresh their rows would be there twice. Delete them, or write elsewhere.",
        )
    return [path for path, named in there.items() if named]


def _written(
    write: SqlWrite, state: Path, lives: dict[PartId, str]
) -> tuple[SqlWrite, int, frozenset[str]] | None:
    """The rows of a table that are all ours; None if there are none of ours."""
    if not lives:
        return None
    writers = frozenset(f"{write.name}-{life}" for life in lives.values())
    written = sum(
        tally(StateLayout(state).fragment(name) / "rows_out")["rows"]
        for name, life in lives.items()
        if f"{write.name}-{life}" in _known_writers(write, writers)
    )
    there = _count(write) if written else 0
    if not written or not there:
        return None
    if there != written:
        raise InputError(
            f"table {write.table} in {write.database.shown} holds {_counted(there, 'row')}, and "
            f"earlier runs have written {written:,}",
            hint="With --fresh those would be there twice, and they cannot be told from others. "
            "Empty the table, or write to another.",
        )
    return write, written, writers


def _known_writers(write: SqlWrite, writers: frozenset[str]) -> set[str]:
    asked = sa.select(_COMMITS.c.writer).where(
        _COMMITS.c.writer.in_(writers), _COMMITS.c.batch_id >= 0
    )
    try:
        with engine_of(write.database.url).connect() as connection:
            return {str(writer) for (writer,) in connection.execute(asked)}
    except SQLAlchemyError as error:
        if sa.inspect(_engine(write)).has_table(_COMMITS.name):
            raise _refused(write, error) from error
        return set()


def _engine(write: SqlWrite) -> sa.Engine:
    return engine_of(write.database.url)


def _count(write: SqlWrite) -> int:
    if not sa.inspect(_engine(write)).has_table(write.table):
        return 0
    with _engine(write).connect() as connection:
        counted = sa.select(sa.func.count()).select_from(sa.table(write.table))
        return int(connection.execute(counted).scalar_one())


def _empty(write: SqlWrite, rows: int, writers: frozenset[str]) -> None:
    try:
        with _engine(write).begin() as connection:
            gone = connection.execute(sa.delete(sa.table(write.table))).rowcount
            if gone != rows:
                raise InputError(
                    f"table {write.table} in {write.database.shown} has changed just now",
                    hint="Nothing was removed from it. Stop what writes to it, and try again.",
                )
            connection.execute(sa.delete(_COMMITS).where(_COMMITS.c.writer.in_(writers)))
    except SQLAlchemyError as error:
        raise _refused(write, error) from error


def _refused(write: SqlWrite, error: SQLAlchemyError) -> RunError:
    return RunError(
        f"{write.database.shown} cannot be used: {getattr(error, 'orig', None) or error}",
        hint="Mend the database and run again.",
    )


def _counted(number: int, noun: str) -> str:
    many = f"{noun}es" if noun.endswith("ch") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else many}"
