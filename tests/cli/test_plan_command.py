"""``penstock plan``: the table, the stable form, figures, what it refuses."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from penstock.cli.main import app
from penstock.cli.plan_command import duration_text
from penstock.control import disk_room

EXAMPLES = Path(__file__).parents[2] / "examples"
ABSTRACT = str(EXAMPLES / "abstract" / "abstract.yaml")
TWO = """\
inputs: {I1: {rate: 0.02}, I2: {rate: 0.03}}
operators:
  o1: {inputs: [I1], cost: 14}
  o2: {inputs: [o1], cost: 6}
  o3: {inputs: [I2], cost: 9, selectivity: 0.5}
  o4: {inputs: [o3], cost: 14}
nodes: {n1: {}, n2: {}}
"""


def plan(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["plan", *arguments])


@pytest.fixture
def two(tmp_path: Path) -> str:
    path = tmp_path / "two.yaml"
    path.write_text(TWO)
    return str(path)


def test_the_table(two: str) -> None:
    told = plan(two)
    assert told.exit_code == 0
    lines = told.output.splitlines()
    assert lines[0] == "4 units on 2 nodes, 2 variables"
    assert lines[2].split()[:4] == ["algorithm", "volume", "of", "ideal"]
    (mine,) = [line for line in lines if line.startswith("> ")]
    assert mine.split()[1:3] == ["rod", "0.756"]
    assert (
        "what it means: of all rate mixes these nodes could serve at all, rod keeps 76 % "
        "without moving anything." in lines
    )
    assert lines[-2:] == ["  n1  o1, o4", "  n2  o2, o3"]


def test_the_stable_form(two: str) -> None:
    told = json.loads(plan(two, "--json", "--algorithm", "connected").output)
    assert told["algorithm"] == "connected" and told["variables"] == ["I1", "I2"]
    first = told["plans"][0]
    assert first["algorithm"] == "connected"
    assert set(first) == {
        "algorithm",
        "assignment",
        "volume_ratio",
        "volume_error",
        "axis_product",
        "plane_distance",
        "cut_streams",
        "fixed",
        "seconds",
        "notes",
    }
    assert first["fixed"] == {"n1": 0.0, "n2": 0.0}
    rod = next(one for one in told["plans"] if one["algorithm"] == "rod")
    assert rod["assignment"] == {"o1": "n1", "o2": "n2", "o3": "n2", "o4": "n1"}
    best = next(one for one in told["plans"] if one["algorithm"] == "exhaustive")
    assert best["volume_ratio"] == max(one["volume_ratio"] for one in told["plans"])


def test_how_much_of_each_node_is_fixed(tmp_path: Path) -> None:
    path = tmp_path / "fixed.yaml"
    path.write_text(TWO.replace("cost: 14}", "cost: 14, fixed: 0.25}", 1))
    told = plan(str(path))
    assert told.output.splitlines()[-2:] == [
        "  n1   25 % fixed  o1",
        "  n2    0 % fixed  o2, o3, o4",
    ]
    (mine, *_) = json.loads(plan(str(path), "--json").output)["plans"]
    assert mine["fixed"] == {"n1": 0.25, "n2": 0.0}


def test_a_plan_that_fixed_loads_overfill_says_so(tmp_path: Path) -> None:
    path = tmp_path / "full.yaml"
    path.write_text(TWO.replace("cost: 14}", "cost: 14, fixed: 1.25}", 1))
    told = plan(str(path))
    assert (
        "note: full of fixed loads alone: n1 (1.25 of its CPU): nothing is feasible"
        in told.output.splitlines()
    )


def test_a_deployment_is_placed_by_fragment() -> None:
    told = json.loads(plan(str(EXAMPLES / "ami" / "ami.yaml"), "--nodes", "2", "--json").output)
    assert set(told["plans"][0]["assignment"]) == {
        "district_load",
        "heavy_homes",
        "network_peak",
        "suspicious",
    }
    assert set(told["plans"][0]["assignment"].values()) == {"n1", "n2"}


def test_figures(tmp_path: Path, two: str) -> None:
    path = tmp_path / "plans.svg"
    assert plan(ABSTRACT, "--figure", str(path)).exit_code == 0
    text = path.read_text()
    assert "packets per second" in text and "rod" in text
    told = plan(two, "--figure", str(tmp_path / "plans.poem"))
    assert "Name a file that ends in .svg, .png or .pdf." in str(told.exception)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--algorithm", "rood"], "no placement strategy rood. There are rod, "),
        (["--figure", "a.svg", "--slice", "I1,I3"], "--slice I1,I3: no variable I3; there are I1,"),
        (["--figure", "a.svg", "--slice", "I1"], "--slice I1 does not name two variables. Write"),
    ],
)
def test_what_cannot_be_asked_for(two: str, arguments: list[str], text: str) -> None:
    assert str(plan(two, *arguments).exception).startswith(text)


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("cost: 14}", "cost: -14}", "operator o1 has the cost -14. Give zero or more."),
        ("n1: {}", "n1: {cpu: 0}", "node n1 has the cpu 0. Give more than zero."),
        ("I2: {rate: 0.03}", "I2: {}, I3: {}", "nobody reads input I3. Remove it, or let"),
        ("rate: 0.02", "rate: 0.2, lower: 0.2", "the lower bounds of the rates alone need 2.00"),
    ],
)
def test_infeasible_input_is_refused(two: str, old: str, new: str, text: str) -> None:
    Path(two).write_text(TWO.replace(old, new, 1))
    told = plan(two)
    assert told.exit_code == 1
    assert text in str(told.exception)


def test_a_unit_that_fits_nowhere_is_flagged(two: str) -> None:
    Path(two).write_text(TWO.replace("rate: 0.02", "rate: 0.1"))
    told = plan(two)
    assert told.exit_code == 0
    assert "note: fits on no node at typical rates: o1 (needs 1.40 of 1)" in told.output


def test_more_variables_than_can_be_integrated_are_flagged(tmp_path: Path) -> None:
    path = tmp_path / "wide.yaml"
    inputs = ", ".join(f"I{at}: {{}}" for at in range(30))
    operators = "\n".join(f"  o{at}: {{inputs: [I{at}], cost: 1}}" for at in range(30))
    path.write_text(f"inputs: {{{inputs}}}\noperators:\n{operators}\nnodes: {{n1: {{}}, n2: {{}}}}")
    told = plan(str(path))
    assert told.exit_code == 0
    assert "note: 30 variables are more than the 24 that can be integrated" in told.output
    assert "not known" in told.output


def test_times_for_people() -> None:
    assert duration_text(0.0123) == "12 ms"


def test_plans_keep_to_a_tree_of_nodes() -> None:
    """Whatever the strategy: a district's fragments stay in it, or go up."""
    for name in ("rod", "largest-load", "random"):
        told = json.loads(
            plan(str(EXAMPLES / "tree" / "live.yaml"), "--algorithm", name, "--json").output
        )
        for one in told["plans"]:
            places = one["assignment"]
            assert places["south_hourly"] in ("south", "office")
            assert places["north_hourly"] in ("north", "office")
            assert places["heavy_homes"] == "office"


