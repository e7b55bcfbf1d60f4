"""Real recordings: logs that are out of order by minutes, meters, every kind of file.

DuckDB reads the recordings itself, so that reading them is tested as well.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.spark.engine import Engine
from penstock.spark.node import NodeOptions
from penstock.spark.state import StateFolder
from waiting import until

from answers.oracle import (
    Oracle,
    check_answers,
    check_same,
    collected,
    deployed,
    rows_of,
    run,
    small_pieces,
)

DATA = Path(__file__).parents[4] / "shared" / "data"
pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason="real recordings are not in ../shared/data"
)

ENDS = "ts timestamp, uid string, orig_h string, orig_p int, resp_h string, resp_p int"
LOGS = {
    "dns": f"{ENDS}, proto string, rtt double, query string, qtype string, rcode string",
    "ssl": f"{ENDS}, version string, server string, resumed string, established string",
    "weird": f"{ENDS}, name string, source string",
}
# The logs as they are: their first line is set aside as no row.
LOG = """
  {name}:
    source: {{replay: "{path}", format: csv, delimiter: "\\t", header: false, null: "-"}}
    schema: {schema}
    event_time: ts
    lateness: {lateness_s} s
"""
LOG_QUERIES = """
queries:
  names_asked: |
    SELECT orig_h, window.start AS since, count(*) AS asked, count(rtt) AS answered,
           avg(rtt) AS rtt, max(query) AS last_name, count_if(rcode = 'NXDOMAIN') AS unknown
    FROM dns GROUP BY orig_h, window(ts, '1 minute')
  busy_servers: |
    SELECT resp_h, resp_p, window.end AS until, count(*) AS n, min(ts) AS earliest
    FROM ssl GROUP BY resp_h, resp_p, window(ts, '5 minutes', '1 minute') HAVING count(*) > 100
  asked_then_opened: |
    SELECT d.ts AS asked, s.ts AS opened, d.orig_h, d.query, s.resp_h
    FROM dns d JOIN ssl s ON d.orig_h = s.orig_h AND s.ts BETWEEN d.ts AND d.ts + INTERVAL 2 SECONDS
    WHERE d.qtype = 'AAAA' AND s.established = 'T'
  odd_connections: |
    SELECT w.ts, w.uid, w.name, s.version, s.ts AS opened
    FROM weird w LEFT JOIN ssl s
      ON w.uid = s.uid AND s.ts >= w.ts - INTERVAL 20 SECONDS AND s.ts < w.ts + INTERVAL 5 SECONDS
  looked_up:
    sql: &looked_up |
      SELECT d.ts AS asked, s.ts AS opened, d.orig_h, d.query, s.version
      FROM dns d JOIN ssl s ON d.orig_h = s.orig_h AND d.query = s.server
        AND s.ts BETWEEN d.ts AND d.ts + INTERVAL 2 MINUTES
      WHERE d.rcode = 'NOERROR' AND s.resumed = 'F'
    join: partitioned
  looked_up_native:
    sql: *looked_up
    join: native
  everything: |
    WITH seen AS (
      SELECT ts, 'dns' AS log, orig_h AS host FROM dns
      UNION ALL SELECT ts, 'ssl' AS log, orig_h AS host FROM ssl
      UNION ALL SELECT ts, name AS log, orig_h AS host FROM weird WHERE resp_p = 80)
    SELECT host, log, window.start AS since, count(*) AS n
    FROM seen GROUP BY host, log, window(ts, '30 seconds')
