"""A second opinion: the same rows and a query written by hand, on an engine that knows no streams.

A row of a stream is late, and dropped, when its event time lies before the highest event time so
far less the allowed lateness. That is a window function over the order of arrival, and all that
DuckDB has to be told about streams.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from penstock.channels.ingest import feed_ingest, file_ingest
from penstock.feeds.files import read_pieces
from penstock.feeds.generators import generator
from penstock.feeds.pieces import Piece, value_of
from penstock.lang.deployment import parse_deployment
from penstock.model.engines import EngineName
from penstock.model.network import Network, Query
from penstock.model.operators import SqlWrite
from penstock.model.sources import GeneratorSource, MemorySink, Stream
from penstock.spark.engine import Engine
from penstock.spark.node import NodeOptions
from penstock.spark.sinks.memory_sink import CollectedSink
from penstock.spark.state import StateFolder

Row = tuple[object, ...]
Counts = Mapping[str, int]

_DIGITS = 9
_SHOWN = 5


@dataclass(frozen=True)
class Outcome:
    """What a network gave over its finished input.

    ``batches``: the micro-batches of every fragment. ``set_aside``: by stream, the rows that were
    late or malformed.
    """

    tables: Mapping[str, pa.Table]
    set_aside: Mapping[str, Counts]
    batches: Counts = field(default_factory=dict)

    def late(self, stream: str) -> int:
        """How many rows of a stream came too late."""
        return self.set_aside[stream]["late"]

    def rows(self, query: str) -> list[Row]:
        """The rows of a query, as values that can be compared."""
        return rows_of(self.tables[query])


def deployed(text: str, folder: Path) -> Network:
    """The network a deployment text describes; results stay in memory, nothing else is written."""
    return in_memory(parse_deployment(text, "answers.yaml", folder).network)


def in_memory(network: Network) -> Network:
    """The network with the result of every query kept in memory."""
    writes = {
        operator.name: operator for operator in network.operators if isinstance(operator, SqlWrite)
    }

    def kept(query: Query) -> Query:
        write = writes.get(query.stream)
        stream = write.input.stream if write else query.stream
        return replace(query, stream=stream, sink=MemorySink())

    return replace(
        network,
        operators=tuple(operator for operator in network.operators if operator.name not in writes),
        queries=tuple(map(kept, network.queries)),
    )


def with_options(network: Network, stream: str, **options: object) -> Network:
    """The network with some options of a generator changed; None takes one away."""

    def changed(one: Stream) -> Stream:
        if one.name != stream:
            return one
        assert isinstance(one.source, GeneratorSource)
        merged = {**one.source.options, **options}
        given = {name: value for name, value in merged.items() if value is not None}
        return replace(one, source=replace(one.source, options=given))

    return replace(network, streams=tuple(map(changed, network.streams)))


def run(
    session: SparkSession,
    network: Network,
    folder: Path,
    max_rows_per_batch: int = 2_000,
    timeout_s: float = 240,
    chosen: EngineName | None = None,
    before: Mapping[str, CollectedSink] | None = None,
) -> Outcome:
    """Runs a network over its finished input, in micro-batches small enough to be several.

    ``chosen`` is the engine; without it, queries run light where they can. What an engine that was
    stopped has collected ``before`` is gone on with: a batch that is given again counts once.
    """
    options = NodeOptions(trigger_ms=100, max_rows_per_batch=max_rows_per_batch, engine=chosen)
    with small_pieces(max_rows_per_batch):
        engine = Engine(session, network, StateFolder(folder), options)
        engine.collected |= before or {}
        try:
            engine.start()
            assert engine.wait(timeout_s, poll_s=0.05), f"not finished: {unfinished(engine)}"
            engine.check()
            batches = {one.fragment: one.batches for one in engine.status()}
            return Outcome(collected(engine), engine.set_aside(), batches)
        finally:
            engine.stop()


@contextmanager
def small_pieces(rows: int) -> Iterator[None]:
    """Lets files be brought in by ``rows`` rows at a time, as if they were large."""

    def cut(*given: Any) -> Iterator[Piece]:
        for piece in read_pieces(*given):
            rejects = piece.rejects
            for at in range(0, max(1, piece.rows.num_rows), rows):
                yield Piece(piece.rows.slice(at, rows), rejects)
                rejects = ()

    with (
        patch.object(file_ingest, "read_pieces", cut),
        patch.object(file_ingest, "_ROWS_PER_COMMIT", rows),
        patch.object(feed_ingest, "_ROWS_PER_COMMIT", rows),
    ):
        yield


def unfinished(engine: Engine) -> list[str]:
    """The fragments that still have something to do."""
    return [one.fragment for one in engine.status() if not one.is_finished]


def collected(engine: Engine) -> dict[str, pa.Table]:
    """What the in-memory queries have given so far."""
    tables = {name: sink.table() for name, sink in engine.collected.items()}
    return {name: table for name, table in tables.items() if table is not None}


class Oracle:
    """A DuckDB with the rows of the streams that are not late; times are UTC without a zone."""

    def __init__(self) -> None:
        self._duck = duckdb.connect()
        self.execute("SET TimeZone = 'UTC'")
        # Its own division of integers goes towards zero.
        self.execute("CREATE MACRO floor_div(a, b) AS (a - ((a % b) + b) % b) // b")
        self.late: dict[str, int] = {}
        self.untimed: dict[str, int] = {}

    def generated(self, network: Network) -> Oracle:
        """Adds all generated streams of a network."""
        for stream in network.streams:
            assert isinstance(stream.source, GeneratorSource)
            feed = generator(stream.source.generator, stream.source.options)
            assert feed.size is not None
            self.stream(stream, feed.read(0, feed.size))
        return self

    def stream(self, stream: Stream, rows: pa.Table) -> None:
        """Adds a stream whose rows arrive in the order of the table."""
        self.arrivals(stream.name, rows, stream.shape.event_time, stream.lateness_us)

    def arrivals(
        self, name: str, rows: pa.Table, event_time: str | None, lateness_us: int | None
    ) -> None:
        """Adds rows in the order of arrival under ``name``, without those that are too late."""
        arriving = _without_zones(rows).append_column(
            "arrival", pa.array(range(rows.num_rows), pa.int64())
        )
        self._duck.register("arriving", arriving)
        self.execute(f"CREATE TABLE {name}_arrivals AS SELECT * FROM arriving")
        self._duck.unregister("arriving")
        self.sift(name, event_time, lateness_us)

    def sift(self, name: str, event_time: str | None, lateness_us: int | None) -> None:
        """Makes ``name`` of the rows of ``name_arrivals`` that are not too late."""
        if event_time is None or lateness_us is None:
            self.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_arrivals")
        else:
            self.execute(
                f"""
                CREATE TABLE {name} AS SELECT * EXCLUDE (highest) FROM (
                  SELECT *, max({event_time}) OVER (
                    ORDER BY arrival ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
                  ) AS highest FROM {name}_arrivals)
                WHERE {event_time} >= highest - to_microseconds({lateness_us})
                """
            )
        self.untimed[name] = (
            0
            if event_time is None or lateness_us is None
            else self._count(f"{name}_arrivals WHERE {event_time} IS NULL")
        )
        set_aside = self._count(f"{name}_arrivals") - self._count(name)
        self.late[name] = set_aside - self.untimed[name]

    def _count(self, table: str) -> int:
        ((count,),) = self._duck.execute(f"SELECT count(*) FROM {table}").fetchall()
        return int(count)

    def execute(self, sql: str) -> None:
        """Runs a statement, for example to make a view that several queries read."""
        self._duck.execute(sql).fetchall()

    def table(self, sql: str) -> pa.Table:
        """The result of a query."""
        return self._duck.sql(sql).to_arrow_table()

    def rows(self, sql: str) -> list[Row]:
        """The rows of a query, as values that can be compared."""
        return rows_of(self.table(sql))


def _without_zones(rows: pa.Table) -> pa.Table:
    columns = [
        pc.cast(column, pa.timestamp("us")) if pa.types.is_timestamp(column.type) else column
        for column in rows.columns
    ]
    return pa.table(columns, names=rows.column_names)


def rows_of(table: pa.Table) -> list[Row]:
    """The rows of a table, as values that can be compared."""
    columns = [_values(column) for column in table.columns]
    return [tuple(map(_value, row)) for row in zip(*columns, strict=True)]


def _values(column: pa.ChunkedArray) -> list[object]:
    """The values of a column; times that Python cannot hold are microseconds since 1970."""
    try:
        return column.to_pylist()
    except OverflowError:
        return [value_of(one) for one in column]


def _value(value: object) -> object:
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") + 0.0  # minus zero is zero
    if isinstance(value, Decimal):
        return int(value)  # DuckDB's sums of integers have 128 bits
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value


def check_same(given: Iterable[Row], expected: Iterable[Row], query: str) -> None:
    """Raises unless both are the same rows, each as often; says which are not."""
    have, want = Counter(given), Counter(expected)
    extra, missing = _ordered(have - want), _ordered(want - have)
    if len(extra) == len(missing) and all(map(_is_near, extra, missing)):
        return
    raise AssertionError(
        f"{query}: {have.total()} rows instead of {want.total()}"
        f"\n  missing {len(missing)}: {_listed(missing)}\n  too many {len(extra)}: {_listed(extra)}"
    )


def _is_near(one: Row, other: Row) -> bool:
    """Whether two rows differ by rounding only: sums depend on the order of their rows."""
    return len(one) == len(other) and all(
        math.isclose(a, b, rel_tol=1e-8, abs_tol=1e-12)
        if isinstance(a, float) and isinstance(b, float)
        else a == b
        for a, b in zip(one, other, strict=True)
    )


def _ordered(rows: Counter[Row]) -> list[Row]:
    # Numbers last, so that rounding does not change the order of rows that differ otherwise.
    def key(row: Row) -> list[tuple[bool, str, str]]:
        exact = [(isinstance(one, float), type(one).__name__, _sortable(one)) for one in row]
        return sorted(exact, key=lambda one: one[0])

    return sorted(rows.elements(), key=key)


def _sortable(value: object) -> str:
    if isinstance(value, int | float):
        return f"{value:+030.6f}"
    return value.isoformat() if isinstance(value, datetime | date) else str(value)


def _listed(rows: list[Row]) -> str:
    shown = [f"\n    {row}" for row in rows[:_SHOWN]]
    return "".join(shown) + ("\n    …" if len(rows) > _SHOWN else "")


def check_answers(outcome: Outcome, oracle: Oracle, answers: Mapping[str, str]) -> None:
    """Raises unless every query gave what DuckDB gives for the SQL written for it."""
    failures = []
    for query, sql in answers.items():
        try:
            check_same(outcome.rows(query), oracle.rows(sql), query)
        except AssertionError as failure:
            failures.append(str(failure))
    assert not failures, "\n".join(failures)
