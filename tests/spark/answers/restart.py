"""A deployment that is stopped on its way, and what must be in its sinks at the end.

``python restart.py FOLDER`` runs it in a process of its own, to be killed from outside.
"""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import duckdb
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[1]))

from penstock.lang.deployment import parse_deployment
from penstock.model.network import Network
from penstock.spark.engine import Engine
from penstock.spark.node import NodeOptions
from penstock.spark.session import SessionOptions, start_session
from penstock.spark.state import StateFolder

from answers.oracle import Oracle, Row, rows_of, small_pieces

ROWS_PER_BATCH = 500

DEPLOYMENT = """
streams:
  readings:
    source: {generate: meters, homes: 40, every: 10min, days: 5, disorder: 20min}
    lateness: 10min
  visits:
    source: {directory: visits, format: csv, finished: true}
    schema: ts timestamp, home string, who string
    event_time: ts
    lateness: 0s
queries:
  hourly:
    sql: |
      SELECT home, window.end AS at, sum(kwh) AS kwh, count(*) AS n
      FROM readings GROUP BY home, window(ts, '1 hour')
    to: {files: out/hourly, format: parquet}
  peaks:
    sql: |
      SELECT home, window.start AS since, max(kwh) AS kwh, count(*) AS n
      FROM hourly GROUP BY home, window(at, '3 hours')
    to: {table: peaks, database: "sqlite:///out/peaks.db"}
  high:
    sql: SELECT ts, home, kwh FROM readings WHERE kwh > 0.1
    to: {files: out/high, format: json}
  seen:
    sql: |
      SELECT v.ts, v.home, v.who, r.kwh
      FROM visits v LEFT JOIN readings r
        ON v.home = r.home AND r.ts BETWEEN v.ts AND v.ts + INTERVAL 10 MINUTES
    to: {table: seen, database: "sqlite:///out/peaks.db"}
"""

ANSWERS = {
    "hourly": """
        SELECT home, date_trunc('hour', ts) + INTERVAL 1 HOUR, sum(kwh), count(*)
        FROM readings GROUP BY 1, 2
        """,
    # The ends of hours that lie in [0, 3) are those of the readings in [-1, 2).
    "peaks": """
        SELECT home, since, max(kwh), count(*) FROM (
          SELECT home, time_bucket(INTERVAL 3 HOUR, date_trunc('hour', ts) + INTERVAL 1 HOUR) AS since,
            sum(kwh) AS kwh
          FROM readings GROUP BY 1, 2, date_trunc('hour', ts))
        GROUP BY 1, 2
        """,
    "high": "SELECT ts, home, kwh FROM readings WHERE kwh > 0.1",
    "seen": """
        SELECT visits.ts, visits.home, who, kwh FROM visits LEFT JOIN readings
          ON visits.home = readings.home
            AND epoch_us(readings.ts) - epoch_us(visits.ts) BETWEEN 0 AND 600000000
        """,
}


def prepare(folder: Path) -> tuple[Network, Oracle]:
    """The deployment in ``folder`` with its input files, and a DuckDB with the same rows."""
    oracle = Oracle()
    (folder / "visits").mkdir()
    oracle.execute(
        """
        CREATE TABLE visits AS SELECT TIMESTAMP '2026-01-05' + INTERVAL 1 MINUTE * i AS ts,
          printf('h%04d', i * 7 % 50) AS home, 'visitor ' || i % 11 AS who
        FROM range(0, 2160, 2) t(i)
        """
    )
    for part in range(4):
        some = f"(SELECT * FROM visits LIMIT 270 OFFSET {part * 270})"
        oracle.execute(f"COPY {some} TO '{folder}/visits/{part}.csv' (HEADER)")
    network = deployment(folder)
    generated = [stream for stream in network.streams if stream.name == "readings"]
    oracle.generated(Network(tuple(generated), ()))
    return network, oracle


def deployment(folder: Path) -> Network:
    """The network of the deployment in ``folder``."""
    return parse_deployment(DEPLOYMENT, "restart.yaml", folder).network


def delivered(folder: Path) -> dict[str, list[Row]]:
    """What is in the sinks by now."""
    out = folder / "out"
    files = {name: _from_files(out / name) for name in ("hourly", "high")}
    return files | {name: _from_database(out / "peaks.db", name) for name in ("peaks", "seen")}


def may_be_delivered(folder: Path) -> bool:
    """Whether something may be in every sink: asked often, beside those who write."""
    out = folder / "out"
    if not all(any((out / name).glob("batch=*")) for name in ("hourly", "high")):
        return False
    if not (out / "peaks.db").exists():
        return False
    with closing(sqlite3.connect(out / "peaks.db", timeout=30)) as database:
        made = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
        return all(
            name in made and database.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchone()
            for name in ("seen", "peaks")
        )


def _from_files(folder: Path) -> list[Row]:
    found = [one for one in folder.glob("batch=*/*") if one.suffix in (".parquet", ".json")]
    if not found:
        return []
    # Moments without a zone: DuckDB guesses them from JSON, and both are UTC.
    duck = duckdb.connect()
    duck.execute("SET TimeZone = 'UTC'").fetchall()
    table = duck.sql(f"SELECT * FROM '{folder}/batch=*/*{found[0].suffix}'").to_arrow_table()
    return rows_of(pa.table({name: table[name] for name in table.column_names if name != "batch"}))


def _from_database(path: Path, table: str) -> list[Row]:
    if not path.exists():
        return []
    duck_types = {
        "peaks": "home, since::TIMESTAMP, kwh, n",
        "seen": "ts::TIMESTAMP, home, who, kwh",
    }
    with sqlite3.connect(path, timeout=30) as database:
        names = database.execute("SELECT name FROM sqlite_master WHERE name = ?", (table,))
        if not names.fetchall():
            return []
        found = database.execute(f"SELECT * FROM {table}")
        columns = [one[0] for one in found.description]
        given = pa.Table.from_pylist([dict(zip(columns, row, strict=True)) for row in found])
    duck = duckdb.connect()
    return (
        rows_of(duck.sql(f"SELECT {duck_types[table]} FROM given").to_arrow_table())
        if given
        else []
    )


def main(folder: Path) -> None:
    """Runs the deployment to its end, in a Spark session of its own."""
    session = start_session("restart", SessionOptions(), folder / "spark.log")
    options = NodeOptions(trigger_ms=100, max_rows_per_batch=ROWS_PER_BATCH)
    with small_pieces(ROWS_PER_BATCH):
        engine = Engine(session, deployment(folder), StateFolder(folder / "state"), options)
        engine.start()
        engine.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
