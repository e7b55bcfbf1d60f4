"""Devices as real processes, hearing what a real Spark node gives."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.channels.durable import read_record
from penstock.control.broadcasting import devices_answer
from penstock.device.storing import stored_rows
from system.under_test import UnderTest
from waiting import until

pytestmark = pytest.mark.system

USAGE = """
      SELECT r.district, h.owner, sum(kwh * 2) AS kwh, count(*) AS n, window.end AS at
      FROM readings r JOIN homes h ON r.home = h.home WHERE kwh > 0.1
      GROUP BY r.district, h.owner, window(ts, '1 hour', '30 minutes') HAVING count(*) > 1
"""
PROFIT = """
      SELECT symbol, exchange, shares * (price - 10) AS profit, ts
      FROM trades WHERE exchange = 'XNAS' AND price > 12
"""
CUTS = {"usage": range(6), "profit": range(3)}
OWNERS = "\n".join(f"h{at:04d},{'xyz'[at % 3]}" for at in range(40))


def deployment() -> str:
    """A query for every cut of two chains, and both as a whole on the server."""
    texts = {"usage": USAGE, "profit": PROFIT}
    queries = "".join(
        f"  {name}_{cut}:\n    device: {{cut: {cut}}}\n    sql: |{texts[name]}"
        for name, cuts in CUTS.items()
        for cut in cuts
    )
    names = ", ".join(f"{name}_{cut}" for name, cuts in CUTS.items() for cut in cuts)
    return f"""
broadcast: {{organisation: indexed, bandwidth: 125000, cycle: 0.3, recut: false}}
devices:
  anna: {{speed: 1.0e9, processing_power: 0.5, receiving_power: 1.0, queries: [{names}]}}
streams:
  readings: {{source: {{generate: meters, homes: 40, days: 2, disorder: 2min}}, lateness: 2min}}
  trades: {{source: {{generate: trades, seconds: 600, rate: 5}}, lateness: 5s}}
tables:
  homes: {{file: homes.csv, schema: "home string, owner string"}}
queries:
{queries}
  whole_usage:
    sql: |{USAGE}
  whole_profit:
    sql: |{PROFIT}
"""


class DeviceProcess:
    """One ``penstock device``."""

    def __init__(self, folder: Path, home: Path, query: str, name: str) -> None:
        self.folder = folder / f"{name}-{query}"
        self.rows = self.folder / "rows"
        command = [sys.executable, "-m", "penstock", "device", "--query", query, "--name", name]
        command += ["--home", str(home), "--state", str(self.folder), "--to", str(self.rows)]
        command += ["--patience", "120", "--json"]
        self.folder.mkdir(exist_ok=True)
        with (self.folder / "errors").open("a") as errors:
            self.process = subprocess.Popen(command, stdout=errors, stderr=errors)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    @property
    def next(self) -> int:
        return int((read_record(self.folder / "state.json") or {"next": 0})["next"] or 0)

    def join(self) -> dict[str, Any]:
        assert self.process.wait(150) == 0, (self.folder / "errors").read_text()
        report: dict[str, Any] = json.loads((self.folder / "errors").read_text().splitlines()[-1])
        return report["report"]  # type: ignore[no-any-return]

    @property
    def given(self) -> Counter[tuple[object, ...]]:
        return Counter(
            tuple(_plain(value) for value in row.values())
            for table in stored_rows(self.rows)
            for row in table.to_pylist()
        )


def _plain(value: object) -> object:
    return float(f"{value:.9g}") if isinstance(value, float) else str(value)


@pytest.fixture
def system(tmp_path: Path) -> Iterator[UnderTest]:
    (tmp_path / "homes.csv").write_text(f"home,owner\n{OWNERS}\n")
    found = UnderTest(tmp_path, 1)
    try:
        yield found
    finally:
        found.stop()


def test_devices_give_what_spark_gives_for_every_cut(system: UnderTest, tmp_path: Path) -> None:
    home = system.home
    devices = {
        (name, cut): DeviceProcess(tmp_path, home.path, f"{name}_{cut}", "anna")
        for name, cuts in CUTS.items()
        for cut in cuts
    }
    system.submit("meters", deployment())
    until(lambda: len(devices_answer(home)) == 1, 90)
    reports = {place: device.join() for place, device in devices.items()}
    for name in CUTS:
        until(lambda name=name: _ended(system, f"whole_{name}"), 60)  # type: ignore[misc]
        whole = Counter(
            {tuple(map(_plain, row)): n for row, n in system.rows(f"whole_{name}").items()}
        )
        assert whole.total() > 50
        for cut in CUTS[name]:
            assert devices[name, cut].given == whole, (name, cut)
            assert reports[name, cut]["gaps"] == []
            assert reports[name, cut]["energy_j"] > 0


def _ended(system: UnderTest, stream: str) -> bool:
    last = system.channel(stream).last()
    return last is not None and last.ended


def test_killed_devices_and_disseminators_go_on(system: UnderTest, tmp_path: Path) -> None:
    home, query = system.home, "usage_1"
    text = deployment().replace("days: 2, disorder", "days: 2, speedup: 14400, disorder")
    anna, ben, cleo = (DeviceProcess(tmp_path, home.path, query, name) for name in "abc")
    system.submit("meters", text)
    until(lambda: min(one.next for one in (anna, ben, cleo)) > 1, 90)
    (station,) = devices_answer(home)
    os.kill(station["pid"], signal.SIGKILL)
    until(lambda: devices_answer(home)[0]["broadcast"] == station["broadcast"] + 1, 30)
    anna.kill()
    again = DeviceProcess(tmp_path, home.path, query, "a")
    reports = [one.join() for one in (again, ben, cleo)]
    until(lambda: _ended(system, "whole_usage"), 60)
    whole = Counter({tuple(map(_plain, row)): n for row, n in system.rows("whole_usage").items()})
    for device, report in zip((again, ben, cleo), reports, strict=True):
        wrong = (whole - device.given) + (device.given - whole)
        touched = {end[:19] for _, end in report["touched_windows"].get("usage_1_aggregate", [])}
        assert {str(row[-1])[:19].replace(" ", "T") for row in wrong} <= touched
    for report in reports[1:]:
        assert report["gaps"] == [], "who stayed awake has missed nothing"


TAGGED = """
broadcast: {organisation: indexed, bandwidth: 125000, cycle: 0.2}
devices:
  anna: {speed: 1.0e12, processing_power: 0.01, receiving_power: 5.0, queries: [tagged]}
