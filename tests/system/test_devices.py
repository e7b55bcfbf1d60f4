"""Devices as real processes, hearing what a real Spark node gives."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from penstock.channels.durable import read_record
from penstock.control.broadcasting import devices_answer
from penstock.control.home import Home
from penstock.device.storing import stored_rows
from system.under_test import Rows, UnderTest
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

    @property
    def reached_us(self) -> int:
        state = read_record(self.folder / "state.json") or {"watermark_us": 0}
        return int(state["watermark_us"] or 0)

    def stop(self) -> dict[str, Any]:
        self.process.terminate()
        return self.join()

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


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UnderTest]:
    """One for all of these tests; whatever they submit has names of its own."""
    folder = tmp_path_factory.mktemp("devices")
    (folder / "homes.csv").write_text(f"home,owner\n{OWNERS}\n")
    tags = [f"d{district:02d},tag {at}" for district in range(1, 5) for at in range(20)]
    (folder / "tags.csv").write_text("district,tag\n" + "\n".join(tags) + "\n")
    found = UnderTest(folder, 1)
    try:
        yield found
    finally:
        found.stop()


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


HOUR_US = 3_600_000_000
KILLED = f"""
broadcast: {{organisation: indexed, bandwidth: 125000, cycle: 0.3, recut: false, listeners: 2}}
devices:
  anna: {{speed: 1.0e9, processing_power: 0.5, receiving_power: 1.0, queries: [raw_usage, own_usage]}}
streams:
  meters: {{source: {{generate: meters, homes: 40, days: 60, disorder: 2min, speedup: 7200}}, lateness: 2min}}
tables:
  homes: {{file: homes.csv, schema: "home string, owner string"}}
queries:
  raw_usage:
    device: {{cut: 1}}
    sql: |{USAGE.replace("readings", "meters")}
  own_usage:
    device: {{cut: 3}}
    sql: |{USAGE.replace("readings", "meters")}
  all_usage:
    sql: |{USAGE.replace("readings", "meters")}
"""  # noqa: E501


def test_all_that_is_killed_goes_on(system: UnderTest, tmp_path: Path) -> None:
    """kill -9 of the disseminator, of a device, and at once of the controller and the node."""
    home = system.home
    anna = DeviceProcess(tmp_path, home.path, "raw_usage", "anna")
    awake = [
        DeviceProcess(tmp_path, home.path, query, name)
        for query, name in (("raw_usage", "ben"), ("own_usage", "cleo"), ("own_usage", "dora"))
    ]
    system.submit("killed", KILLED)
    until(lambda: min(device.next for device in (anna, *awake)) > 1, 90)
    before = _station(home, "killed")
    os.kill(before["pid"], signal.SIGKILL)
    until(lambda: _station(home, "killed")["broadcast"] == before["broadcast"] + 1, 30)
    anna.kill()
    anna = DeviceProcess(tmp_path, home.path, "raw_usage", "anna")
    station, node, controller = _station(home, "killed"), system.pid("a"), system.kill_controller()
    system.kill_node("a")
    struck_us = _reached_us(system, "all_usage")
    system.restart_controller()
    assert home.address().pid != controller
    until(lambda: system.pid("a") not in (node, None), 90)
    until(lambda: _reached_us(system, "all_usage") > struck_us + 4 * HOUR_US, 90)
    enough_us = _reached_us(system, "all_usage")
    until(lambda: min(device.reached_us for device in (anna, *awake)) >= enough_us, 90)
    slept, *reports = [device.stop() for device in (anna, *awake)]
    after = _station(home, "killed")
    assert (after["pid"], after["broadcast"]) == (station["pid"], station["broadcast"])
    assert "another disseminator" not in system.log("disseminator")
    whole = _closed_by(enough_us, system.rows("all_usage"))
    assert whole.total() > 50
    given = _closed_by(enough_us, anna.given)
    touched = {end[:19] for _, end in slept["touched_windows"].get("raw_usage_aggregate", [])}
    wrong = (whole - given) + (given - whole)
    assert {str(row[-1])[:19].replace(" ", "T") for row in wrong} <= touched
    for device, report in zip(awake, reports, strict=True):
        assert report["gaps"] == [], "who stayed awake has missed nothing"
        assert _closed_by(enough_us, device.given) == whole
    system.client.drop("killed")


def _reached_us(system: UnderTest, stream: str) -> int:
    """How far the time of a result has come."""
    last = system.channel(stream).last()
    return 0 if last is None else last.watermark_us or 0


def _closed_by(moment_us: int, rows: Rows) -> Rows:
    """The rows of windows that end until then; the end is the last column."""
    end = str(datetime.fromtimestamp(moment_us // 10**6, UTC))
    return Counter({tuple(map(_plain, row)): n for row, n in rows.items() if str(row[-1]) < end})


def _station(home: Home, deployment: str) -> dict[str, Any]:
    return next(told for told in devices_answer(home) if told["deployment"] == deployment)


TAGGED = """
broadcast: {organisation: indexed, bandwidth: 125000, cycle: 0.1}
devices:
  anna: {speed: 1.0e12, processing_power: 0.01, receiving_power: 5.0, queries: [tagged]}
streams:
  homes_read: {source: {generate: meters, homes: 40, days: 2, disorder: 2min, speedup: 6480}, lateness: 2min}
tables:
  tags: {file: tags.csv, schema: "district string, tag string"}
queries:
  tagged: SELECT r.ts, r.home, r.kwh, t.tag FROM homes_read r JOIN tags t ON r.district = t.district
  tagged_whole: {sql: "SELECT r.ts, r.home, r.kwh, t.tag FROM homes_read r JOIN tags t ON r.district = t.district"}
"""  # noqa: E501


def test_cuts_follow_what_is_measured(system: UnderTest, tmp_path: Path) -> None:
    device = DeviceProcess(tmp_path, system.home.path, "tagged", "anna")
    system.submit("tags", TAGGED)
    until(lambda: any(told["deployment"] == "tags" for told in devices_answer(system.home)), 30)
    began = _station(system.home, "tags")["queries"]["tagged"]
    assert began["cut"] == began["operators"], "the server begins with all of it"
    report = device.join()
    assert report["plan"] == 2, "it has been cut anew"
    until(lambda: _ended(system, "tagged_whole"), 60)
    whole = Counter({tuple(map(_plain, row)): n for row, n in system.rows("tagged_whole").items()})
    assert device.given == whole
    assert report["gaps"] == []
    system.client.drop("tags")
    left = [submission.name for submission in system.client.system().queries]
    assert not [name for name in left if name.startswith("tags")], "its segments go with it"
