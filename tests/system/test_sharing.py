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
PER_S, SPEEDUP, SECONDS = 20, 20, 1_200
STREAM = f"""
streams:
  rows:
    source: {{replay: rows.csv, speedup: {SPEEDUP}}}
    schema: ts timestamp, k int, n bigint, x double
    event_time: ts
    lateness: 2s
"""
BUSY = """
    SELECT window.start AS since, k, count(*) AS rows, sum(n) AS n, min(x) AS x,
           stddev(x) AS spread
    FROM rows GROUP BY k, window(ts, '10 seconds') HAVING sum(n) % 3 > 0
"""
ALL = """
    SELECT sum(n) AS total, window.start AS begun, k AS kind, window.end AS till, count(*) AS many
    FROM rows GROUP BY window(ts, '10 seconds'), k
"""
STRICT = """
    WITH w AS (SELECT k AS key, sum(n) AS s, count(*) AS c, window.start AS at
               FROM rows GROUP BY k, window(ts, '10 seconds'))
    SELECT at AS since, key AS k, c AS rows, s AS n FROM w WHERE s % 3 > 0 AND key < 3
"""
COARSE = """
    SELECT window.start AS since, avg(n) AS mean, min(x) AS least, stddev(x) AS spread
    FROM rows WHERE k < 5 GROUP BY window(ts, '60 seconds', '20 seconds')
"""


@pytest.fixture
def system(tmp_path: Path) -> Iterator[UnderTest]:
    count = SECONDS * PER_S
    # Some rows come a second late, which counts, and some nine, which does not.
    behind_s = [9 if at % 50 == 0 else int(at % 7 == 0) for at in range(count)]
    times = [START + timedelta(seconds=at / PER_S - behind_s[at]) for at in range(count)]
    numbers = pa.array([None if at % 11 == 0 else at for at in range(count)], pa.int64())
    columns = {
        "ts": pa.array(times, pa.timestamp("us")),
        "k": pa.array([at % 7 for at in range(count)], pa.int32()),
        "n": numbers,
        "x": pa.array([at % 13 / 10 for at in range(count)]),
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


@pytest.mark.timeout(400)
def test_shared_dropped_and_killed(system: UnderTest) -> None:
    system.submit("rows", STREAM)
    submit(system, "busy", BUSY)
    until(lambda: system.count("busy") > 0, 240, "the first results")
    strict = submit(system, "strict", STRICT)
    (read,) = strict.sharing.shared
    assert (read.source, read.used_by, read.tapped) == ("busy", ["busy"], False)
    assert read.rest == "k < 3"
    whole = submit(system, "whole", ALL)
    (tap,) = whole.sharing.shared
    assert (tap.source, tap.fragment, tap.tapped) == ("busy_aggregate", "busy", True)
    assert whole.sharing.saved == ["whole_aggregate", "whole"]
    coarse = submit(system, "coarse", COARSE)
    (slices,) = coarse.sharing.shared
    assert (slices.source, slices.is_sliced) == ("busy_aggregate_slices", True)
    assert slices.rest == "k < 5"
    alone_all = submit(system, "alone_all", ALL, share=False)
    alone_coarse = submit(system, "alone_coarse", COARSE, share=False)
    assert not alone_all.sharing.shared

    victim = system.node_of("busy")
    epoch = system.epoch_of("busy")
    system.kill_node_until(
        victim, lambda: system.epoch_of("busy") > epoch, "what is shared has another owner"
    )
    system.client.drop("busy")
    kept = {query.name: (query.kept_for, query.shares) for query in system.client.queries()}
    assert kept["busy"] == (["coarse", "strict", "whole"], [])
    assert kept["strict"] == kept["whole"] == kept["coarse"] == ([], ["busy"])
    system.client.drop("strict")
    system.kill_controller()
    system.restart_controller()
    system.await_finished(300)

    last = max(since(whole), since(alone_all))
    shared = after(system.rows("whole"), 1, last)
    assert shared.total() > 100
    assert shared == after(system.rows("alone_all"), 1, last)
    last = max(since(coarse), since(alone_coarse))
    shared = after(system.rows("coarse"), 0, last)
    assert shared.total() > 20
    assert shared == after(system.rows("alone_coarse"), 0, last)
    ended = [max(row[at] for row in system.rows(name)) for name, at in (("busy", 0), ("whole", 1))]
    assert ended[0] < ended[1], "its tail went on"

    system.client.drop("whole")
    system.client.drop("coarse")
    assert {unit.name for unit in system.catalog.units()} == {"rows", "alone_all", "alone_coarse"}
    for tapped in ("busy_aggregate", "busy_aggregate_slices"):
        assert not (system.home.state / "channels" / tapped).exists()
