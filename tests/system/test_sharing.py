"""Sharing is invisible: shared and not, the same rows, whoever is dropped or killed meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

from penstock.control.answer_models import SubmittedAnswer
from system.under_test import Rows, UnderTest
from waiting import until

START = datetime(2026, 1, 1)
PER_S, SPEEDUP, SECONDS = 20, 20, 2_400
STREAM = f"""
streams:
  rows:
    source: {{replay: rows.csv, speedup: {SPEEDUP}}}
    schema: ts timestamp, k int, n bigint
    event_time: ts
    lateness: 2s
"""
BUSY = """
    SELECT window.start AS since, k, count(*) AS rows, sum(n) AS n
    FROM rows GROUP BY k, window(ts, '10 seconds') HAVING sum(n) % 3 > 0
"""
ALL = """
    SELECT sum(n) AS total, window.start AS begun, k AS kind, window.end AS till, count(*) AS many
    FROM rows GROUP BY window(ts, '10 seconds'), k
"""
SAME = """
    WITH w AS (SELECT k AS key, sum(n) AS s, count(*) AS c, window.start AS at
               FROM rows GROUP BY k, window(ts, '10 seconds'))
    SELECT at AS since, key AS k, c AS rows, s AS n FROM w WHERE s % 3 > 0
"""


@pytest.fixture
def system(tmp_path: Path) -> Iterator[UnderTest]:
    count = SECONDS * PER_S
    times = [START + timedelta(microseconds=at * 1_000_000 // PER_S) for at in range(count)]
    numbers = pa.array(range(count), pa.int64())
    columns = {
        "ts": pa.array(times, pa.timestamp("us")),
        "k": pa.array([at % 7 for at in range(count)], pa.int32()),
        "n": numbers,
    }
    pa_csv.write_csv(pa.table(columns), tmp_path / "rows.csv")
    made = UnderTest(tmp_path, nodes=2)
    yield made
    made.stop()


def submit(system: UnderTest, name: str, query: str, share: bool = True) -> SubmittedAnswer:
    """Submits a query; everything it gives is kept for the test."""
    made = system.client.submit(name, "sql", query, ".", share=share)
    system.channel(name).register("outside_test")
    return made


def since(made: SubmittedAnswer) -> str:
    (begin,) = made.begins
    assert begin.since is not None
    return begin.since


def after(rows: Rows, column: int, moment: str) -> Rows:
    """The rows that begin later."""
    then = str(datetime.fromisoformat(moment))
    return Rows({row: count for row, count in rows.items() if str(row[column]) > then})


@pytest.mark.timeout(600)
def test_shared_dropped_and_killed(system: UnderTest) -> None:
    system.submit("rows", STREAM)
    submit(system, "busy", BUSY)
    until(lambda: system.count("busy") > 0, 240, "the first results")
    same = submit(system, "same", SAME)
    (read,) = same.sharing.shared
    assert (read.source, read.used_by, read.tapped) == ("busy", ["busy"], False)
    whole = submit(system, "whole", ALL)
    (tap,) = whole.sharing.shared
    assert (tap.source, tap.fragment, tap.tapped) == ("busy_aggregate", "busy", True)
    assert whole.sharing.saved == ["whole_aggregate", "whole"]
    alone_all = submit(system, "alone_all", ALL, share=False)
    alone_same = submit(system, "alone_same", SAME, share=False)
    assert not alone_all.sharing.shared

    victim = system.node_of("busy")
    epoch = system.epoch_of("busy")
    system.kill_node_until(
        victim, lambda: system.epoch_of("busy") > epoch, "what is shared has another owner"
    )
    system.client.drop("same")
    system.client.drop("busy")
    kept = {query.name: query.kept_for for query in system.client.queries()}
    assert kept["busy"] == ["whole"] and "same" not in kept
    system.kill_controller()
    system.restart_controller()
    system.await_finished(400)
    assert system.count("busy") < system.count("alone_same"), "its tail went on"

    last = max(since(whole), since(alone_all))
    shared = after(system.rows("whole"), 1, last)
    assert shared.total() > 100
    assert shared == after(system.rows("alone_all"), 1, last)
    assert since(same) <= since(alone_same)

    system.client.drop("whole")
    assert {unit.name for unit in system.catalog.units()} == {"rows", "alone_all", "alone_same"}
    assert not (system.home.state / "channels" / "busy_aggregate").exists()
