"""Queries that come late, disturbed while they catch up: their rows are those of a calm day."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

from penstock.feeds.lateness import sift
from system.under_test import Rows, UnderTest, _comparable
from waiting import until

# The past comes at once, the rest takes a minute. More than one batch takes of the past is held
# until the test lets it go, so that what is done to a query meanwhile meets it on its way.
PAST, REST, HELD_FROM, SPEEDUP = 300_000, 3_600, 260_000, 60
START = datetime(2026, 1, 1)
HELD = f"""
import time
from pathlib import Path

import pyarrow.compute as pc

GO, SEEN = (Path(__file__).with_name(name) for name in ("go", "seen"))

def held(batch):
    past = pc.and_(pc.greater_equal(batch["n"], {HELD_FROM}), pc.less(batch["n"], {PAST}))
    while pc.any(past).as_py() and not GO.exists():
        SEEN.touch()
        time.sleep(0.05)
    return batch
"""
STREAM = f"""
streams:
  rows:
    source: {{replay: rows.csv, speedup: {SPEEDUP}}}
    schema: ts timestamp, k int, n bigint
    event_time: ts
    lateness: 2s
queries:
  first: SELECT ts, n FROM rows WHERE n % 1000 = 0
"""
LATE = """
streams:
  held_NAME: {from: rows, python: "held:held", schema: "ts timestamp, k int, n bigint"}
queries:
  NAME: |
    SELECT window.start AS since, k, count(*) AS rows, sum(n) AS n
    FROM held_NAME GROUP BY k, window(ts, '10 seconds')
"""
EXPECTED = """
    SELECT time_bucket(INTERVAL 10 SECONDS, ts) AS since, k, count(*), sum(n)::bigint
    FROM rows WHERE since > '{since}' GROUP BY ALL
"""
AGAIN = "rows.2"


def arriving() -> pa.Table:
    """Rows in the order in which they come, some of them late."""
    times = [START + timedelta(microseconds=200 * at) for at in range(PAST)]
    times += [START + timedelta(seconds=60 + at) for at in range(REST)]
    times = [one - timedelta(seconds=9 * (at % 977 == 976)) for at, one in enumerate(times)]
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us")),
            "k": pa.array([at % 7 for at in range(len(times))], pa.int32()),
            "n": pa.array(range(len(times)), pa.int64()),
        }
    )


@pytest.fixture
def system(tmp_path: Path) -> Iterator[UnderTest]:
    pa_csv.write_csv(arriving(), tmp_path / "rows.csv")
    (tmp_path / "held.py").write_text(HELD)
    made = UnderTest(tmp_path, nodes=3)
    yield made
    made.stop()


def expected(since: str) -> Rows:
    """The windows that start after a time, by an engine that knows no streams."""
    whole = sift(arriving(), "ts", 2_000_000, None)
    assert whole.late.num_rows > 0
    with duckdb.connect() as database:
        database.register("kept", whole.kept)
        database.execute("CREATE TABLE rows AS SELECT * FROM kept")
        found = database.sql(EXPECTED.format(since=since)).to_arrow_table()
        utc = found.set_column(0, "since", found["since"].cast(pa.timestamp("us", "UTC")))
        return Rows(map(_comparable, utc.to_pylist()))


def is_catching_up(system: UnderTest) -> bool:
    """Whether the one from the start still reads what is made again for it."""
    return system.channel(AGAIN).has_reader("held_from_start")


def failed_over(system: UnderTest) -> set[str]:
    return {move.unit for move in system.catalog.moves() if move.by == "failover"}


def check(system: UnderTest, stream: str, since: str) -> None:
    rows, found = expected(since), system.rows(stream)
    missing, extra = rows - found, found - rows
    assert rows and not missing and not extra, (
        f"{stream}: {missing.total()} missing as {list(missing)[:3]}, "
        f"{extra.total()} too many as {list(extra)[:3]}"
    )


@pytest.mark.timeout(600)
def test_moved_and_killed_while_catching_up(system: UnderTest, tmp_path: Path) -> None:
    system.submit("rows", STREAM)
    until(lambda: system.count("rows") > HELD_FROM, 240, lambda: system.count("rows"))
    system.submit("early", LATE.replace("NAME", "from_start"), "start")
    system.submit("late", LATE.replace("NAME", "from_now"), "now")
    begins = {
        begin.queries[0]: begin
        for query in system.client.queries()
        for begin in query.begins
        if begin.queries
    }
    since = begins["from_now"].since
    assert (begins["from_start"].since, begins["from_start"].start) == (None, "start")
    assert since is not None

    # The first batch of the past is out, the second under way.
    until((tmp_path / "seen").exists, 240, "the rows that are held")
    assert system.count("held_from_start") > 0
    source = system.node_of("held_from_start")
    target = next(node for node in "abc" if node != source)
    assert system.move("held_from_start", target) == "done"
    assert system.node_of("held_from_start") == target

    (tmp_path / "seen").unlink()
    until((tmp_path / "seen").exists, 120, "its new owner has come to them as well")
    system.kill_node_until(
        target,
        lambda: "held_from_start" in failed_over(system),
        "it is given to another node",
    )
    victim = system.node_of("from_now")
    if victim != target:
        system.kill_node(victim)
    assert is_catching_up(system), "it has caught up before it was disturbed"

    (tmp_path / "go").touch()
    until(lambda: not is_catching_up(system), 240, "it has caught up")
    system.await_finished(240)
    check(system, "from_start", "0001-01-01")
    check(system, "from_now", since)