SPREAD = """\
streams:
  bids: {source: {generate: nexmark.bids, rate: 20000, speedup: 1}, lateness: 1s}
  auctions: {source: {generate: nexmark.auctions, rate: 20000, speedup: 1}, lateness: 1s}
nodes: {a: {}, b: {}}
queries:
  pairs:
    sql: SELECT a.id, b.price FROM auctions a JOIN bids b ON a.id = b.auction
      AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 DAY
    join: {spread: 2, groups: 6}
"""


def test_parts_of_a_join_and_a_disk_that_is_too_small_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "spread.yaml"
    path.write_text(SPREAD)
    monkeypatch.setattr(disk_room, "free_bytes", lambda folder: 10**6)
    told = json.loads(plan(str(path), "--json").output)
    places = told["plans"][0]["assignment"]
    assert (places["pairs_part1"], places["pairs_part2"]) == ("a", "b")
    assert places.keys() == {"pairs_part1", "pairs_part2", "pairs"}
    (note,) = [note for note in told["notes"] if note.startswith("the windows of pairs need ")]
    assert f"1 MB are free in {tmp_path}: shorten the time bound" in note
    monkeypatch.setattr(disk_room, "free_bytes", lambda folder: 10**15)
    assert "the windows" not in plan(str(path)).output
