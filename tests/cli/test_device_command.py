"""What ``penstock device`` says before it hears anything, and what is said of devices."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest
from typer.testing import CliRunner

from penstock.channels.durable import write_record
from penstock.cli.device_text import device_lines
from penstock.cli.main import app
from penstock.control.home import Home

pytestmark = pytest.mark.core


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--server", "nowhere"], "--server nowhere is no address. Write HOST:PORT."),
        (
            ["--server", "h:1", "--speed", "0"],
            "device device has the speed 0. Give more",
        ),
        (["--server", "h:1", "--table", "t"], "--table t names no file. Write --table NAME=FILE."),
        (["--server", "h:1", "--table", "t=no.csv"], "table t: no.csv cannot be read"),
    ],
)
def test_mistakes(arguments: list[str], text: str) -> None:
    told = CliRunner().invoke(app, ["device", "--query", "q", *arguments])
    assert told.exit_code != 0
    assert text in str(told.exception)


def test_a_system_without_a_station(tmp_path: Path) -> None:
    home = tmp_path / "system"  # It is not there yet: the device waits for it.
    arguments = ["device", "--query", "q", "--home", str(home), "--patience", "0.1"]
    told = CliRunner().invoke(app, arguments)
    assert "nobody in" in str(told.exception) and "broadcasts q" in str(told.exception)


def test_what_cannot_be_cut_is_refused_before_anything_starts(tmp_path: Path) -> None:
    path = tmp_path / "d.yaml"
    path.write_text(
        """
broadcast: {organisation: indexed, bandwidth: 125000}
devices:
  anna: {speed: 1.0e9, processing_power: 0.5, receiving_power: 1.0, queries: [q]}
streams:
  readings: {source: {generate: meters, homes: 40, days: 1}, lateness: 2min}
queries:
  q: {device: {cut: 0}, sql: SELECT upper(home) AS h FROM readings}
"""
    )
    with patch("penstock.control.launch.bring_up", side_effect=AssertionError("started")):
        told = CliRunner().invoke(app, ["run", str(path)])
    assert "DuckDB does not compute upper(`home`) exactly as Spark does" in str(told.exception)


def test_a_query_that_nobody_broadcasts(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.broadcasts.mkdir(parents=True)
    write_record(home.broadcasts / "d.status.json", {"queries": {"profit": {}, "jumps": {}}})
    arguments = ["device", "--query", "proft", "--home", str(tmp_path), "--patience", "0.1"]
    told = CliRunner().invoke(app, arguments)
    assert str(told.exception) == (
        f"nobody in {tmp_path} broadcasts proft; on the air are profit, jumps. Did you mean profit?"
    )


def test_devices_for_people() -> None:
    query = {"cut": 1, "operators": 3, "ships": ["sums"], "switches": False, "listeners": 2,
             "rows": 9, "bytes": 900}  # fmt: skip
    device = {"device": "anna", "query": "q", "listening": True, "tuned_s": 1.5,
              "processed_s": 0.25, "energy_j": 2.0, "missed_cycles": 3}  # fmt: skip
    gone = {"device": "ben", "query": "q", "listening": False}
    station = {"deployment": "d", "organisation": "sorted", "port": 5, "cycle": 7,
               "airtime_s": 0.5, "cycle_s": 1.0, "overloaded": False, "queries": {"q": query},
               "devices": [device, gone], "batteries": {"anna": 7200.0}}  # fmt: skip
    assert device_lines([station]) == [
        "d: sorted broadcast at 127.0.0.1:5, cycle 7, on the air 50.0 % of the time",
        "  q: cut 1 of 3, ships sums; 2 listening, 9 rows, 900 B",
        "  anna hears q; tuned 1.5 s, computed 250 ms, 2.00 J; missed 3 cycles",
        "  ben has heard q",
        "  batteries last: anna 2 h 0 min",
    ]
