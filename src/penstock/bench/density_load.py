"""What ``penstock bench density`` runs: many windowed aggregates over one stream, and its rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from penstock.bench.flow import Paced
from penstock.lang.deployment import parse_deployment
from penstock.model.network import Network

RATE_PER_S = 2_000
ROUND_S = 2.5
LIMIT_S = 4 * ROUND_S
_FEED_EVERY_S = 0.5
_WINDOWS = ((10, 10), (10, 2), (30, 10), (60, 20), (60, 60), (20, 5))
_RESULTS = (
    (("n", "count(*)"),),
    (("v", "sum(v)"), ("n", "count(*)")),
    (("mean", "avg(x)"),),
    (("top", "max(v)"), ("low", "min(v)")),
    (("x", "sum(x)"),),
)
STREAM = """
streams:
  readings:
    source: {directory: in, format: parquet}
    schema: ts timestamp, k string, v bigint, x double
    event_time: ts
    lateness: 0s
"""

Deliver = Callable[[int, pa.Table, int], None]


@dataclass(frozen=True)
class WindowedAggregate:
    """One of many queries over the stream: its key, its window, its condition, what it computes."""

    key: str
    size_s: int
    slide_s: int
    least_v: int
    results: tuple[tuple[str, str], ...]

    @property
    def selected(self) -> str:
        """The computed columns, as SQL."""
        return ", ".join(f"{call} AS {name}" for name, call in self.results)


def windowed_aggregate(number: int) -> WindowedAggregate:
    """One of many, of mixed windows, keys, conditions and aggregates."""
    size_s, slide_s = _WINDOWS[number % len(_WINDOWS)]
    key = "k" if number % 3 == 0 else f"v % {10 + 3 * number % 190}"
    return WindowedAggregate(key, size_s, slide_s, number, _RESULTS[number % len(_RESULTS)])


def query(number: int) -> str:
    """One of the queries, in our SQL, which is Spark's.

    >>> query(1)
    "SELECT v % 13 AS key, window.end AS at, sum(v) AS v, count(*) AS n FROM readings WHERE v >= 1 \
GROUP BY v % 13, window(ts, '10 seconds', '2 seconds')"
    """
    wanted = windowed_aggregate(number)
    return (
        f"SELECT {wanted.key} AS key, window.end AS at, {wanted.selected} "
        f"FROM readings WHERE v >= {wanted.least_v} GROUP BY {wanted.key}, "
        f"window(ts, '{wanted.size_s} seconds', '{wanted.slide_s} seconds')"
    )


def network(queries: int, limit_s: float | None = LIMIT_S) -> Network:
    """The stream and so many queries over it, with a limit on their latency if one is given."""
    limit = "" if limit_s is None else f"max_latency: {limit_s:g}s, "
    lines = (
        f'  q{number}: {{sql: "{query(number)}", {limit}to: memory}}\n' for number in range(queries)
    )
    return parse_deployment(STREAM + "queries:\n" + "".join(lines), "density.yaml", Path()).network


def chain() -> Network:
    """The stream, three windows in a row over it, and a limit on how late the last may be."""
    lines = (
        'sums: {sql: "SELECT k, window.end AS at, sum(x) AS x FROM readings '
        "GROUP BY k, window(ts, '1 second')\", to: memory}",
        'means: {sql: "SELECT k, window.end AS at, avg(x) AS x FROM sums '
        "GROUP BY k, window(at, '4 seconds', '1 second')\", to: memory}",
        'top: {sql: "SELECT window.end AS at, max(x) AS x, count(*) AS n FROM means '
        f"GROUP BY window(at, '2 seconds')\", max_latency: {LIMIT_S:g}s, to: memory}}",
    )
    text = STREAM + "queries:\n" + "".join(f"  {line}\n" for line in lines)
    return parse_deployment(text, "chain.yaml", Path()).network


def feeder(deliver: Deliver) -> Paced:
    """Hands over rows as time goes by: seeded, in order, stamped with the clock."""
    random = np.random.default_rng(1)
    count = int(RATE_PER_S * _FEED_EVERY_S)

    def feed(number: int, now_s: float) -> None:
        until_us = int(now_s * 1e6)
        deliver(number, rows_until(until_us, _FEED_EVERY_S, count, random), until_us)

    return Paced(_FEED_EVERY_S, feed)


def rows_until(until_us: int, length_s: float, count: int, random: np.random.Generator) -> pa.Table:
    """So many rows of the stream, spread over some seconds that end at a moment."""
    times = until_us - random.integers(0, int(length_s * 1e6), count)
    return pa.table(
        {
            "ts": pa.array(np.sort(times), pa.timestamp("us", tz="UTC")),
            "k": pa.array(random.integers(0, 100, count)).cast(pa.string()),
            "v": random.integers(0, 10**6, count),
            "x": random.random(count),
        }
    )