"""
LOOKED_UP = """
    SELECT dns.ts, ssl.ts, dns.orig_h, query, ssl.version FROM dns, ssl
    WHERE dns.orig_h = ssl.orig_h AND query = server AND rcode = 'NOERROR' AND resumed = 'F'
      AND epoch_us(ssl.ts) - epoch_us(dns.ts) BETWEEN 0 AND 120000000
    """
LOG_ANSWERS = {
    "names_asked": """
        SELECT orig_h, date_trunc('minute', ts), count(*), count(rtt), avg(rtt), max(query),
          count(*) FILTER (WHERE rcode = 'NXDOMAIN')
        FROM dns GROUP BY 1, 2
        """,
    "busy_servers": """
        SELECT resp_h, resp_p, until, count(*), min(ts)
        FROM (FROM ssl SELECT *,
          date_trunc('minute', ts) + INTERVAL 1 MINUTE * unnest(range(1, 6)) AS until)
        GROUP BY 1, 2, 3 HAVING count(*) > 100
        """,
    "asked_then_opened": """
        SELECT dns.ts, ssl.ts, dns.orig_h, query, ssl.resp_h FROM dns, ssl
        WHERE dns.orig_h = ssl.orig_h AND qtype = 'AAAA' AND established = 'T'
          AND epoch_us(ssl.ts) - epoch_us(dns.ts) BETWEEN 0 AND 2000000
        """,
    "odd_connections": """
        SELECT weird.ts, weird.uid, name, version, ssl.ts FROM weird LEFT JOIN ssl
          ON weird.uid = ssl.uid AND epoch_us(ssl.ts) - epoch_us(weird.ts) >= -20000000
            AND epoch_us(ssl.ts) - epoch_us(weird.ts) < 5000000
        """,
    "looked_up": LOOKED_UP,
    "looked_up_native": LOOKED_UP,
    "everything": """
        SELECT host, log, make_timestamp(part * 30000000), count(*) FROM (
          SELECT orig_h AS host, 'dns' AS log, epoch_us(ts) // 30000000 AS part FROM dns
          UNION ALL SELECT orig_h, 'ssl', epoch_us(ts) // 30000000 FROM ssl
          UNION ALL SELECT orig_h, name, epoch_us(ts) // 30000000 FROM weird WHERE resp_p = 80)
        GROUP BY host, log, part
        """,
}


def read_log(oracle: Oracle, name: str, lateness_s: int) -> None:
    """Lets DuckDB read a log; its seconds are decimal numbers with six digits."""
    columns = {one.split()[0]: "VARCHAR" for one in LOGS[name].split(", ")}
    typed = (
        "make_timestamp(CAST(CAST(ts AS DECIMAL(20, 6)) * 1000000 AS BIGINT)) AS ts, "
        "CAST(orig_p AS INT) AS orig_p, CAST(resp_p AS INT) AS resp_p"
    )
    if name == "dns":
        typed += ", CAST(rtt AS DOUBLE) AS rtt"
    oracle.execute(
        f"""
        CREATE TABLE {name}_arrivals AS
        SELECT * REPLACE ({typed}), row_number() OVER () AS arrival FROM read_csv(
          '{DATA}/net_wrccdc2018_zeek_{name}.tsv.gz', delim = '\t', header = false, skip = 1,
          columns = {columns}, nullstr = '-', quote = '', parallel = false)
        """
    )
    oracle.sift(name, "ts", lateness_s * 1_000_000)


@pytest.mark.parametrize(("lateness_s", "late"), [(45, True), (900, False)])
def test_logs_out_of_order(
    lateness_s: int, late: bool, session: SparkSession, tmp_path: Path
) -> None:
    oracle, text = Oracle(), "streams:"
    for name, schema in LOGS.items():
        read_log(oracle, name, lateness_s)
        path = DATA / f"net_wrccdc2018_zeek_{name}.tsv.gz"
        text += LOG.format(name=name, path=path, schema=schema, lateness_s=lateness_s)
    outcome = run(session, deployed(text + LOG_QUERIES, tmp_path), tmp_path, 20_000)
    assert {name: outcome.late(name) for name in LOGS} == oracle.late
    assert (oracle.late["dns"] > 1_000 and oracle.late["ssl"] > 300) == late
    assert all(outcome.set_aside[name]["malformed"] == 1 for name in LOGS)
    check_answers(outcome, oracle, LOG_ANSWERS)


HOUSES = "id bigint, ts timestamp, watts double, property int, plug int, household int, house int"
HOUSE_SQL = """
      SELECT house, window.start AS since, count(*) AS n, avg(watts) AS watts, max(watts) AS peak
      FROM {name} GROUP BY house, window(ts, '15 minutes')
"""
HOUSE_ANSWER = """
    SELECT house, time_bucket(INTERVAL 15 MINUTE, ts), count(*), avg(watts), max(watts)
    FROM houses GROUP BY 1, 2
"""
HOMES_SQL = """
      SELECT customer, window.start AS day, count(*) AS n, sum(kwh) AS kwh
      FROM homes GROUP BY customer, window(reading_datetime, '1 day')
"""
HOMES_ANSWER = """
    SELECT customer, date_trunc('day', reading_datetime), count(*), sum(kwh) FROM homes GROUP BY 1, 2
"""
METERS = f"""
streams:
  recorded:
    source: {{replay: "{DATA}/meter_debs2014_40houses_minute.csv.gz", header: false}}
    schema: {HOUSES}
    event_time: ts
    lateness: 0s
  from_csv:
    source: {{directory: csv, format: csv, finished: true, delimiter: ";"}}
    schema: {HOUSES}
    event_time: ts
    lateness: 0s
  from_json: {{source: {{replay: houses.json.gz}}, schema: "{HOUSES}", event_time: ts, lateness: 0s}}
  from_parquet:
    source: {{directory: parquet, format: parquet, pattern: "*.parquet", finished: true}}
    schema: {HOUSES}
    event_time: ts
    lateness: 0s
  homes:
    source: {{replay: homes.csv}}
    schema: reading_datetime timestamp, customer bigint, kwh double
    event_time: reading_datetime
    lateness: 1h
queries:
  recorded_load: |{HOUSE_SQL.format(name="recorded")}
  csv_load: |{HOUSE_SQL.format(name="from_csv")}
  json_load: |{HOUSE_SQL.format(name="from_json")}
  parquet_load: |{HOUSE_SQL.format(name="from_parquet")}
  homes_load: |{HOMES_SQL}
"""


@pytest.fixture
def meters(tmp_path: Path) -> Iterator[Oracle]:
    """DuckDB with the houses' meters, which it also writes as files of every kind."""
    oracle = Oracle()
    columns = {one.split()[0]: "DOUBLE" for one in HOUSES.split(", ")}
    oracle.execute(
        f"""
        CREATE TABLE houses AS SELECT CAST(id AS BIGINT) AS id,
          make_timestamp(CAST(ts AS BIGINT) * 1000000) AS ts, watts, CAST(property AS INT) AS property,
          CAST(plug AS INT) AS plug, CAST(household AS INT) AS household, CAST(house AS INT) AS house
        FROM read_csv('{DATA}/meter_debs2014_40houses_minute.csv.gz', header = false,
          columns = {columns}, parallel = false)
        """
    )
    oracle.execute(
        f"""
        CREATE TABLE homes AS SELECT reading_datetime, customer_id AS customer, general_supply_kwh AS kwh
        FROM read_csv('{DATA}/meter_sgsc_50homes_halfhour.csv.gz', parallel = false,
          columns = {{'reading_datetime': 'TIMESTAMP', 'customer_id': 'BIGINT',
            'general_supply_kwh': 'DOUBLE'}}) LIMIT 30000
        """
    )
    yield oracle


def test_meters_in_files_of_every_kind(
    meters: Oracle, session: SparkSession, tmp_path: Path
) -> None:
    for folder in ("csv", "parquet"):
        (tmp_path / folder).mkdir()
    for part in range(3):
        low, high = part * 15_000, (part + 1) * 15_000
        some = f"(SELECT * FROM houses LIMIT {high - low} OFFSET {low})"
        meters.execute(f"COPY {some} TO '{tmp_path}/csv/{part}.csv' (DELIMITER ';')")
        meters.execute(f"COPY {some} TO '{tmp_path}/parquet/{part}.parquet'")
    meters.execute(f"COPY houses TO '{tmp_path}/houses.json.gz' (FORMAT json)")
    homes = "(SELECT strftime(reading_datetime, '%Y-%m-%d %H:%M') AS reading_datetime, customer, kwh FROM homes)"
    meters.execute(f"COPY {homes} TO '{tmp_path}/homes.csv'")
    network = deployed(METERS, tmp_path)
    outcome = run(session, network, tmp_path / "state", max_rows_per_batch=12_000)
    expected = meters.rows(HOUSE_ANSWER)
    for name in ("recorded_load", "csv_load", "json_load", "parquet_load"):
        check_same(outcome.rows(name), expected, name)
    check_same(outcome.rows("homes_load"), meters.rows(HOMES_ANSWER), "homes_load")


ARRIVING = f"""
streams:
  houses:
    source: {{directory: arriving, format: json}}
    schema: {HOUSES}
    event_time: ts
    lateness: 1min
queries:
  loads:
    sql: |
      SELECT house, window.start AS since, count(*) AS n, avg(watts) AS watts, max(watts) AS peak
      FROM houses GROUP BY house, window(ts, '15 minutes')
    to: memory
"""


def test_files_that_arrive_while_it_runs(
    meters: Oracle, session: SparkSession, tmp_path: Path
) -> None:
    """Each file is put there when the one before has been read; those in the making are left."""
    arriving = tmp_path / "arriving"
    arriving.mkdir()
    meters.execute("CREATE TABLE few AS SELECT * FROM houses LIMIT 6000")
    closed = (
        f"SELECT * FROM ({HOUSE_ANSWER.replace('houses', 'few')}) t(house, since, n, watts, peak)"
    )
    # All but the windows that the last row, less the lateness, falls into are closed.
    closed += " WHERE since + INTERVAL 15 MINUTE <= (SELECT max(ts) - INTERVAL 1 MINUTE FROM few)"
    network = deployed(ARRIVING, tmp_path)
    engine = Engine(session, network, StateFolder(tmp_path / "state"), NodeOptions(trigger_ms=100))
    try:
        with small_pieces(1_000):
            engine.start()
            for part in range(3):
                some = f"(SELECT * FROM few LIMIT 2000 OFFSET {part * 2_000})"
                meters.execute(f"COPY {some} TO '{arriving}/{part}.json.tmp' (FORMAT json)")
                time.sleep(0.2)
                (arriving / f"{part}.json.tmp").rename(arriving / f"{part}.json")
                await_rows_in(engine, (part + 1) * 2_000)
            expected = meters.rows(closed)
            await_rows_out(engine, len(expected))
    finally:
        engine.stop()
    assert len(expected) > 100
    check_same(rows_of(collected(engine)["loads"]), expected, "loads")


def await_rows_in(engine: Engine, count: int) -> None:
    until(
        lambda: sum(one.rows_in for one in engine.status()) >= count,
        120,
        engine.status,
        engine.check,
    )


def await_rows_out(engine: Engine, count: int) -> None:
    until(
        lambda: sum(one.rows_out for one in engine.status()) >= count,
        120,
        engine.status,
        engine.check,
    )
