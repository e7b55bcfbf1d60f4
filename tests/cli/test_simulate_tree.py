"""``penstock simulate`` on trees: what it prints, draws and refuses."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.errors import UsageError

TREE = """
nodes: {n1: {}, n2: {parent: n1}, n3: {parent: n2}}
inputs: {m: {node: n3}}
operators:
  A: {inputs: [m], size: 10, node: n2}
  B: {inputs: [m], size: 55, node: n2}
  p: {inputs: [B], size: 59, node: n1}
  k: {inputs: [m], size: 40, node: n3}
"""


@pytest.fixture
def tree(tmp_path: Path) -> str:
    path = tmp_path / "tree.yaml"
    path.write_text(TREE, encoding="utf-8")
    return str(path)


def _told(*arguments: str) -> str:
    told = CliRunner().invoke(app, ["simulate", *arguments])
    if told.exception is not None and told.exit_code == 1:
        raise told.exception
    assert told.exit_code == 0, told.output
    return told.stdout


def test_a_summary_people_can_read(tree: str) -> None:
    told = _told(tree, "--balance", "hierarchy")
    assert "4 operators on a tree of 3 nodes, balancing hierarchy" in told
    assert "1 operator moved" in told and "  A: n2 → n3" in told
    assert "added up over the nodes; 1 min 0 s without negotiations" in told
    assert "at the end  mean 54.7 %, deviation 3.7, 0 nodes overloaded" in told


def test_without_negotiations_nothing_moves(tree: str) -> None:
    told = _told(tree)
    assert "balancing off" in told and "0 operators moved" in told and "→" not in told


def test_json_and_figure(tree: str, tmp_path: Path) -> None:
    figure = tmp_path / "tree.svg"
    options = ("--balance", "hierarchy", "--growth", "1", "--for", "2min", "--seed", "3")
    first, again = (
        json.loads(_told(tree, *options, "--json", "--figure", str(figure))) for _ in range(2)
    )
    assert first | {"seconds": 0} == again | {"seconds": 0}
    assert len(first["samples"]) == 60 and first["assignment"]["p"] == "n1"
    assert first["samples"][-1]["time_s"] == 120.0
    assert "overloaded nodes" in figure.read_text(encoding="utf-8")


def test_other_policies_do_not_know_trees(tree: str) -> None:
    with pytest.raises(UsageError, match="--balance correlation does not know trees"):
        CliRunner().invoke(
            app, ["simulate", tree, "--balance", "correlation"], catch_exceptions=False
        )


DEPLOYMENT = """
streams:
  north: {source: {generate: meters, homes: 9000, speedup: 300}, lateness: 1s, on: north}
  south: {source: {generate: meters, homes: 900, speedup: 300}, lateness: 1s, on: south}
queries:
  peaks: SELECT home, max(kwh) AS kwh FROM north GROUP BY home, window(ts, '1 hour', '15 minutes')
  sums: SELECT home, sum(kwh) AS kwh FROM north GROUP BY home, window(ts, '3 hours', '15 minutes')
  counts: SELECT home, count(*) AS n FROM north GROUP BY home, window(ts, '2 hours', '15 minutes')
  few: SELECT home, max(kwh) AS kwh FROM south GROUP BY home, window(ts, '1 hour', '15 minutes')
nodes: {office: {}, north: {parent: office}, south: {parent: office}}
"""


@pytest.fixture
def deployed(tmp_path: Path) -> str:
    path = tmp_path / "districts.yaml"
    path.write_text(DEPLOYMENT, encoding="utf-8")
    return str(path)


# Everything that may be there begins at the office.
AT_THE_OFFICE = ("--placement", "first-fit", "--scale", "7", "--balance", "hierarchy")


def test_a_deployment_on_a_tree_with_and_without_negotiations(
    deployed: str, tmp_path: Path
) -> None:
    figure = tmp_path / "tree.svg"
    told = _told(deployed, *AT_THE_OFFICE, "--figure", str(figure))
    assert "4 fragments on a tree of 3 nodes, placement first-fit, balancing hierarchy" in told
    assert "few office → south" in told and "overloaded  " in told
    assert "without negotiations" in told
    assert "deviation" in figure.read_text(encoding="utf-8")
    found = json.loads(_told(deployed, *AT_THE_OFFICE, "--json"))
    assert found["overloaded_s"] < found["overloaded_without_s"] and len(found["samples"]) == 60
    assert {one["from"] for one in found["transfers"]} == {"office"}
    assert found["assignment"]["few"] == "south"
    assert found["samples"][-1]["deviation"] < found["samples"][5]["deviation"]


def test_a_deployment_stays_where_its_streams_pass(deployed: str) -> None:
    found = json.loads(_told(deployed, "--json", "--for", "5s"))
    assert found["policy"] == "off" and found["transfers"] == []
    assert "north" not in found["assignment"]["few"]
    assert {found["assignment"][name] for name in ("peaks", "sums", "counts")} <= {
        "office",
        "north",
    }


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--balance", "global"), "the policy global does not know that nodes form a tree"),
        (("--balance", "hierarchy", "--nodes", "2"), "is for nodes that form a tree"),
        (("--balance", "hierarchy", "--suggest"), "nodes that negotiate suggest nothing"),
        (("--balance", "hierarchie"), "Write --balance hierarchy, or off"),
    ],
)
def test_what_does_not_go_with_the_tree_of_a_deployment(
    deployed: str, options: tuple[str, ...], why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        CliRunner().invoke(app, ["simulate", deployed, *options], catch_exceptions=False)


def test_what_a_file_says_of_negotiations_counts(deployed: str) -> None:
    path = Path(deployed)
    balance = "balance: {policy: hierarchy, lower: 20, upper: 99, utilisation: memory}\n"
    path.write_text(DEPLOYMENT + balance, encoding="utf-8")
    told = _told(deployed, "--placement", "first-fit", "--for", "20s")
    assert "balancing hierarchy" in told and "→" not in told
    assert "utilisation by memory is not simulated" in told
