"""Every command of docs/placement.md, run as shown, with the output compared."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from load.abstract_networks import random_problem
from penstock.cli.main import app
from penstock.lang.abstract import parse_abstract
from penstock.load.problem import placement_problem
from penstock.place.strategy import Strategy, checked

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "placement.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", TEXT, re.DOTALL)


def blocks(kind: str) -> list[str]:
    return [text for name, text in BLOCKS if name == kind]


def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "net.yaml").write_text(blocks("yaml")[0])
    (tmp_path / "network.yaml").write_text((ROOT / "examples/network/network.yaml").read_text())
    monkeypatch.chdir(tmp_path)
    for block in blocks("console"):
        command, _, shown = block.removeprefix("$ ").partition("\n")
        told = CliRunner().invoke(app, shlex.split(command)[1:])
        assert told.exit_code == 0, told.exception
        pieces = [re.escape(" ".join(part.split())) for part in shown.split("…") if part.strip()]
        printed = " ".join(told.output.split())
        assert re.search(".*".join(pieces), printed), f"{shown}\n{told.output}"


def test_all_that_can_be_said() -> None:
    problem = placement_problem(parse_abstract(blocks("yaml")[1], "more.yaml"))
    assert problem.units == ("o1", "j1", "table t1")
    assert problem.pinned.tolist() == [-1, -1, 1]


def test_the_strategy_of_one_s_own() -> None:
    made: dict[str, object] = {}
    exec(blocks("python")[0], made)
    strategy = made["EvenCounts"]
    assert isinstance(strategy, type) and issubclass(strategy, Strategy)
    problem = random_problem(1)
    plan = checked(problem, strategy().place(problem, np.random.default_rng(0)), strategy.name)
    assert np.bincount(plan).tolist() == [5, 5, 5, 5]


def test_figures_exist() -> None:
    for path in re.findall(r"\]\((results/[^)]+)\)", TEXT):
        assert (ROOT / "docs" / path).exists(), path
