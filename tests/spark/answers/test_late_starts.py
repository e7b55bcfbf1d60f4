"""A query that is added later gives what is whole after its beginning, whatever channels hold."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.errors import InputError
from penstock.feeds.arrow import arrow_schema
from penstock.model.schema import Schema
from waiting import until

from answers.late_starts import LateStarts
from answers.oracle import Oracle, check_same, rows_of
from answers.random_pipelines import Grouped, Pipeline
from answers.random_queries import duck_query, penstock_query
from answers.test_random_pipelines import (
    DEPLOYMENT,
    query_text,
    random_streams,
    telling,
    write_json,
)
from answers.test_random_pipelines import SCHEMA as RANDOM_SCHEMA

SCHEMA = Schema.parse("ts timestamp, k string, v bigint")
START = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATENESS_US = 4_000_000

STREAM = """
streams:
  a: {{source: {{replay: a.json}}, schema: "{schema}", event_time: ts, lateness: 4s}}
queries:
  all_of_it: SELECT ts, k, v FROM a WHERE v >= 0
  tens: |
    SELECT window.start AS since, window.end AS until, k, sum(v) AS v FROM a
    GROUP BY k, window(ts, '10 seconds')
"""
LATE = """
queries:
  minutes: |
    SELECT window.start AS since, count(*) AS n, sum(v) AS v FROM a
    GROUP BY window(ts, '30 seconds', '10 seconds')
  high: SELECT ts, k, v FROM a WHERE v > 3
  calls: |
    SELECT session_window.start AS since, session_window.end AS until, k, count(*) AS n FROM a
    GROUP BY k, session_window(ts, '3 seconds')
  over_tens: |
    SELECT window.start AS since, sum(v) AS v, count(*) AS n FROM tens
    GROUP BY window(until, '40 seconds')
  beside: |
    SELECT l.ts, l.v, r.v AS other FROM a l LEFT JOIN a r
    ON l.k = r.k AND r.ts BETWEEN l.ts - INTERVAL 5 SECONDS AND l.ts - INTERVAL 1 SECONDS
