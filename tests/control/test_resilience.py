"""How much the placement of a running system takes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from control.asking import Api, served
from control.made_up import node
from penstock.control.resilience import ResilienceBook, resilience, system_problem
from penstock.errors import UsageError
from penstock.load.feasible import fixed_shares, node_coefficients

TWO = """
streams:
  east: {source: {generate: meters, days: 1}, lateness: 2min}
  west: {source: {generate: meters, days: 1}, lateness: 2min}
queries:
  east_hours: >
    SELECT home, sum(kwh) AS kwh FROM east GROUP BY home, window(ts, '1 hour')
  west_hours: >
    SELECT home, sum(kwh) AS kwh FROM west GROUP BY home, window(ts, '1 hour')
"""
LATER = "SELECT home, max(kwh) AS most FROM east GROUP BY home, window(ts, '2 hours')"
NODES = (node("a"), node("b"))


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with served(tmp_path_factory.mktemp("resilience")) as made:
        for name, kind, text in (("two", "yaml", TWO), ("later", "sql", LATER)):
            body = {"name": name, "kind": kind, "text": text}
            assert made.ask("POST", "/api/queries", json=body).status_code == 201
        yield made


PLACES = {"east_hours": "a", "west_hours": "b", "later": "b"}


def test_a_stream_can_rise_until_a_node_is_full(api: Api) -> None:
    system = api.controller.system()
    rates = {"east": 100.0, "west": 300.0}
    found = resilience(system, NODES, PLACES, {}, rates.get, ResilienceBook())
    problem = system_problem(system, NODES, {})
    on = [["a", "b"].index(PLACES[unit]) for unit in problem.units]
    assignment = np.array(on)
    known = {stream.variable: stream for stream in found.streams}
    now = np.array([known[name].rate_per_s for name in problem.variables])
    for at, name in enumerate(problem.variables):
        most = known[name].most_per_s
        if most is None:
            continue
        risen = now.copy()
        risen[at] = most
        used = node_coefficients(problem, assignment) @ risen / problem.capacities
        used += fixed_shares(problem, assignment)
        assert used.max() == pytest.approx(1.0)
        assert problem.nodes[int(used.argmax())] == known[name].first_full
    assert {name: known[name].observed for name in rates} == {"east": True, "west": True}


def test_what_another_submission_reads_is_one_stream(api: Api) -> None:
    problem = system_problem(api.controller.system(), NODES, {})
    assert set(problem.units) == {"east_hours", "west_hours", "later"}
    assert [name for name in problem.variables if name in ("east", "west")] == ["east", "west"]


def test_rivals_are_no_better_than_the_ideal(api: Api) -> None:
    system = api.controller.system()
    found = resilience(
        system, NODES, PLACES, {}, lambda _: None, ResilienceBook(), ("west", "east")
    )
    assert (found.x, found.y) == ("west", "east")
    assert found.plans[0].plan == "as it runs"
    assert {one.plan for one in found.plans} >= {"rod", "local-search", "correlation"}
    assert found.plans[0].nodes == PLACES
    for plan in found.plans:
        assert plan.volume is None or 0 <= plan.volume <= 1 + plan.error
        for corner in plan.feasible:
            assert all(value >= -1e-9 for value in corner)


def test_while_something_is_nowhere_only_rivals_are_shown(api: Api) -> None:
    system, places = api.controller.system(), {**PLACES, "later": None}
    found = resilience(system, NODES, places, {}, lambda _: None, ResilienceBook())
    assert "as it runs" not in [plan.plan for plan in found.plans]
    assert "some fragments run nowhere just now" in found.notes


def test_a_stream_there_is_not(api: Api) -> None:
    system = api.controller.system()
    with pytest.raises(UsageError, match=r"no stream ost limits this system\. There are .*east"):
        resilience(system, NODES, PLACES, {}, lambda _: None, ResilienceBook(), ("ost", None))


def test_without_queries_or_nodes_it_says_why(tmp_path_factory: pytest.TempPathFactory) -> None:
    with served(tmp_path_factory.mktemp("empty")) as made:
        told = made.ask("GET", "/api/resilience").json()
        assert (told["plans"], told["notes"]) == ([], ["nothing runs yet"])