streams:
  readings: {source: {generate: meters, homes: 40, days: 2, disorder: 2min, speedup: 4320}, lateness: 2min}
tables:
  tags: {file: tags.csv, schema: "district string, tag string"}
queries:
  tagged: SELECT r.ts, r.home, r.kwh, t.tag FROM readings r JOIN tags t ON r.district = t.district
  whole: {sql: "SELECT r.ts, r.home, r.kwh, t.tag FROM readings r JOIN tags t ON r.district = t.district"}
"""  # noqa: E501


def test_cuts_follow_what_is_measured(system: UnderTest, tmp_path: Path) -> None:
    tags = [f"d{district:02d},tag {at}" for district in range(1, 5) for at in range(20)]
    (tmp_path / "tags.csv").write_text("district,tag\n" + "\n".join(tags) + "\n")
    device = DeviceProcess(tmp_path, system.home.path, "tagged", "anna")
    system.submit("tags", TAGGED)
    until(lambda: devices_answer(system.home), 30)
    began = devices_answer(system.home)[0]["queries"]["tagged"]
    assert began["cut"] == began["operators"], "the server begins with all of it"
    report = device.join()
    assert report["plan"] == 2, "it has been cut anew"
    until(lambda: _ended(system, "whole"), 60)
    whole = Counter({tuple(map(_plain, row)): n for row, n in system.rows("whole").items()})
    assert device.given == whole
    assert report["gaps"] == []


def test_the_portfolio_example_runs_as_it_is_documented(tmp_path: Path) -> None:
    folder = Path(__file__).parents[2] / "examples" / "portfolio"
    state = tmp_path / "run"
    command = [sys.executable, "-m", "penstock", "run", str(folder / "portfolio.yaml")]
    running = subprocess.Popen([*command, "--state", str(state), "--speed", "max", "--json"])
    home = state / "system"
    try:
        until(lambda: (home / "address").exists(), 60, check=lambda: running.poll() is None)
        devices = []
        for name, query in (("anna", "profit"), ("ben", "profit"), ("anna", "jumps")):
            own = ["--table", f"portfolio={folder / name}.csv"] if query == "profit" else []
            listen = ["device", "--query", query, "--name", name, "--home", str(home), *own]
            listen += ["--to", str(tmp_path / f"{name}-{query}"), "--patience", "120"]
            devices.append(subprocess.Popen([sys.executable, "-m", "penstock", *listen]))
        assert [device.wait(180) for device in devices] == [0, 0, 0]
        assert running.wait(60) == 0
    finally:
        running.terminate()
        running.wait()
    (anna, ben, jumps) = (
        sum(table.num_rows for table in stored_rows(tmp_path / name))
        for name in ("anna-profit", "ben-profit", "anna-jumps")
    )
    assert anna == ben > 60 and jumps > 100
