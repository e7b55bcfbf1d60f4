"""A real system to look at: a small tree of nodes, a join in parts, a device that listens."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from penstock.control.client import Client
from penstock.control.launch import bring_up
from system.under_test import UnderTest
from waiting import until

PARENTS = {"office": None, "north": "office"}
# Readings come up to four minutes late and may be one: some are set aside.
DEPLOYMENT = """
broadcast: {organisation: indexed, bandwidth: 125000, cycle: 0.3}
devices:
  anna: {speed: 1.0e9, processing_power: 0.5, receiving_power: 1.0, battery: 20000, queries: [alarms]}
streams:
  readings:
    source: {generate: meters, homes: 120, every: 5min, speedup: 600, disorder: 4min}
    lateness: 1min
    on: north
  roofs:
    source: {generate: meters, homes: 120, every: 5min, speedup: 600}
    lateness: 1min
    on: office
queries:
  heavy_homes:
    sql: |
      SELECT home, district, window.start AS since, sum(kwh) AS kwh
      FROM readings GROUP BY home, district, window(ts, '2 hours', '30 minutes')
      HAVING sum(kwh) > 1
    max_latency: 30s
  district_load:
    sql: SELECT district, window.end AS at, avg(kwh) AS kwh FROM readings GROUP BY district, window(ts, '1 hour')
    max_latency: 30s
  network_peak: SELECT window.end AS at, max(kwh) AS kwh FROM readings GROUP BY window(ts, '1 hour')
  suspicious:
    sql: |
      SELECT h.home, h.kwh, d.kwh AS district_kwh
      FROM heavy_homes h JOIN district_load d
        ON h.district = d.district AND d.at BETWEEN h.since AND h.since + INTERVAL 6 HOURS
      WHERE h.kwh > 20 * d.kwh
  feed_in:
    sql: |
      SELECT l.ts, l.home, l.kwh AS used, r.kwh AS made
      FROM readings l JOIN roofs r
        ON l.home = r.home AND r.ts BETWEEN l.ts - INTERVAL 15 MINUTES AND l.ts + INTERVAL 5 MINUTES
    join: {spread: 2, groups: 24}
  alarms: SELECT ts, home, kwh FROM readings WHERE kwh > 0.1
"""  # noqa: E501


class Plant(UnderTest):
    """The system, and the device that hears ``alarms``."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, nodes=2, parents=PARENTS)
        self._folder = folder
        self._device: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        """Submits what is to run, and has the device listen."""
        self.submit("ami", DEPLOYMENT)
        command = [sys.executable, "-m", "penstock", "device", "--query", "alarms"]
        command += ["--name", "anna", "--home", str(self.home.path), "--patience", "120"]
        with (self._folder / "device").open("w") as out:
            self._device = subprocess.Popen(command, stdout=out, stderr=out)

    def restart_controller(self) -> None:
        """Starts it again where it was: there a page looks for it."""
        port = urlsplit(self.home.address().url).port
        self.client.close()
        self.client = bring_up(self.home, self._specs, port)

    def stop(self) -> None:
        if self._device is not None:
            self._device.terminate()
            self._device.wait(30)
        super().stop()


def all_run(client: Client) -> bool:
    """Whether every fragment has finished a few batches."""
    found = [unit.status for unit in client.fragments() if unit.kind == "fragment"]
    return all(status is not None and status.batches > 2 for status in found)


@contextmanager
def started_plant(folder: Path) -> Iterator[Plant]:
    """The system, as soon as all of it runs."""
    made = Plant(folder)
    try:
        made.begin()
        until(lambda: all_run(made.client), 120, lambda: made.client.fragments())
        yield made
    finally:
        made.stop()
