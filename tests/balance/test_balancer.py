"""The balancing loop over a toy world: when it asks, what it has done, what it keeps."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from penstock.balance.balancer import BalancingLoop
from penstock.balance.guards import Guards
from penstock.balance.settings import BalanceSettings
from penstock.balance.situation import Situation
from penstock.balance.world import (
    BalanceInstruction,
    CarryOut,
    Observation,
    Suggest,
    TellFailure,
    TellLate,
)
from penstock.model.settings import settings_of

NAMES = [f"q{k}" for k in range(8)]
LOADS = np.linspace(0.1, 0.2, 8)


@dataclass
class ToyWorld:
    """Eight operators on the first of some nodes; moves take effect when they are begun."""

    nodes: int = 2
    now_s: float = 0.0
    is_moving: bool = False
    is_known: bool = True
    refuses: bool = False
    assignment: list[int] = field(default_factory=lambda: [0] * 8)
    story: list[BalanceInstruction] = field(default_factory=list)

    def observe(self, settings: BalanceSettings) -> Observation:
        series = np.repeat(LOADS[:, None], settings.samples, axis=1)
        situation = (
            Situation.of(series, self.assignment, [1.0] * self.nodes) if self.is_known else None
        )
        return Observation(NAMES, [*"abcd"[: self.nodes]], situation, self.is_moving)

    def enact(self, instruction: BalanceInstruction) -> bool:
        self.story.append(instruction)
        if self.refuses:
            return False
        if isinstance(instruction, CarryOut):
            self.assignment = instruction.plan.assignment.tolist()
        return True

    def moved(self) -> list[str]:
        """Who was moved by the last instruction."""
        last = self.story[-1]
        assert isinstance(last, CarryOut | Suggest)
        return [last.seen.names[move.operator] for move in last.plan.moves]


class HeldBack(Executor):
    """Makes plans when it is let."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def submit(self, work: Callable[..., Any], /, *given: Any, **_more: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.waiting.append(lambda: future.set_result(work(*given)))
        return future

    def let(self) -> None:
        self.waiting.pop()()


def chosen(policy: str = "largest-load-first", **more: Any) -> BalanceSettings:
    return BalanceSettings(policy, guards=more.pop("guards", Guards()), **more)


def loop_over(world: ToyWorld, planners: Executor | None = None) -> BalancingLoop:
    return BalancingLoop(world, np.random.default_rng(0), planners)


def test_it_looks_decides_and_has_moved() -> None:
    world = ToyWorld()
    loop_over(world).look(chosen())
    assert 0 < len(world.moved()) < 8
    loads = [sum(load for load, at in zip(LOADS, world.assignment, strict=True) if at == node)
             for node in (0, 1)]  # fmt: skip
    assert abs(loads[0] - loads[1]) <= max(LOADS)


@pytest.mark.parametrize(
    "world", [ToyWorld(is_moving=True), ToyWorld(is_known=False)], ids=["moves", "unknown"]
)
def test_there_are_times_to_wait(world: ToyWorld) -> None:
    loop = loop_over(world)
    loop.look(chosen())
    assert world.story == []
    assert not loop.is_planning


def test_off_is_off() -> None:
    world = ToyWorld()
    loop_over(world).look(chosen("off"))
    assert world.story == []


def test_who_moved_rests() -> None:
    world = ToyWorld()
    loop = loop_over(world)
    settings = chosen("global-random", guards=Guards(cooldown_s=10.0))
    loop.look(settings)
    first = world.moved()
    world.now_s = 5.0
    loop.look(settings)
    assert set(first).isdisjoint(world.moved())
    world.now_s = 20.0
    loop.look(settings)
    assert not set(first).isdisjoint(world.moved())


def test_what_was_refused_is_not_remembered() -> None:
    """Or operators would rest that never moved."""
    world = ToyWorld(refuses=True)
    loop = loop_over(world)
    settings = chosen(guards=Guards(cooldown_s=1_000.0))
    loop.look(settings)
    wanted = world.moved()
    world.refuses = False
    world.now_s = 1.0
    loop.look(settings)
    assert world.moved() == wanted


def test_suggestions_go_through_the_same_guards() -> None:
    world = ToyWorld()
    loop = loop_over(world)
    settings = chosen(suggest=True, guards=Guards(cooldown_s=10.0, patience=2))
    loop.look(settings)
    assert world.moved() == []
    loop.look(settings)
    assert isinstance(world.story[-1], Suggest)
    assert world.moved()
    assert world.assignment == [0] * 8


def test_a_plan_that_takes_a_while_is_the_same() -> None:
    at_once, later, planners = ToyWorld(), ToyWorld(), HeldBack()
    loop = loop_over(later, planners)
    loop_over(at_once).look(chosen("random"))
    loop.look(chosen("random"))
    assert (later.story, loop.is_planning) == ([], True)
    planners.let()
    loop.go_on()
    assert (later.moved(), loop.is_planning) == (at_once.moved(), False)


def test_a_plan_that_comes_too_late_is_thrown_away() -> None:
    world, planners = ToyWorld(), HeldBack()
    loop = loop_over(world, planners)
    loop.look(chosen(planning_s=15.0))
    for world.now_s in (15.0, 15.1, 30.0):
        loop.go_on()
    assert world.story == [TellLate("largest-load-first", 15.0)]
    planners.let()
    loop.go_on()
    assert len(world.story) == 1
    loop.look(chosen())
    planners.let()
    loop.go_on()
    assert world.moved()


def test_no_plan_at_all() -> None:
    world = ToyWorld()
    gone = BalanceSettings.of(settings_of({"policy": "gone"}))
    loop_over(world).look(gone)
    (told,) = world.story
    assert isinstance(told, TellFailure)
    assert str(told.error).startswith("no balancing policy gone")


@pytest.mark.parametrize(("looks", "target"), [(1, 3), (2, 1), (3, 3)])
def test_the_borders_of_domains_shift_with_every_look(looks: int, target: int) -> None:
    """Also with those at which nothing could be decided."""
    world = ToyWorld(nodes=4, is_known=False)
    loop = loop_over(world)
    settings = BalanceSettings.of(settings_of({"policy": "one-way", "domain": 2, "patience": 1}))
    for _ in range(looks - 1):
        loop.look(settings)
    world.is_known = True
    loop.look(settings)
    assert world.moved()
    assert set(world.assignment) == {0, target}
