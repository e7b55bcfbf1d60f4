"""``penstock transfers``: what it prints and what it refuses."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.shell import Here
from penstock.cli.main import app

EXAMPLE = Path(__file__).parents[2] / "examples" / "tree" / "tree.yaml"

TREE = """\
nodes:     {root: {}, a: {parent: root}, b: {parent: root}}
inputs:    {m1: {node: a}, m2: {node: b}}
operators:
  f: {inputs: [m1], size: 3.5, node: a}
  g: {inputs: [f, m2], size: 2, node: root}
  h: {inputs: [f, f], size: 0.1, node: root}
"""


def _told(tmp_path: Path, *options: str) -> str:
    path = tmp_path / "tree.yaml"
    path.write_text(TREE, encoding="utf-8")
    told = CliRunner().invoke(app, ["transfers", str(path), *options])
    assert told.exit_code == 0, told.output
    return told.stdout


def test_json(tmp_path: Path) -> None:
    up = {"node": "a", "to": "root", "operators": ["f"], "size": 3.5}
    assert json.loads(_told(tmp_path, "--json")) == {"transfers": [up]}
    down = {"node": "root", "to": "a", "operators": ["h"], "size": 0.1}
    assert json.loads(_told(tmp_path, "--json", "--wide")) == {"transfers": [down, up]}


def test_text(tmp_path: Path) -> None:
    assert _told(tmp_path, "--wide").splitlines() == [
        "3 nodes, 3 operators, 2 feasible transfers",
        "",
        "root: 2 operators, 2.1 %",
        "  down to a: h (0.1 %)",
        "",
        "a: 1 operator, 3.5 %",
        "  up   to root: f (3.5 %)",
        "",
        "b: 0 operators, 0 %",
    ]


def test_the_example() -> None:
    told = CliRunner().invoke(app, ["transfers", str(EXAMPLE)])
    assert "5 nodes, 8 operators, 9 feasible transfers" in told.stdout
    assert "  down to n1: clean_n1, alarm_n1 (34 %)" in told.stdout


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("size: 2, node: root", "size: 2, node: b", "operator g is on b, where its input f"),
        ("[m1]", "[m9]", "m9"),
        ("b: {parent: root}", "b: {parent: b}", "node b is its own ancestor: b -> b"),
        ("b: {parent: root}", "b: {}", "2 nodes have no parent: root, b"),
        ("  h: {", "  g: {", "the key g twice"),
    ],
)
def test_bad_files_leave_with_code_1_and_the_name(
    old: str, new: str, named: str, tmp_path: Path, here: Here
) -> None:
    (tmp_path / "bad.yaml").write_text(TREE.replace(old, new), encoding="utf-8")
    told = here("transfers", "bad.yaml", "--json", folder=tmp_path)
    assert (told.returncode, "Traceback" in told.stderr) == (1, False)
    assert named in told.stderr and named in json.loads(told.stdout)["text"]
