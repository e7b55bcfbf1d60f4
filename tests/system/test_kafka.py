"""A topic brought in by nodes that move it and die, read by several queries: each record once."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "spark"))

from system.under_test import UnderTest
from waiting import until

from mock_cluster import MockCluster

READINGS = """
streams:
  readings:
    source: {{kafka: "{address}", topic: readings}}
    schema: ts timestamp, n bigint
    event_time: ts
    lateness: 10s
queries:
  {query}
"""
PER_MINUTE = """per_minute: |
    SELECT window.start AS since, count(*) AS n FROM readings GROUP BY window(ts, '1 minute')
  all: SELECT ts, n FROM readings WHERE n >= 0"""
LATER = """later: |
    SELECT window.start AS since, count(*) AS n FROM readings GROUP BY window(ts, '1 minute')"""
BEGIN = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.fixture
def system(tmp_path: Path) -> Iterator[UnderTest]:
    made = UnderTest(tmp_path, 2)
    yield made
    made.stop()


def produce(cluster: MockCluster, start: int, stop: int) -> None:
    """A row a second, dealt out to three partitions."""
    for partition in range(3):
        mine = (k for k in range(start, stop) if k % 3 == partition)
        rows = ({"ts": (BEGIN + timedelta(seconds=k)).isoformat(), "n": k} for k in mine)
        cluster.produce("readings", map(json.dumps, rows), partition)


def await_rows(system: UnderTest, stream: str, rows: int) -> None:
    def states() -> object:
        units = system.catalog.units()
        return system.count(stream), [(unit.name, unit.state, unit.error) for unit in units]

    until(lambda: system.count(stream) >= rows, 120, states)


@pytest.mark.timeout(400)
def test_each_record_once_over_a_move_and_a_kill(system: UnderTest) -> None:
    with MockCluster() as cluster:
        produce(cluster, 0, 1_200)
        system.submit("one", READINGS.format(address=cluster.address, query=PER_MINUTE))
        await_rows(system, "all", 1_200)
        produce(cluster, 1_200, 2_400)
        other = "b" if system.node_of("readings") == "a" else "a"
        assert system.move("readings", other) == "done"
        produce(cluster, 2_400, 3_000)
        await_rows(system, "all", 3_000)
        system.submit("two", READINGS.format(address=cluster.address, query=LATER), "oldest")
        intakes = [unit.name for unit in system.catalog.units() if unit.kind == "intake"]
        assert intakes == ["readings"]
        produce(cluster, 3_000, 3_660)
        system.kill_node_until(
            other, lambda: system.node_of("readings") != other, "it goes on elsewhere"
        )
        await_rows(system, "all", 3_660)
        # Partition 3, of which nothing comes, is not waited for.
        await_rows(system, "per_minute", 60)
        await_rows(system, "later", 60)
        seconds = ((BEGIN + timedelta(seconds=k), k) for k in range(3_660))
        assert system.rows("all") == Counter((str(ts), str(n)) for ts, n in seconds)
        minutes = (BEGIN + timedelta(minutes=k) for k in range(60))
        counted = Counter((str(since), "60") for since in minutes)
        assert system.rows("per_minute") == system.rows("later") == counted
