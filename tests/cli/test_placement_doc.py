"""Every command of docs/placement.md, run as shown, with the output compared."""

from pathlib import Path

import numpy as np
import pytest

from cli.doc_pages import ROOT, DocPage
from load.abstract_networks import random_problem
from penstock.lang.abstract import parse_abstract
from penstock.load.problem import placement_problem
from penstock.place.strategy import Strategy, check_assignment

PAGE = DocPage("placement.md")


def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "net.yaml").write_text(PAGE.blocks("yaml")[0])
    (tmp_path / "network.yaml").write_text((ROOT / "examples/network/network.yaml").read_text())
    monkeypatch.chdir(tmp_path)
    PAGE.check_commands()


def test_all_that_can_be_said() -> None:
    problem = placement_problem(parse_abstract(PAGE.blocks("yaml")[1], "more.yaml"))
    assert problem.units == ("o1", "a1", "j1", "table t1")
    assert problem.pinned.tolist() == [-1, -1, -1, 1]
    assert problem.fixed.tolist() == [0.0, 0.05, 0.0, 0.0]


def test_the_strategy_of_one_s_own() -> None:
    made: dict[str, object] = {}
    exec(PAGE.blocks("python")[0], made)
    strategy = made["EvenCounts"]
    assert isinstance(strategy, type) and issubclass(strategy, Strategy)
    problem = random_problem(1)
    plan = check_assignment(
        problem, strategy().place(problem, np.random.default_rng(0)), strategy.name
    )
    assert np.bincount(plan).tolist() == [5, 5, 5, 5]


def test_figures_exist() -> None:
    PAGE.check_results()
