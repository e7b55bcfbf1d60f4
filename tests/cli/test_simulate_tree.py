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
