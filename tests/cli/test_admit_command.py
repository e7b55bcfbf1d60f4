"""``penstock admit``: the stable form, the form for people, errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from penstock.cli.main import app
from share.test_admission import CASE

pytestmark = pytest.mark.core


def admit(tmp_path: Path, text: str, *options: str) -> Result:
    path = tmp_path / "case.yaml"
    path.write_text(text)
    return CliRunner().invoke(app, ["admit", str(path), *options])


def test_json(tmp_path: Path) -> None:
    told = admit(tmp_path, CASE, "--json")
    assert told.exit_code == 0
    record = json.loads(told.output)
    assert list(record) == ["graphs", "choice"]
    assert record["choice"] == "g1"
    graph = record["graphs"]["g1"]
    assert list(graph) == ["ok", "time", "phi", "after", "why"]
    assert graph["ok"] is True and graph["why"] == []
    assert graph["time"] == pytest.approx(0.04 / 0.5)
    assert graph["phi"] == pytest.approx(0.1 / 0.6)
    assert graph["after"] == {"a": pytest.approx(1.2 + 0.05 / 0.5 - 0.05 / 0.6)}


def test_what_is_full_has_no_time(tmp_path: Path) -> None:
    record = json.loads(admit(tmp_path, CASE.replace("load: 0.4", "load: 0.95"), "--json").output)
    assert record == {
        "graphs": {
            "g1": {
                "ok": False,
                "time": None,
                "phi": None,
                "after": {"a": None},
                "why": ["app a", "limit", "node v1"],
            }
        },
        "choice": None,
    }


def test_text(tmp_path: Path) -> None:
    text = CASE.replace("{o1: v1}}", "{o1: v1}, g2: {o1: v2}}")
    assert admit(tmp_path, text).output == (
        "admitted as g2\n"
        "  g1  fits\n"
        "    time 0.08 s (limit 1.5 s) · phi 0.1667\n"
        "    a 1.2 → 1.217 s (limit 2 s)\n"
        "> g2  fits\n"
        "    time 0.04444 s (limit 1.5 s) · phi 0.1\n"
    )
    assert admit(tmp_path, CASE.replace("load: 0.4", "load: 0.95")).output == (
        "refused: no graph may run\n"
        "  g1  does not fit: app a, limit, node v1\n"
        "    time without end (limit 1.5 s)\n"
        "    a 1.2 → without end (limit 2 s)\n"
    )
