"""What ``penstock bench sharing`` runs: queries over one stream that overlap, and its rows.

All queries are made of five aggregates; each has a condition of its own on the results, as alerts
on the same figures have.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.bench.density_load import rows_until
from penstock.bench.flow import Paced

RATE_PER_S = 4_000
LIMIT_S = 4.0
STREAM = "readings"
_FEED_EVERY_S = 0.25
_AGGREGATES = (
    ("v % 1000", "'6 seconds', '2 seconds'"),
    ("v % 700", "'8 seconds', '4 seconds'"),
    ("k", "'5 seconds', '1 second'"),
    ("v % 300", "'8 seconds', '2 seconds'"),
    ("v % 1500", "'4 seconds'"),
)


def stream(folder: Path) -> str:
    """The stream of a folder's files as a deployment file."""
    return (
        f"streams:\n  {STREAM}:\n"
        f"    source: {{directory: {folder}, format: parquet, pattern: '*.parquet'}}\n"
        "    schema: ts timestamp, k string, v bigint, x double\n"
        "    event_time: ts\n"
        "    lateness: 0s\n"
    )


def name_of(number: int) -> str:
    """What a query is called."""
    return f"alerts{number}"


def sql(number: int) -> str:
    """One of many queries; those whose numbers differ by five have an aggregate in common.

    >>> sql(2)
    "SELECT k AS key, window.end AS at, sum(x) AS x, count(*) AS n FROM readings \
GROUP BY k, window(ts, '5 seconds', '1 second') HAVING (count(*) + 2) % 10 = 0"
    """
    key, window = _AGGREGATES[number % len(_AGGREGATES)]
    return (
        f"SELECT {key} AS key, window.end AS at, sum(x) AS x, count(*) AS n FROM {STREAM} "
        f"GROUP BY {key}, window(ts, {window}) HAVING (count(*) + {number}) % 10 = 0"
    )


def deployment(numbers: range) -> str:
    """Queries as a deployment file."""
    lines = (
        f'  {name_of(number)}: {{sql: "{sql(number)}", max_latency: {LIMIT_S:g}s}}\n'
        for number in numbers
    )
    return "queries:\n" + "".join(lines)


class SteadyRows:
    """Writes rows into a folder as fast as their times go on."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._random = np.random.default_rng(1)
        self._until_us = int(time.time() * 1e6)
        self._files = 0
        self._paced = Paced(_FEED_EVERY_S, lambda number, due_s: self._give(_FEED_EVERY_S))

    def start(self) -> None:
        """Begins."""
        self._paced.start()

    def stop(self) -> None:
        """Ends; raises what has failed."""
        self._paced.stop()

    def _give(self, seconds: float) -> None:
        self._until_us += int(seconds * 1e6)
        rows = rows_until(self._until_us, seconds, round(RATE_PER_S * seconds), self._random)
        self._write(rows)

    def _write(self, rows: pa.Table) -> None:
        self._files += 1
        path = self._folder / f"{self._files:08d}.parquet"
        # A directory's files are taken as soon as they have this name.
        pq.write_table(rows, path.with_suffix(".new"))
        path.with_suffix(".new").rename(path)
