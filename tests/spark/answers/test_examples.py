"""The examples, without their pace and with rows that come late, against DuckDB."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.lang.deployment import read_deployment
from penstock.model.engines import ENGINES, EngineName
from penstock.model.network import Network

from answers.oracle import Oracle, check_answers, in_memory, run, with_options

EXAMPLES = Path(__file__).parents[3] / "examples"

AMI = {
    "heavy_homes": "SELECT * FROM heavy",
    "district_load": "SELECT * FROM loads",
    "suspicious": """
        SELECT home, since, heavy.kwh, moment, loads.kwh FROM heavy, loads
        WHERE heavy.district = loads.district AND heavy.kwh > 100 * loads.kwh
          AND moment >= since AND moment - since <= INTERVAL 6 HOUR
        """,
    "network_peak": """
        SELECT time_bucket(INTERVAL 30 MINUTE, ts), sum(kwh), count(*) FROM readings
        WHERE date_part('hour', ts) IN (17, 18, 19, 20, 21) GROUP BY 1
        """,
}
AMI_VIEWS = """
    CREATE VIEW heavy AS
      SELECT home, district, since, sum(kwh) AS kwh FROM (
        SELECT *, unnest(generate_series(
          time_bucket(INTERVAL 30 MINUTE, ts) - INTERVAL 330 MINUTE,
          time_bucket(INTERVAL 30 MINUTE, ts), INTERVAL 30 MINUTE)) AS since
        FROM readings)
      GROUP BY home, district, since HAVING sum(kwh) > 9;
    CREATE VIEW loads AS
      SELECT district, date_trunc('hour', ts) + INTERVAL 1 HOUR AS moment, avg(kwh) AS kwh,
        max(kwh) AS peak_kwh
      FROM readings GROUP BY 1, 2
"""

NETWORK = {
    "by_source": """
        SELECT src, time_bucket(INTERVAL 10 SECOND, ts) + INTERVAL 10 SECOND, count(*), sum(bytes),
          max(bytes)
        FROM packets GROUP BY 1, 2
        """,
    "by_pair": "SELECT * FROM pairs",
    "link_load": """
        SELECT protocol, moment + INTERVAL 2 SECOND, sum(bytes) * 0.8::DOUBLE, avg(bytes), stddev(bytes)
        FROM (SELECT *, time_bucket(INTERVAL 2 SECOND, ts) + INTERVAL 2 SECOND * unnest(range(5)) AS moment
          FROM packets)
        GROUP BY 1, 2
        """,
    "flooded": "SELECT dst, moment, senders, packets FROM floods",
    "flooders": """
        SELECT pairs.moment, pairs.dst, src, pairs.packets, pairs.packets * 100.0::DOUBLE / floods.packets
        FROM pairs JOIN floods USING (dst, moment) WHERE pairs.packets > 100
        """,
}
NETWORK_VIEWS = """
    CREATE VIEW pairs AS
      SELECT src, dst, time_bucket(INTERVAL 5 SECOND, ts) + INTERVAL 5 SECOND AS moment,
        count(*) AS packets, sum(bytes) AS bytes
      FROM packets GROUP BY 1, 2, 3;
    CREATE VIEW floods AS
      SELECT dst, time_bucket(INTERVAL 5 SECOND, ts) + INTERVAL 5 SECOND AS moment,
        count(DISTINCT src) AS senders, count(*) AS packets
      FROM packets GROUP BY 1, 2 HAVING senders >= 250
"""


def hurried(name: str, stream: str, lateness_s: int, **options: object) -> Network:
    """An example's network with all rows due at once, and a lateness that loses some of them."""
    network = in_memory(read_deployment(EXAMPLES / name / f"{name}.yaml").network)
    network = with_options(network, stream, speedup=None, **options)
    (only,) = network.streams
    return replace(network, streams=(replace(only, lateness_us=lateness_s * 1_000_000),))


def check(
    session: SparkSession,
    network: Network,
    folder: Path,
    views: str,
    answers: Mapping[str, str],
    engine: EngineName = "light",
) -> None:
    oracle = Oracle().generated(network)
    oracle.execute(views)
    outcome = run(session, network, folder, max_rows_per_batch=4_000, chosen=engine)
    (stream,) = network.streams
    assert outcome.late(stream.name) == oracle.late[stream.name] > 0
    assert {query.name for query in network.queries} == set(answers)
    assert all(outcome.tables[name].num_rows for name in answers)
    check_answers(outcome, oracle, answers)


@pytest.mark.parametrize("engine", ENGINES)
def test_ami(session: SparkSession, tmp_path: Path, engine: EngineName) -> None:
    network = hurried("ami", "readings", 60, homes=80, days=4, disorder="5min")
    check(session, network, tmp_path, AMI_VIEWS, AMI, engine)


def test_network(session: SparkSession, tmp_path: Path) -> None:
    network = hurried("network", "packets", 1, rate=1200, seconds=15, disorder="2s")
    check(session, network, tmp_path, NETWORK_VIEWS, NETWORK)


@pytest.mark.parametrize("name", ["ami", "network", "nexmark"])
def test_an_example_ends_by_itself_and_loses_nothing(name: str) -> None:
    network = read_deployment(EXAMPLES / name / f"{name}.yaml").network
    oracle = Oracle().generated(network)
    assert set(oracle.late.values()) == {0}
