"""What a controller notes of measurements: costs for later plans, results that come late."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import pytest

from control.controller.facts import run, story
from control.made_up import AMI
from control.toys import TroubledCatalog, empty_catalog
from penstock.control.controller import Controller
from penstock.control.home import Home
from penstock.model.estimates import OperatorEstimate
from penstock.model.measurements import FragmentStatus, NodeSample


def test_who_comes_late_is_told_once_it_lasts(
    controller: Controller, catalog: TroubledCatalog
) -> None:
    controller.submit("ami", "yaml", AMI, ".", max_latency_us=5_000_000)
    for unit in catalog.units():
        run(catalog, unit, "a")

    def looked(now_s: float, waiting_s: float) -> list[str]:
        peaks = FragmentStatus("peaks", waiting_s=waiting_s, batch_ms=9_000.0, batches=1)
        catalog.sample("a", NodeSample(now_s, utilisation=0.5, fragments={"peaks": peaks}))
        controller.notices.note_latencies(now_s)
        return story(catalog)[1:]

    late = "late peaks: results take 12 s instead of 5 s: its batches take 9 s"
    assert looked(100.0, 12.0) == [], "one slow batch is no trouble yet"
    assert looked(110.0, 12.0) == [late]
    assert looked(120.0, 20.0) == [late]
    again = "in time peaks: results come as soon as they should again"
    assert looked(130.0, 1.0) == [late, again]


def measured(cost_us: float) -> NodeSample:
    found = FragmentStatus("peaks", 20_000, cost_us=cost_us, selectivity=0.5)
    return NodeSample(time.time(), fragments={"peaks": found, "unknown": found})


def test_the_same_work_is_planned_with_costs_measured_before(
    ami: Controller,
    catalog: TroubledCatalog,
    home: Home,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    catalog.sample("a", measured(9.0))
    ami.note_costs(100.0)
    given: list[object] = []
    monkeypatch.setattr(
        "penstock.control.controller.plan_nodes", lambda *told: given.append(told[-1]) or {}
    )
    others = AMI.replace("peaks:", "tops:").replace("readings", "others")
    with closing(empty_catalog(tmp_path / "later.db")) as later:
        controller = Controller(home, later)
        controller.submit("again", "yaml", AMI, ".")
        controller.submit("others", "yaml", others, ".")
    assert given == [{"peaks": OperatorEstimate(cost_us=9.0, selectivity=0.5)}, {}]


def test_costs_are_noted_now_and_then(
    ami: Controller, catalog: TroubledCatalog, home: Home
) -> None:
    ami.note_costs(100.0)
    catalog.sample("a", measured(9.0))
    ami.note_costs(105.0)
    assert not (home.path / "costs.json").exists()
    ami.note_costs(111.0)
    assert (home.path / "costs.json").exists()
