"""The hop bench: what it submits, and what it keeps of what it found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.bench import costs
from penstock.bench.hop import LAYOUTS, deployments
from penstock.control.records import Submission
from penstock.control.system import assemble

SOURCE = "generate: packets, seconds: 1"


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        (LAYOUTS[0], {"counted": "n1"}),
        (LAYOUTS[1], {"large": "n1", "counted": "n1"}),
        (LAYOUTS[2], {"large": "n1", "counted": "n2"}),
    ],
)
def test_a_layout_is_so_many_fragments(layout: str, expected: dict[str, str]) -> None:
    system = assemble(
        Submission(number, f"s{number}", "yaml", text, ".")
        for number, text in enumerate(deployments(layout, SOURCE), 1)
    )
    assert {unit.name: unit.on for unit in system.units.values() if unit.fragment} == expected


def test_only_measured_kinds_are_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = dict(costs.measured_costs().cost_us)
    monkeypatch.setenv("PENSTOCK_COSTS", str(tmp_path / "costs.json"))
    costs.keep_costs({"transfer": 0.5004, "hop": 2.0}, ("transfer",))
    kept = json.loads((tmp_path / "costs.json").read_text())["cost_us"]
    assert kept == before | {"transfer": 0.5}
    costs.keep_costs({"transfer": 0.0, "join": 3.0}, ("transfer", "join"))
    kept = json.loads((tmp_path / "costs.json").read_text())["cost_us"]
    assert "transfer" not in kept, "too small to be told apart from nothing"
    assert kept["join"] == 3.0
    # The costs of this test must not be those of the next.
    monkeypatch.undo()
    costs.measured_costs.cache_clear()
