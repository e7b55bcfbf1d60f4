"""Tables of costs: those that came along, and those of this machine."""

import json
from pathlib import Path

import pytest

from penstock.bench.costs import batch_cost_ms, keep_costs
from penstock.errors import InputError, RunError
from penstock.load.costs import COSTS, kept_costs_path, measured_costs, read_costs


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "cache" / "costs.json"
    monkeypatch.setenv(COSTS, str(path))
    measured_costs.cache_clear()
    monkeypatch.setattr("penstock.load.costs.files", _shipped(tmp_path))
    return path


def _shipped(folder: Path) -> object:
    table = {
        "cost_us": {"aggregate": 3.0, "transfer": 0.9, "filter": 0.1},
        "batch_ms": {"stateless": 40.0},
        "machine": "there",
        "date": "2026-01-01",
    }
    (folder / "costs.json").write_text(json.dumps(table))
    return lambda package: folder


@pytest.fixture(autouse=True)
def forgotten() -> object:
    yield
    measured_costs.cache_clear()


def test_what_came_along_counts_until_this_machine_was_measured(kept: Path) -> None:
    assert measured_costs().machine == "there"
    assert keep_costs({"aggregate": 5.0, "filter": 0.0}, ("aggregate", "filter")) == kept
    found = measured_costs()
    # Too cheap to be told apart here: left out, not taken from another machine.
    assert found.cost_us == {"aggregate": 5.0, "transfer": 0.9}
    assert found.batch_ms == {"stateless": 40.0}
    assert found.machine != "there"


def test_batches_are_kept_too(kept: Path) -> None:
    keep_costs({}, (), {"stateless": 55.52, "join": 0.0})
    assert measured_costs().batch_ms == {"stateless": 55.52}
    assert not list(kept.parent.glob("*.new"))


def test_the_installed_package_is_left_alone(kept: Path, tmp_path: Path) -> None:
    before = (tmp_path / "costs.json").read_bytes()
    keep_costs({"aggregate": 5.0}, ("aggregate",))
    assert (tmp_path / "costs.json").read_bytes() == before


def test_where_they_are_kept() -> None:
    assert kept_costs_path({"XDG_CACHE_HOME": "/c", "HOME": "/h"}) == Path("/c/penstock/costs.json")
    assert kept_costs_path({COSTS: "/x.json", "XDG_CACHE_HOME": "/c"}) == Path("/x.json")


@pytest.mark.parametrize("text", ["{", "[1]", '{"price": 1}'])
def test_a_broken_table_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "costs.json"
    path.write_text(text)
    with pytest.raises(InputError) as raised:
        read_costs(path)
    assert str(raised.value).startswith(f"{path} is no table of costs: ")
    assert str(raised.value).endswith(
        "Remove it, and run penstock bench costs to measure them again."
    )


def test_where_nothing_can_be_written(kept: Path) -> None:
    kept.parent.write_text("a file where a folder should be")
    with pytest.raises(RunError) as raised:
        keep_costs({"aggregate": 5.0}, ("aggregate",))
    assert str(raised.value).startswith(f"the costs cannot be kept in {kept}: ")
    assert str(raised.value).endswith("Name another file with PENSTOCK_COSTS.")


def test_no_more_batches_tell_nothing() -> None:
    assert batch_cost_ms((5, 1.0), (5, 2.0)) == 0.0
    assert batch_cost_ms((5, 2.0), (10, 1.0)) == 0.0
