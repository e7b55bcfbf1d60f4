"""``penstock check``: what run would refuse, said without running."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.cli.main import app

ROOT = Path(__file__).parents[2]
WRONG = """
streams:
  readings: {source: {generate: meters, days: 1}, lateness: 2min}
queries:
  peaks: SELECT hom FROM readings
"""


@pytest.mark.parametrize("name", ["ami/ami.yaml", "network/network.yaml", "portfolio/meters.yaml"])
def test_the_examples_are_right(name: str) -> None:
    file = ROOT / "examples" / name
    done = CliRunner().invoke(app, ["check", str(file)])
    assert (done.exit_code, done.stdout) == (0, f"{file} is right\n")


def test_every_wrong_file_is_told(tmp_path: Path) -> None:
    wrong, balance = tmp_path / "wrong.yaml", tmp_path / "balance.yaml"
    wrong.write_text(WRONG)
    balance.write_text(WRONG.replace("hom ", "home ") + "balance: {polcy: off}\n")
    done = CliRunner().invoke(app, ["check", str(wrong), str(balance)])
    assert done.exit_code == 1
    assert "no column hom in readings" in done.stderr
    assert "balance has no setting polcy" in done.stderr
    assert not list(tmp_path.glob(".penstock*")), "nothing is written"


def test_as_json(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(WRONG)
    done = CliRunner().invoke(app, ["check", "--json", str(wrong)])
    (told,) = json.loads(done.stdout)
    assert (done.exit_code, told["file"], told["ok"]) == (1, str(wrong), False)
    assert "^^^" in told["error"]


def test_a_file_there_is_not(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["check", str(tmp_path / "none.yaml")])
    assert done.exit_code == 1
    assert "none.yaml" in done.stderr


def test_a_cut_that_cannot_be(tmp_path: Path) -> None:
    file = tmp_path / "devices.yaml"
    file.write_text(
        """
broadcast: {organisation: indexed, bandwidth: 125000}
devices: {anna: {speed: 1.0e9, processing_power: 0.5, receiving_power: 1.0, queries: [q]}}
streams:
  readings: {source: {generate: meters, days: 1}, lateness: 2min}
queries:
  q: {device: {cut: 0}, sql: SELECT upper(home) AS h FROM readings}
"""
    )
    done = CliRunner().invoke(app, ["check", str(file)])
    assert done.exit_code == 1
    assert f"{file}: query q has the cut 0, which ships operator 1 (q)" in done.stderr
