"""One fragment that nodes of one session take from each other, and what it gives undisturbed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from penstock.model.network import Network
from penstock.place.fuse import fuse
from penstock.spark.checkpoints import newest
from penstock.spark.node import Node, NodeOptions
from penstock.spark.state import StateFolder
from waiting import until

DEPLOYMENT = """
streams:
  readings:
    source: {generate: meters, homes: 40, every: 30min, days: 2, disorder: 10min}
    lateness: 20min
queries:
  sums:
    sql: |
      SELECT home, window.start AS since, sum(kwh) AS kwh, count(*) AS n
      FROM readings GROUP BY home, window(ts, '2 hours', '1 hour')
"""
OPTIONS = NodeOptions(trigger_ms=20, max_rows_per_batch=400, engine="native")


def await_that(
    condition: Callable[[], object], node: Node | None = None, limit_s: float = 100
) -> None:
    """Waits for a condition, or for a failure of the node."""

    def check() -> None:
        for name in node.names if node else ():
            failure = node.failure(name) if node else None
            if failure is not None:
                raise failure

    until(condition, limit_s, check=check)


class Place:
    """A network with its state, run by one node after another."""

    def __init__(self, folder: Path, network: Network) -> None:
        self.state = StateFolder(folder)
        self.state.prepare()
        self.network = network
        (fragment,) = fuse(network)
        self.fragment = replace(fragment, is_read=True)
        self.state.channel("readings").register("sums")
        self.output = self.state.channel("sums")
        self.output.register("test")

    def node(self, session: SparkSession, round_ms: int = OPTIONS.trigger_ms) -> Node:
        """A node; with long rounds it still has something to do when others have got ready."""
        return Node(session, self.state, replace(OPTIONS, trigger_ms=round_ms))

    def start(self, node: Node, epoch: int) -> None:
        node.start_fragment(self.network, self.fragment, epoch)

    def batches(self) -> int:
        return len(self.output.sequences())

    def is_finished(self) -> bool:
        return self.state.fragment("sums").is_finished

    def rows(self) -> Counter[tuple[object, ...]]:
        found: Counter[tuple[object, ...]] = Counter()
        for manifest in self.output.newer(0):
            for file in manifest.files:
                table = pq.read_table(self.output.data / file.name)
                found.update(
                    (row["home"], row["since"], round(row["kwh"], 6), row["n"])
                    for row in table.to_pylist()
                )
        return found


def with_small_batches(place: Place, session: SparkSession) -> None:
    """Brings the whole input in, in batches small enough to be many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("penstock.channels.ingest.feed_ingest._ROWS_PER_COMMIT", 200)
        patch.setattr("penstock.channels.ingest.entrance._GATHERED_AT_MOST_S", 0.0)
        node = place.node(session)
        node.start_intake(place.network.stream("readings"), 1)
        await_that(lambda: node.is_finished("readings"), node)
        node.stop()


def entries_of(place: Place, name: str) -> list[Path]:
    """The entries of one of Spark's logs, by number."""
    checkpoint = newest(place.state.fragment("sums").path)
    assert checkpoint is not None
    found = [path for path in (checkpoint / name).iterdir() if path.name.isdigit()]
    return sorted(found, key=lambda path: int(path.name))
