"""A join in parts on real nodes: groups move, a node dies in mid-stream, no pair is lost."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

import duckdb
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

from system.under_test import Rows, UnderTest, _comparable
from waiting import until

ROWS, SPEEDUP = 12_000, 8
START = datetime(2026, 1, 1)
WITHIN = "r.at BETWEEN l.ts - INTERVAL 4 SECONDS AND l.ts + INTERVAL 2 SECONDS"
DEPLOYMENT = f"""
streams:
  calls:
    source: {{replay: calls.csv, speedup: {SPEEDUP}}}
    schema: ts timestamp, k string, n bigint
    event_time: ts
    lateness: 1s
  taps:
    source: {{replay: taps.csv, speedup: {SPEEDUP}}}
    schema: at timestamp, k string, m bigint
    event_time: at
    lateness: 1s
queries:
  pairs:
    sql: SELECT l.ts, l.n, r.m FROM calls l LEFT JOIN taps r ON l.k = r.k AND {WITHIN}
    join: {{spread: 2, groups: 12}}
  counts:
    sql: SELECT window.start AS since, count(*) AS n FROM pairs GROUP BY window(ts, '1 minute')
"""
PAIRS = f"SELECT l.ts, l.n, r.m FROM calls l LEFT JOIN taps r ON l.k = r.k AND {WITHIN}"
COUNTS = f"SELECT time_bucket(INTERVAL 1 MINUTE, ts) AS since, count(*) FROM ({PAIRS}) GROUP BY 1"


def side(time: str, number: str, seed: int) -> pa.Table:
    """Ten minutes of rows, in order."""
    random = Random(seed)
    times = sorted(random.randrange(600_000) for _ in range(ROWS))
    return pa.table(
        {
            time: pa.array([START + timedelta(milliseconds=ms) for ms in times]),
            "k": [f"k{random.randrange(200)}" for _ in times],
            number: pa.array(range(ROWS), pa.int64()),
        }
    )


@pytest.fixture
def system(tmp_path: Path) -> Iterator[UnderTest]:
    pa_csv.write_csv(side("ts", "n", 1), tmp_path / "calls.csv")
    pa_csv.write_csv(side("at", "m", 2), tmp_path / "taps.csv")
    made = UnderTest(tmp_path, nodes=2)
    yield made
    made.stop()


def expected(query: str) -> Rows:
    """What an engine gives that knows no streams."""
    with duckdb.connect() as database:
        database.register("calls_rows", side("ts", "n", 1))
        database.register("taps_rows", side("at", "m", 2))
        database.execute("CREATE TABLE calls AS FROM calls_rows")
        database.execute("CREATE TABLE taps AS FROM taps_rows")
        found = database.sql(query).to_arrow_table()
        at = found.column_names[0]
        utc = found.set_column(0, at, found[at].cast(pa.timestamp("us", "UTC")))
        return Rows(map(_comparable, utc.to_pylist()))


def owned(system: UnderTest, node: str) -> set[int]:
    (join,) = system.client.joins()
    return {group for part in join.parts if part.node == node for group in part.groups}


@pytest.mark.timeout(900)
def test_groups_move_and_a_node_dies_in_mid_stream(system: UnderTest) -> None:
    system.submit("joins", DEPLOYMENT)
    until(lambda: system.count("pairs") > 500, 240, lambda: system.count("pairs"))
    assert system.node_of("pairs_part1") != system.node_of("pairs_part2")
    first, second = system.node_of("pairs_part1"), system.node_of("pairs_part2")
    before = owned(system, second)
    assert system.move("pairs:0,2", second) == "done"
    assert owned(system, second) == before | {0, 2}
    assert system.move("pairs:1", first) == "done"

    system.client.move("pairs:4-6", second)
    system.kill_node(second)
    assert not any(part.has_ended for part in system.client.joins()[0].parts), "it was over before"
    until(lambda: not system.catalog.moves(open_only=True), 240, "the move has ended")
    system.await_finished(400)
    for stream, query in (("pairs", PAIRS), ("counts", COUNTS)):
        rows, found = expected(query), system.rows(stream)
        missing, extra = rows - found, found - rows
        assert rows and not missing and not extra, (
            f"{stream}: {missing.total()} missing as {list(missing)[:3]}, "
            f"{extra.total()} too many as {list(extra)[:3]}"
        )
    moves = [move for move in system.client.moves(50) if "groups" in move.numbers]
    assert [move.state for move in moves] == ["done", "done", "done"]
