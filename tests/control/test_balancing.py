"""Balancing: measured loads become moves by a policy's decision, or suggestions of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest

from control.toys import TroubledCatalog
from penstock.control.balancing import LiveBalancing
from penstock.control.controller import Controller
from penstock.control.home import Home
from penstock.control.records import NodeRecord
from penstock.model.measurements import FragmentStatus, NodeSample

QUERIES = tuple("abcd")
PERIODS = 6


def deployment(settings: str, to: str = "console") -> str:
    queries = "".join(
        f"  {name}: {{sql: 'SELECT ts, kwh FROM readings WHERE kwh > 3', to: {to}}}\n"
        for name in QUERIES
    )
    return (
        "streams:\n  readings: {source: {generate: meters, days: 1}, lateness: 2min}\n"
        f"queries:\n{queries}balance: {{policy: correlation, every: 1s, samples: {PERIODS}, "
        f"sample: 2s, patience: 1, {settings}}}\n"
    )


class Planners(Executor):
    """Make a plan at once, or when they are let."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []
        self.holds_back = False
        self.has_planned = False

    def submit(self, work: Callable[..., Any], /, *given: Any, **_more: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.waiting.append(lambda: future.set_result(work(*given)))
        if not self.holds_back:
            self.let()
        return future

    def let(self) -> None:
        while self.waiting:
            self.waiting.pop()()
            self.has_planned = True


class System:
    """Two nodes, with all fragments on the first, and what is measured there."""

    def __init__(
        self, folder: Path, catalog: TroubledCatalog, settings: str, to: str = "console"
    ) -> None:
        self.catalog, self.now_s = catalog, time.time()
        home = Home(folder / "system")
        home.prepare()
        for name in ("n1", "n2"):
            until_s = self.now_s + 600.0
            catalog.join(NodeRecord(name, 1, 1 << 30, f"{name}-1", lease_until_s=until_s))
        self.controller = Controller(home, catalog)
        self.controller.submit("ami", "yaml", deployment(settings, to), ".")
        for unit in catalog.units():
            catalog.assign(unit, "n1")
            catalog.report(unit.name, unit.epoch + 1, "running")
        self.planners = Planners()
        self.balancer = LiveBalancing(catalog, self.controller, self.planners)

    def measure(self, **loads: list[float]) -> None:
        """Samples up to now, every two seconds, of fragments with these loads in cores."""
        spent = dict.fromkeys(loads, 0.0)
        for at in range(PERIODS + 1):
            at_s = self.now_s - 2.0 * (PERIODS - at)
            fragments = {name: FragmentStatus(name, cpu_ms=ms) for name, ms in spent.items()}
            self.catalog.sample("n1", NodeSample(at_s, fragments=fragments))
            for name, load in loads.items():
                spent[name] += 2_000 * load[min(at, PERIODS - 1)]

    def moves(self) -> set[tuple[str, str]]:
        return {(move.unit, move.target) for move in self.catalog.moves()}


def up_and_down(high: float, low: float) -> list[float]:
    return [high, low] * (PERIODS // 2)


@pytest.fixture
def system(tmp_path: Path, catalog: TroubledCatalog) -> System:
    return System(tmp_path, catalog, "cooldown: 60s")


BURSTS = {
    "a": up_and_down(0.4, 0.1),
    "b": up_and_down(0.4, 0.1),
    "c": up_and_down(0.1, 0.4),
    "d": up_and_down(0.1, 0.4),
}


def test_what_bursts_together_is_put_apart(system: System) -> None:
    system.measure(**BURSTS)
    system.balancer.tick(system.now_s)
    moved = {unit for unit, target in system.moves() if target == "n2"}
    assert len(moved) == 2
    assert len(moved & {"a", "b"}) == 1, "of each pair one stays"


def test_what_writes_to_a_database_stays(tmp_path: Path, catalog: TroubledCatalog) -> None:
    database = f"sqlite:///{tmp_path}/use.db"
    system = System(tmp_path, catalog, "cooldown: 60s", f"{{table: t, database: '{database}'}}")
    system.measure(**BURSTS)
    system.balancer.tick(system.now_s)
    assert system.planners.has_planned
    assert system.moves() == set()


def test_domains_of_one_node_leave_everything_where_it_is(
    tmp_path: Path, catalog: TroubledCatalog
) -> None:
    system = System(tmp_path, catalog, "cooldown: 60s, domain: 1")
    system.measure(**BURSTS)
    system.balancer.tick(system.now_s)
    assert system.planners.has_planned
    assert system.moves() == set()


def test_light_fragments_move_as_one(tmp_path: Path, catalog: TroubledCatalog) -> None:
    system = System(tmp_path, catalog, "cooldown: 60s, lightest: 0.4")
    loads = {"a": 0.25, "b": 0.25, "c": 0.3, "d": 0.3}
    system.measure(**{name: [load] * PERIODS for name, load in loads.items()})
    system.balancer.tick(system.now_s)
    assert {unit for unit, _ in system.moves()} == {"a", "b"}


def test_a_move_says_what_it_rests_on(system: System) -> None:
    system.measure(**BURSTS)
    system.balancer.tick(system.now_s)
    move = system.catalog.moves()[0]
    assert "node n1 1.00 →" in move.reason
    assert move.numbers["policy"] == "improved-selective-exchange"


def test_too_few_samples_move_nothing(system: System) -> None:
    system.balancer.tick(system.now_s)
    assert not system.moves()


def test_looks_only_as_often_as_wanted(system: System) -> None:
    system.balancer.tick(system.now_s)
    system.measure(**BURSTS)
    system.balancer.tick(system.now_s + 0.5)
    assert not system.moves()
    system.balancer.tick(system.now_s + 1.1)
    assert system.moves()


def test_waits_for_moves_under_way(system: System) -> None:
    system.measure(**BURSTS)
    system.balancer.tick(system.now_s)
    before = system.catalog.moves()
    system.balancer.tick(system.now_s + 2.0)
    assert system.catalog.moves() == before


def test_suggestions_move_nothing(tmp_path: Path, catalog: TroubledCatalog) -> None:
    system = System(tmp_path, catalog, "suggest: true")
    system.measure(**BURSTS)
    system.balancer.tick(system.now_s)
    assert not system.moves()
    told = [event for event in catalog.events() if event.kind == "suggest"]
    assert len(told) == 2
    assert all(one.text.startswith("to n2: correlation with the rest of n1") for one in told)


def test_a_plan_may_take_a_while(system: System) -> None:
    system.measure(**BURSTS)
    system.planners.holds_back = True
    system.balancer.tick(system.now_s)
    system.balancer.tick(system.now_s + 4.0)
    assert not system.moves()
    system.planners.let()
    system.balancer.tick(system.now_s + 4.1)
    assert len(system.moves()) == 2


def test_a_plan_that_takes_too_long_is_thrown_away(system: System) -> None:
    system.measure(**BURSTS)
    system.planners.holds_back = True
    for after_s in (0.0, 14.9, 15.1, 18.0):
        system.balancer.tick(system.now_s + after_s)
    told = [event for event in system.catalog.events() if event.kind == "late plan"]
    assert [one.text for one in told] == ["no plan after 15 s; everything stays where it is"]
    assert len(system.planners.waiting) == 1, "no other is asked for meanwhile"
    system.planners.let()
    system.balancer.tick(system.now_s + 19.0)
    assert not system.moves()
    system.now_s += 30.0
    system.measure(**BURSTS)
    system.planners.holds_back = False
    system.balancer.tick(system.now_s)
    assert system.moves(), "the next is taken"


def test_a_plan_for_what_has_changed_meanwhile_is_thrown_away(system: System) -> None:
    system.measure(**BURSTS)
    system.planners.holds_back = True
    system.balancer.tick(system.now_s)
    moved = next(unit for unit in system.catalog.units() if unit.name == "a")
    system.catalog.assign(moved, "n2")
    system.planners.let()
    system.balancer.tick(system.now_s + 0.5)
    assert not system.moves()