"""
# The rule for each, on all rows of the stream; begin is the event time b.
ANSWERS = {
    "minutes": """
        SELECT s, count(*), sum(v) FROM (
          SELECT *, make_timestamp(unnest(range(epoch_us(ts) // 10000000 - 2,
            epoch_us(ts) // 10000000 + 1)) * 10000000) AS s FROM a)
        WHERE s > begin() GROUP BY s
        """,
    "high": "SELECT ts, k, v FROM a WHERE v > 3 AND ts > begin()",
    "calls": """
        SELECT min(ts) AS since, max(ts) + INTERVAL 3 SECONDS, k, count(*) FROM (
          SELECT *, sum(f) OVER (PARTITION BY k ORDER BY ts) AS n FROM (
            SELECT *, CASE WHEN ts - lag(ts) OVER (PARTITION BY k ORDER BY ts)
              <= INTERVAL 3 SECONDS THEN 0 ELSE 1 END AS f FROM a))
        GROUP BY k, n HAVING min(ts) > begin() + INTERVAL 3 SECONDS
        """,
    "over_tens": """
        SELECT s, sum(v), count(*) FROM (
          SELECT time_bucket(INTERVAL 40 SECONDS, until, TIMESTAMP '1970-01-01') AS s, * FROM (
            SELECT time_bucket(INTERVAL 10 SECONDS, ts) + INTERVAL 10 SECONDS AS until, k,
              sum(v) AS v FROM a GROUP BY 1, 2))
        WHERE s > begin() + INTERVAL 10 SECONDS GROUP BY s
        """,
    "beside": """
        SELECT l.ts, l.v, r.v FROM a l LEFT JOIN a r ON l.k = r.k
        AND r.ts BETWEEN l.ts - INTERVAL 5 SECONDS AND l.ts - INTERVAL 1 SECONDS
        WHERE l.ts > begin() + INTERVAL 5 SECONDS
        """,
}


def arriving(count: int = 240) -> pa.Table:
    """Rows about a second apart, out of order by up to 6 seconds."""
    shift = (0, -3, 2, -6, 0, 1, -1)
    rows = [
        {
            "ts": START + timedelta(seconds=at * 0.75 + shift[at % 7]),
            "k": "xyz"[at * 7 % 3],
            "v": at * 5 % 11,
        }
        for at in range(count)
    ]
    return pa.Table.from_pylist(rows, arrow_schema(SCHEMA))


@pytest.fixture
def oracle(tmp_path: Path) -> Oracle:
    rows = arriving()
    write_json(rows, tmp_path / "a.json")
    made = Oracle()
    made.arrivals("a", rows, "ts", LATENESS_US)
    return made


@pytest.fixture
def late(session: SparkSession, tmp_path: Path) -> Iterator[LateStarts]:
    with LateStarts(session, tmp_path) as made:
        yield made


def begin_at(oracle: Oracle, since_us: int | None) -> None:
    oracle.execute(
        f"CREATE OR REPLACE MACRO begin() AS make_timestamp({-(10**15) if since_us is None else since_us})"
    )


def check(late: LateStarts, oracle: Oracle) -> None:
    for query, sql in ANSWERS.items():
        beginning = late.begun.get(query)
        begin_at(oracle, None if beginning is None else beginning.since_us)
        check_same(rows_of(late.rows(query)), oracle.rows(sql), query)


def highest_us(count: int) -> int:
    """The latest event time of the first rows."""
    return max(arriving()["ts"].cast(pa.int64()).to_pylist()[:count])


def test_from_now_on(late: LateStarts, oracle: Oracle) -> None:
    early = late.submit(STREAM.format(schema=SCHEMA))
    late.run(early)
    late.bring_in({"a": 6})
    late.catch_up()
    late.run(late.submit(LATE))
    late.finish()
    # Decided by how far the stream had come, and by nothing else.
    assert {one.since_us for one in late.begun.values()} == {highest_us(6 * 15)}
    assert set(late.begun) == set(ANSWERS)
    check(late, oracle)


def test_from_the_oldest_rows_kept(late: LateStarts, oracle: Oracle) -> None:
    early = late.submit(STREAM.format(schema=SCHEMA))
    late.run(early)
    late.bring_in({"a": 4})
    late.catch_up()
    # Said now and then, not with every batch.
    until(lambda: (late.channel("a").needed_from() or 0) >= 2, what="readers say how far they are")
    # Kept from here on, though those who were there have read it.
    late.channel("a").register("somebody")
    late.channel("a").advance("somebody", 2)
    late.bring_in({"a": 3})
    late.catch_up()
    first = late.channel("a").oldest()
    assert first == 2
    late.run(late.submit(LATE, "oldest"))
    late.channel("a").forget("somebody")
    late.finish()
    assert late.begun["minutes"].since_us == highest_us(15 * (first + 1))
    check(late, oracle)


def test_from_the_start(late: LateStarts, oracle: Oracle) -> None:
    early = late.submit(STREAM.format(schema=SCHEMA))
    late.run(early)
    late.bring_in({"a": 9})
    late.catch_up()
    added = late.submit(LATE, "start")
    # What over_tens reads is computed again for it, beside the stream.
    names = {unit.name for unit in added}
    assert names == {"a.2", "tens_again_2", *ANSWERS}
    late.bring_in({"a": 1})
    assert late.channel("a").oldest() > 0, "the first rows are gone"
    late.run(added)
    late.finish()
    begin_at(oracle, None)
    for query, sql in ANSWERS.items():
        check_same(rows_of(late.rows(query)), oracle.rows(sql), query)
    assert late.channel("a.2").oldest() > 0, "nobody needs it any more"


def made_late(random: Random, oracle: Oracle) -> Pipeline:
    """A pipeline with a result and without sessions, of which any late start gives a part."""
    while True:
        one = telling(random, oracle)
        if not any(isinstance(part, Grouped) and part.slide_us is None for part in one.parts):
            return one


@pytest.mark.parametrize("seed", [5])
def test_random_pipelines_that_begin_late(seed: int, late: LateStarts) -> None:
    """What comes is what the whole streams give, after the time by which it is said to count."""
    random = Random(seed)
    oracle = random_streams(random, late.folder)
    streams, tables = DEPLOYMENT.format(schema=RANDOM_SCHEMA).split("tables:")
    late.submit(streams)
    late.bring_in({"a": random.randint(1, 5), "b": random.randint(1, 4)})
    made = {f"q{at}": made_late(random, oracle) for at in range(5)}
    texts = [query_text(name, penstock_query(one)) for name, one in made.items()]
    late.run(late.submit(f"tables:{tables}{''.join(texts)}"))
    late.finish()
    total = 0
    for name, one in made.items():
        given = late.since(name).given
        after = "".join(f" WHERE epoch_us({column}) > {us}" for column, us in given.items())
        expected = oracle.rows(f"SELECT * FROM ({duck_query(one)}){after}")
        total += len(expected)
        check_same(rows_of(late.rows(name)), expected, f"seed {seed}, {name}: {one}")
    assert total, "a test that could not fail"


def test_before_anything_was_freed_the_oldest_is_all(late: LateStarts, oracle: Oracle) -> None:
    early = late.submit(STREAM.format(schema=SCHEMA))
    late.bring_in({"a": 3})
    late.run([*early, *late.submit(LATE, "oldest")])
    late.finish()
    assert {one.since_us for one in late.begun.values()} <= {None}
    check(late, oracle)


def test_what_has_ended_gives_nothing_from_now_on(late: LateStarts, oracle: Oracle) -> None:
    late.submit(STREAM.format(schema=SCHEMA))
    late.bring_in({"a": 100})
    with pytest.raises(InputError, match="a has ended: minutes would see no rows if it began now"):
        late.submit("queries:\n  minutes: SELECT ts, v FROM a WHERE v > 3\n")
