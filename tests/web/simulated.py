"""A real controller over a catalog filled by hand: many nodes and fragments, without Spark."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from penstock.control.catalog import Catalog
from penstock.control.client import Client
from penstock.control.home import Home
from penstock.control.launch import is_up
from penstock.control.records import NodeRecord
from penstock.control.server import serve
from penstock.model.measurements import FragmentStatus, NodeSample
from penstock.web.pages import add_pages
from waiting import until


class NoHost:
    """Starts no nodes."""

    def keep_up(self, nodes: Sequence[NodeRecord]) -> None:
        return None

    def stop(self, nodes: Sequence[NodeRecord]) -> None:
        return None


def deployment(streams: int, queries: int) -> str:
    """Queries in chains: some read streams, some the results of others."""
    lines = ["streams:"]
    lines += [
        f"  meters{n}: {{source: {{generate: meters, homes: 50, speedup: 600}}, lateness: 2min}}"
        for n in range(streams)
    ]
    lines.append("queries:")
    for n in range(queries):
        read = f"meters{(n // 4 + n % 2) % streams}" if n % 4 < 2 else f"q{n - 2}"
        lines.append(f"  q{n}:")
        lines.append(f"    sql: {_sql(n, read)}")
        lines.append("    max_latency: 5s")
    return "\n".join(lines)


def _sql(n: int, read: str) -> str:
    if n % 4 == 1:
        return f"SELECT home, max(kwh) AS kwh FROM {read} GROUP BY home, window(ts, '1 hour')"
    if n % 4 == 3:
        return f"SELECT home, kwh FROM {read} WHERE kwh > {n % 9}"
    return f"SELECT ts, home, district, kwh FROM {read} WHERE kwh > {n % 9}"


class Simulated:
    """Nodes that only say that they run what they were given."""

    def __init__(self, folder: Path, nodes: int, streams: int, queries: int) -> None:
        self.home = Home(folder / "system")
        self.home.prepare()
        self.catalog = Catalog(self.home.catalog_url)
        self.catalog.prepare()
        self.nodes = [f"n{number:02}" for number in range(1, nodes + 1)]
        for name in self.nodes:
            until_s = time.time() + 3600
            self.catalog.join(
                NodeRecord(name, 2, 1 << 30, f"{name}-1", 4711, "0.1.0", until_s, time.time() - 60)
            )
        self._queries = deployment(streams, queries)
        self._patch = patch("penstock.control.server.host_of", lambda *_: NoHost())

    def start(self, port: int = 0) -> None:
        self._patch.start()
        self._thread = threading.Thread(target=serve, args=(self.home, port, add_pages))
        self._thread.start()
        until(lambda: is_up(self.home), patience_s=30)
        self.client = Client.of(self.home)

    def submit(self) -> None:
        self.client.submit("city", "yaml", self._queries, ".")
        until(lambda: all(unit.node for unit in self.catalog.units()), 30, "all are assigned")
        for unit in self.catalog.units():
            self.catalog.report(unit.name, unit.epoch, "running")
        for second in range(-60, 1, 2):
            self.measure(time.time() + second)

    def measure(self, at_s: float) -> None:
        """What all nodes might have measured at a time."""
        units = self.catalog.units()
        for number, name in enumerate(self.nodes):
            mine = [unit for unit in units if unit.node == name and unit.kind == "fragment"]
            wave = math.sin(at_s / 7 + number)
            self.catalog.sample(
                name,
                NodeSample(
                    at_s,
                    cpu_cores=1.0,
                    utilisation=round(0.45 + 0.2 * wave + 0.02 * (number % 5), 3),
                    memory_bytes=(600 + 20 * number) << 20,
                    fragments={unit.name: measured(unit.name, at_s) for unit in mine},
                ),
            )

    def halt(self) -> None:
        """Lets the controller end."""
        self.client.down()
        self.client.close()
        self._thread.join(30)
        assert not self._thread.is_alive()
        self._patch.stop()

    def stop(self) -> None:
        self.halt()
        self.catalog.close()


def measured(name: str, at_s: float) -> FragmentStatus:
    """The numbers of one fragment: made up, but of the right kind and steady."""
    n = sum(map(ord, name)) % 17
    passed_s = at_s % 100_000
    rate = 200 + 90 * n + 40 * math.sin(at_s / 5 + n)
    return FragmentStatus(
        fragment=name,
        rows_in=int(passed_s * 300),
        rows_out=int(passed_s * 120),
        rows_in_per_s=round(rate, 1),
        batches=int(passed_s),
        batch_ms=180.0 + 10 * n,
        state_rows=40 * n,
        watermark_ms=int(1000 * (at_s - 3 - n)),
        is_finished=False,
        busy_ms=int(passed_s * 1000 * (0.1 + 0.04 * n)),
        backlog_rows=10 * n,
        selectivity=0.4,
        cpu_ms=round(passed_s * 30.0 * (1 + n / 9), 1),
        cost_us=12.0 + n,
        latency_p50_s=0.8 + 0.1 * n,
        latency_p99_s=1.9 + 0.1 * n,
        latest_latency_s=round(1.0 + 0.1 * n + 0.2 * math.sin(at_s / 3), 3),
        waiting_s=0.2,
        rows_in_before=0,
    )


@contextmanager
def simulated(
    folder: Path, nodes: int = 20, streams: int = 8, queries: int = 200
) -> Iterator[Simulated]:
    """Twenty nodes that run two hundred fragments, as far as anybody can tell."""
    made = Simulated(folder, nodes, streams, queries)
    made.start()
    try:
        made.submit()
        yield made
    finally:
        made.stop()
