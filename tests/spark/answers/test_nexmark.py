"""NEXMark on Penstock against the same questions asked of DuckDB, with rows out of order and late.

The answers are written from what the benchmark asks, not from our SQL.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.lang.deployment import read_deployment
from penstock.lang.sql import KnownNames, parse_query
from penstock.model.engines import ENGINES
from penstock.model.network import Network

from answers.oracle import Oracle, Outcome, check_answers, in_memory, run, with_options

FOLDER = Path(__file__).parents[3] / "examples" / "nexmark"
EVENTS = {"events": 8_000, "rate": 200, "speedup": None}

# Persons arrive out of order but in time; of auctions and bids some come too late.
DISORDER = {"persons": ("2s", 2), "auctions": ("5s", 1), "bids": ("3s", 1)}

ANSWERS = {
    "q0": "SELECT auction, bidder, price, channel, url, ts FROM bids",
    "q1": "SELECT auction, bidder, price * 0.908::DOUBLE, ts FROM bids",
    "q2": "SELECT auction, price, ts FROM bids WHERE mod(auction, 123) = 0",
    "q3": """
        SELECT name, city, state, auctions.id, auctions.ts
        FROM auctions, persons
        WHERE seller = persons.id AND category = 10 AND (state = 'OR' OR state = 'ID' OR state = 'CA')
          AND epoch_us(auctions.ts) - epoch_us(persons.ts) BETWEEN 0 AND 3600000000
        """,
    "q5": """
        SELECT auction, num, make_timestamp(slide * 2000000), make_timestamp(slide * 2000000 + 10000000)
        FROM (
          SELECT auction, slide, count(*) AS num, rank() OVER (PARTITION BY slide ORDER BY num DESC) AS place
          FROM (SELECT auction, epoch_us(ts) // 2000000 - unnest(range(5)) AS slide FROM bids)
          GROUP BY auction, slide)
        WHERE place = 1
        """,
    "q7": """
        SELECT auction, price, bidder, ts FROM bids
        QUALIFY price = max(price) OVER (PARTITION BY epoch_us(ts) // 10000000)
        """,
    "q8": """
        SELECT DISTINCT persons.id, name, make_timestamp(epoch_us(persons.ts) // 10000000 * 10000000),
          make_timestamp(epoch_us(persons.ts) // 10000000 * 10000000 + 10000000)
        FROM persons
        WHERE EXISTS (FROM auctions WHERE seller = persons.id
          AND epoch_us(auctions.ts) // 10000000 = epoch_us(persons.ts) // 10000000)
        """,
    "q11": """
        SELECT bidder, count(*), min(ts), max(ts) + INTERVAL 10 SECOND
        FROM (
          SELECT bidder, ts, count(*) FILTER (first) OVER by_time AS session FROM (
            SELECT bidder, ts,
              coalesce(ts - lag(ts) OVER by_time > INTERVAL 10 SECOND, true) AS first
            FROM bids WINDOW by_time AS (PARTITION BY bidder ORDER BY ts))
          WINDOW by_time AS (PARTITION BY bidder ORDER BY ts))
        GROUP BY bidder, session
        """,
    "q20": """
        SELECT auction, bidder, price, channel, url, bids.ts, item_name, description, initial_bid,
          reserve, auctions.ts, expires, seller, category
        FROM bids, auctions
        WHERE auction = id AND category = 10
          AND bids.ts >= auctions.ts AND bids.ts - auctions.ts <= INTERVAL 1 DAY
        """,
    "q21": """
        SELECT auction, bidder, price, channel, ts, number FROM (
          SELECT *, coalesce(
            (list_position(['Apple', 'Google', 'Facebook', 'Baidu'], channel) - 1)::VARCHAR,
            nullif(split_part(split_part(url, '&channel_id=', 2), '&', 1), '')) AS number
          FROM bids)
        WHERE number IS NOT NULL
        """,
    "q22": """
        SELECT auction, bidder, price, channel, ts, parts[4], parts[5], parts[6]
        FROM (SELECT *, string_split(url, '/') AS parts FROM bids)
        """,
}


@pytest.fixture(scope="module")
def network() -> Network:
    whole = in_memory(read_deployment(FOLDER / "nexmark.yaml").network)
    for name, (disorder, lateness_s) in DISORDER.items():
        whole = with_options(whole, name, disorder=disorder, **EVENTS)
        streams = (
            replace(stream, lateness_us=lateness_s * 1_000_000) if stream.name == name else stream
            for stream in whole.streams
        )
        whole = replace(whole, streams=tuple(streams))
    return whole


@pytest.fixture(scope="module")
def oracle(network: Network) -> Oracle:
    return Oracle().generated(network)


@pytest.fixture(scope="module", params=ENGINES)
def outcome(
    request: pytest.FixtureRequest,
    session: SparkSession,
    network: Network,
    tmp_path_factory: pytest.TempPathFactory,
) -> Outcome:
    folder = tmp_path_factory.mktemp("nexmark")
    return run(session, network, folder, max_rows_per_batch=1_800, chosen=request.param)


def test_every_query_is_asked(network: Network) -> None:
    assert {query.name for query in network.queries} == set(ANSWERS)


def test_the_queries_are_those_beside_the_deployment(network: Network) -> None:
    shapes = {stream.name: stream.shape for stream in network.streams}
    for query in network.queries:
        text = (FOLDER / f"{query.name}.sql").read_text(encoding="utf-8")
        written = parse_query(query.name, text, KnownNames(shapes)).operators
        deployed = parse_query(query.name, query.text, KnownNames(shapes)).operators
        assert written == deployed, query.name


def test_rows_were_late_and_batches_several(outcome: Outcome, oracle: Oracle) -> None:
    assert {name: outcome.late(name) for name in DISORDER} == oracle.late
    assert oracle.late["persons"] == 0
    assert oracle.late["auctions"] > 10
    assert oracle.late["bids"] > 100
    assert all(outcome.batches[one] >= 4 for one in ("q0", "q11", "q5_counts", "q20"))


@pytest.mark.parametrize("query", ANSWERS)
def test_answer(query: str, outcome: Outcome, oracle: Oracle) -> None:
    assert outcome.tables[query].num_rows > 0
    check_answers(outcome, oracle, {query: ANSWERS[query]})
