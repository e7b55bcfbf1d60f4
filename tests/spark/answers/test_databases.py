"""Results in databases and lookups in them, on SQLite and on a PostgreSQL of our own."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier
from typing import Any

import pyarrow as pa
import pytest
import sqlalchemy as sa
from pyspark.sql import SparkSession

from penstock.lang.deployment import parse_deployment
from penstock.model.operators import Input, SqlWrite
from penstock.model.schema import Schema, Shape
from penstock.model.sources import Database
from penstock.spark.lookup import engine_of
from penstock.spark.sinks.batch import Batch
from penstock.spark.sinks.database_sink import DatabaseSink
from postgres import temporary_postgres

from answers.oracle import Oracle, Row, check_same, rows_of, run

DEPLOYMENT = """
streams:
  readings:
    source: {{generate: meters, homes: 30, every: 30min, days: 1, disorder: 1h}}
    lateness: 20min
tables:
  tariffs: {{database: "{url}", schema: "district string, price double, begun timestamp"}}
  kept: {{database: "{url}", schema: "home string, at timestamp, readings bigint, active boolean"}}
queries:
  kept_homes: |
    INSERT INTO kept SELECT home, window.end AS at, count(*) AS readings, max(kwh) > 0.3 AS active
    FROM readings GROUP BY home, window(ts, '2 hours')
  district_load:
    sql: SELECT district, window.end AS at, avg(kwh) AS kwh FROM readings GROUP BY district, window(ts, '1 hour')
    to: {{table: loads, database: "{url}"}}
  costs:
    sql: SELECT r.ts, r.home, r.kwh * t.price AS cost, t.begun FROM readings r LEFT JOIN tariffs t ON r.district = t.district
    to: {{table: costs, database: "{url}"}}
"""
ANSWERS = {
    "kept": """
        SELECT home, time_bucket(INTERVAL 2 HOUR, ts) + INTERVAL 2 HOUR, count(*), max(kwh) > 0.3
        FROM readings GROUP BY 1, 2
        """,
    "loads": """
        SELECT district, date_trunc('hour', ts) + INTERVAL 1 HOUR, avg(kwh) FROM readings GROUP BY 1, 2
        """,
    "costs": """
        SELECT ts, home, kwh * price, begun FROM readings LEFT JOIN tariffs USING (district)
        """,
}
TARIFFS = "('d01', 0.31::DOUBLE, TIMESTAMP '2026-01-01 06:30:00'), ('d01', 0.25, NULL)"


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/results.db"
    else:
        with temporary_postgres() as started:
            yield started


def test_results_and_lookups(url: str, session: SparkSession, tmp_path: Path) -> None:
    """Three queries begin to write into one empty database at once."""
    network = parse_deployment(DEPLOYMENT.format(url=url), "base.yaml", tmp_path).network
    oracle = Oracle().generated(network)
    oracle.execute(f"CREATE TABLE tariffs AS FROM (VALUES {TARIFFS}) t(district, price, begun)")
    database = sa.create_engine(url)
    with database.begin() as connection:
        columns = "district TEXT, price NUMERIC(8, 2), begun TIMESTAMP"
        connection.execute(sa.text(f"CREATE TABLE tariffs ({columns})"))
        for row in (("d01", 0.31, "2026-01-01 06:30:00"), ("d01", 0.25, None)):
            values = dict(zip("dpb", row, strict=True))
            connection.execute(sa.text("INSERT INTO tariffs VALUES (:d, :p, :b)"), values)
    outcome = run(session, network, tmp_path / "state", max_rows_per_batch=400)
    assert outcome.late("readings") == oracle.late["readings"] > 0
    for table, sql in ANSWERS.items():
        expected = oracle.table(sql)
        check_same(written(database, table, expected.schema.types), rows_of(expected), table)
    database.dispose()


def written(database: sa.Engine, table: str, types: list[pa.DataType]) -> list[Row]:
    """The rows of a table, as the types they should be of: SQLite keeps times as text."""
    with database.connect() as connection:
        found = connection.execute(sa.text(f"SELECT * FROM {table}")).all()
    columns = [
        pa.array([read_as(row[at], type) for row in found], type) for at, type in enumerate(types)
    ]
    return rows_of(pa.table(columns, names=[str(at) for at in range(len(types))]))


def read_as(value: Any, type: pa.DataType) -> object:
    if value is None or not (pa.types.is_timestamp(type) or pa.types.is_boolean(type)):
        return value
    if pa.types.is_boolean(type):
        return bool(value)
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment


def test_a_batch_offered_twice_is_written_once(session: SparkSession, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/twice.db"
    network = parse_deployment(DEPLOYMENT.format(url=url), "base.yaml", tmp_path).network
    (write,) = [
        operator for operator in network.operators if operator.name == "district_load_write"
    ]
    rows = session.createDataFrame(
        [("d01", None, 1.5), ("d02", None, 2.5)], "district string, at timestamp, kwh double"
    )
    for _ in range(2):
        for number in (0, 1, 1, 0):
            DatabaseSink(write, "writer", 1).write(rows, Batch(number))
    with engine_of(url).connect() as connection:
        count = connection.execute(sa.text("SELECT count(*) FROM loads")).scalar()
    assert count == 4


def test_a_process_has_one_pool_of_connections(tmp_path: Path) -> None:
    barrier = Barrier(8)

    def asked(at: int) -> sa.Engine:
        barrier.wait()
        return engine_of(f"sqlite:///{tmp_path}/{at // 8}.db")

    with ThreadPoolExecutor(8) as threads:
        engines = list(threads.map(asked, range(80)))
    assert len(set(map(id, engines))) == 10


def test_many_begin_to_write_at_once(url: str) -> None:
    """They find an empty database, and each would make what it needs."""
    rows = pa.table({"a": pa.array([1, 2])})
    shape = Shape(Schema.parse("a bigint"))
    writes = [SqlWrite(f"w{at}", Input("s", shape), Database(url), f"t{at % 2}") for at in range(6)]
    barrier = Barrier(len(writes))

    def begin(write: SqlWrite) -> None:
        sink = DatabaseSink(write, write.name, 1)
        barrier.wait()
        for number in range(3):
            sink._commit(rows, number)

    with ThreadPoolExecutor(len(writes)) as threads:
        list(threads.map(begin, writes))
    database = sa.create_engine(url)
    with database.connect() as connection:
        for table in ("t0", "t1"):
            assert connection.execute(sa.text(f"SELECT count(*) FROM {table}")).scalar() == 18
    database.dispose()
