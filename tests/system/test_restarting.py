"""Where things run survives a stop of the whole system, and the death of a node."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.control.launch import bring_down
from penstock.control.letters import Letter
from penstock.control.message_server import post
from penstock.control.node_state import LEASE_S
from penstock.errors import UnreachableError
from system.under_test import UnderTest
from waiting import until

STALLED = "stops its units: its lease ran out: "
METERS = """
streams:
  readings:
    source: {generate: meters, homes: 10, speedup: 2880}
    lateness: 2min
queries:
  pinned: {sql: "SELECT ts, home, kwh FROM readings WHERE kwh > 0.1", on: b}
  free: SELECT ts, home, kwh FROM readings WHERE kwh > 0.2
"""


@pytest.fixture
def system(tmp_path: Path) -> Iterator[UnderTest]:
    made = UnderTest(tmp_path, 2)
    yield made
    made.stop()


def places(system: UnderTest) -> dict[str, str]:
    return {unit.name: unit.node or "" for unit in system.catalog.units()}


def await_all_up(system: UnderTest) -> None:
    until(lambda: all(unit.is_up for unit in system.catalog.units()), 120, "everything runs")


def heard(system: UnderTest) -> dict[str, set[str]]:
    return {node.name: set(node.heard) for node in system.client.nodes()}


def check_messages(system: UnderTest) -> None:
    """Nodes hear of each other; what nobody sent with the token is refused and logged."""
    until(lambda: heard(system) == {"a": {"b"}, "b": {"a"}}, 60, "nodes hear of each other")
    ages_s = [age_s for node in system.client.nodes() for age_s in node.heard.values()]
    assert 0.0 < max(ages_s) < 30.0
    contacts = system.catalog.contacts()
    letter = Letter(sender="b", life=contacts["b"].life, to="a", loads={})
    with pytest.raises(UnreachableError, match="401"):
        post(contacts["a"].address, "a guess", letter)
    former = letter.model_copy(update={"life": "a former one"})
    with pytest.raises(UnreachableError, match="403"):
        post(contacts["a"].address, system.home.token(), former)
    for why in ("the token is missing or wrong", "a former life of b"):
        until(lambda why=why: why in system.log("a"), 20, why)  # type: ignore[misc]


@pytest.mark.timeout(400)
def test_a_clean_restart_and_a_killed_node(system: UnderTest) -> None:
    system.submit("meters", METERS)
    await_all_up(system)
    check_messages(system)
    for unit in ("free", "readings"):
        if system.node_of(unit) != "b":
            assert system.move(unit, "b") == "done"
    bring_down(system.home)
    written = [system.log(name) for name in ("controller", "a", "b")]
    assert not [line for log in written for line in log.splitlines() if "Traceback" in line]
    system.restart_controller()
    await_all_up(system)
    assert set(places(system).values()) == {"b"}, "nothing has moved"

    system.kill_node_until("b", lambda: system.node_of("free") == "a", "it goes on elsewhere")
    until(lambda: system.node_of("free") == "b", 180, "it comes back")
    await_all_up(system)
    assert set(places(system).values()) == {"b"}
    until(lambda: heard(system) == {"a": {"b"}, "b": {"a"}}, 60, "they talk again")
    moves = [(move.unit, move.by) for move in system.catalog.moves() if move.source == "b"]
    assert ("pinned", "failover") not in moves, "it waited for its node"
    came_home = {
        move.unit: move.reason
        for move in system.catalog.moves()
        if move.by in ("return", "failover") and (move.source, move.target) == ("a", "b")
    }
    assert came_home.keys() == {"free", "readings"}
    # A node that stalls for longer than its lease loses what it has, which brings it home as well.
    reasons = set(came_home.values()) - {"node b is back"}
    assert not reasons or (reasons == {"node a fell silent"} and STALLED in system.log("a"))

    count, told = len(system.catalog.moves()), system.log("b").count(STALLED)
    system.stand_still(LEASE_S + 2)
    until(lambda: system.log("b").count(STALLED) > told, 20, "b has noticed")
    await_all_up(system)
    seen = system.count("pinned")
    until(lambda: system.count("pinned") > seen, 60, "rows go on")
    # Node a had nothing to stop, and could join again before b.
    assert set(places(system).values()) == {"b"}
    assert len(system.catalog.moves()) == count
