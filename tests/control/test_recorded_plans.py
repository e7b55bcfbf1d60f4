"""Recorded plans: written with a submission, gone with it, and anew where another version wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from control.made_up import AMI
from control.toys import TroubledCatalog
from penstock.control import recorded_plans
from penstock.control.controller import Controller
from penstock.control.home import Home
from penstock.control.recorded_plans import keep_plans, recorded_system, recorded_unit
from penstock.control.records import UnitRecord
from penstock.control.system import assemble
from penstock.errors import RunError


@pytest.fixture
def controller(catalog: TroubledCatalog, tmp_path: Path) -> Controller:
    home = Home(tmp_path / "system")
    home.prepare()
    made = Controller(home, catalog)
    made.submit("ami", "yaml", AMI, ".")
    made.submit("top", "sql", "SELECT home FROM peaks", ".")
    return made


def test_a_node_reads_what_it_runs_and_parses_nothing(
    controller: Controller, catalog: TroubledCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = assemble(catalog.submissions())

    def parse(*_: object) -> None:
        raise AssertionError("parsed again")

    monkeypatch.setattr("penstock.control.system.parse_deployment", parse)
    monkeypatch.setattr("penstock.control.system.parse_single_query", parse)
    for unit in catalog.units():
        assert recorded_unit(catalog, unit) == system.units[unit.name]
    assert controller.system() == system


def test_what_is_dropped_has_no_plan(controller: Controller, catalog: TroubledCatalog) -> None:
    (top,) = (unit for unit in catalog.units() if unit.name == "top")
    controller.drop("top")
    assert [*catalog.plans()] == [1]
    for record in (top, UnitRecord("other", "fragment", 1)):
        with pytest.raises(RunError, match=f"there is no plan of {record.name}"):
            recorded_unit(catalog, record)


def test_a_submission_that_is_not_accepted_has_none(
    controller: Controller, catalog: TroubledCatalog
) -> None:
    before = catalog.plans()

    def fail() -> None:
        raise RunError("no room")

    catalog.before["add"] = fail
    with pytest.raises(RunError, match="no room"):
        controller.submit("more", "sql", "SELECT kwh FROM peaks", ".")
    assert catalog.plans() == before


def test_another_version_records_them_anew(
    controller: Controller, catalog: TroubledCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans = catalog.plans()
    theirs = dict.fromkeys(plans, "in a form of its own")
    catalog.record_plans(theirs)
    keep_plans(catalog)
    assert catalog.plans() == theirs, "of this version, they are as they should be"
    monkeypatch.setattr(recorded_plans, "__version__", "9.9.9")
    keep_plans(catalog)
    assert catalog.plans() == plans
    assert recorded_system(plans) == assemble(catalog.submissions())


def test_missing_ones_are_recorded(controller: Controller, catalog: TroubledCatalog) -> None:
    plans = catalog.plans()
    catalog.record_plans({1: plans[1]})
    keep_plans(catalog)
    assert catalog.plans() == plans
