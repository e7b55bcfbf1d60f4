"""Cost memory: what was measured is found again for the same work, and for no other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.control.cost_memory import CostMemory
from penstock.lang.deployment import parse_deployment
from penstock.model.estimates import OperatorEstimate
from penstock.model.fragments import Fragment
from penstock.model.measurements import FragmentStatus
from penstock.place.fuse import fuse

MEASURED = FragmentStatus("peaks", 10_000, cost_us=7.5, selectivity=0.25, batch_ms=80.0)


def fragment(name: str = "peaks", least: int = 3, rate: int = 1) -> Fragment:
    text = (
        f"streams:\n  readings: {{source: {{generate: meters, days: 1, speedup: {rate}}}}}\n"
        f"queries:\n  {name}: SELECT ts, home, kwh FROM readings WHERE kwh > {least}\n"
    )
    (found,) = fuse(parse_deployment(text, "test", Path()).network)
    return found


def test_what_was_measured_is_there_after_a_restart(tmp_path: Path) -> None:
    memory = CostMemory(tmp_path / "costs.json")
    assert memory.note(fragment(), MEASURED)
    memory.save()
    again = CostMemory(tmp_path / "costs.json")
    assert again.estimates([fragment()]) == {"peaks": OperatorEstimate(7.5, selectivity=0.25)}


def test_the_rate_does_not_matter_but_the_work_does(tmp_path: Path) -> None:
    memory = CostMemory(tmp_path / "costs.json")
    memory.note(fragment(), MEASURED)
    assert memory.estimates([fragment(rate=9)])
    assert not memory.estimates([fragment(least=4)])


def test_the_newest_counts(tmp_path: Path) -> None:
    memory = CostMemory(tmp_path / "costs.json")
    memory.note(fragment(), MEASURED)
    assert not memory.note(fragment(), MEASURED), "nothing new"
    assert memory.note(fragment(), replace(MEASURED, cost_us=9.0))
    assert memory.estimates([fragment()])["peaks"].cost_us == 9.0


@pytest.mark.parametrize(
    "missing", [{"rows_in": 9_999}, {"cost_us": None}, {"selectivity": None}, {"rows_in": 0}]
)
def test_too_little_is_not_remembered(tmp_path: Path, missing: dict[str, Any]) -> None:
    memory = CostMemory(tmp_path / "costs.json")
    assert not memory.note(fragment(), replace(MEASURED, **missing))
    assert not memory.estimates([fragment()])


@pytest.mark.parametrize("text", ["{", "[1]", '{"x": {"cost_us": -1}}', '{"x": {"price": 1}}'])
def test_a_broken_file_is_begun_anew(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "costs.json"
    path.write_text(text)
    memory = CostMemory(path)
    assert f"the measured costs in {path} are begun anew" in caplog.text
    memory.note(fragment(), MEASURED)
    memory.save()
    assert CostMemory(path).estimates([fragment()])
