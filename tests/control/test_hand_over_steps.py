"""A hand-over broken off at every one of its steps, by the death of everybody it needs."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from control.world import World
from penstock.control.decisions import Assign, ChangeMove
from penstock.control.node_instructions import (
    NodeInstruction,
    ReleaseUnit,
    ReportUnit,
    StartUnit,
    StopUnit,
)

UNIT, SOURCE, TARGET = "q", "a", "b"


class HandOver:
    """One unit on its way from a to b, in a world where nothing happens by itself."""

    def __init__(self) -> None:
        self.world = World(lambda some: some[0], units=1, nodes=3)
        self.world.a_controller_decides()
        self._work(SOURCE)
        assert self.world.the(SOURCE).running == {UNIT: 1}

    def _work(self, name: str, until: type[NodeInstruction] | None = None) -> None:
        """A process does all it has to, but what is of one kind: that it is about to do."""
        process = self.world.the(name)
        self.world.now_s += 0.3
        self.world.tick(process)
        while process.to_do or process.answers or process.asked:
            due = [at for at, one in enumerate(process.to_do) if type(one) is not until]
            if due:
                self.world.carry_out(process, due[0], works=True, is_heard=True)
            elif process.asked:
                process.ask(process.asked[0], self.world.now_s, is_heard=True)
            elif process.answers:
                process.handle(process.answers.pop(0), self.world.now_s)
            else:
                return
            if until is not StartUnit:
                while process.starting:
                    self.world.end_start(process, 0, works=True)

    def _is_about_to(self, name: str, kind: type[NodeInstruction]) -> bool:
        return any(isinstance(one, kind) for one in self.world.the(name).to_do)

    def ask(self) -> None:
        self.world.catalog.add_move(UNIT, TARGET, self.world.now_s)

    def prepare(self) -> None:
        self._work(TARGET)
        assert self.world.catalog.moves[1].is_warm

    def look(self) -> None:
        """The controller sees that the target is ready; it has two things to write down."""
        self.world.a_controller_looks()
        assert [type(plan) for plan in self.world.plans[0]] == [Assign, ChangeMove]

    def assign(self) -> None:
        self.world.catalog.carry_out(self.world.plans[0].pop(0), self.world.now_s)

    def change_move(self) -> None:
        self.world.catalog.carry_out(self.world.plans[0].pop(0), self.world.now_s)

    def decide_to_stop(self) -> None:
        self._work(SOURCE, until=StopUnit)
        assert self._is_about_to(SOURCE, StopUnit)

    def stop_at_source(self) -> None:
        self._work(SOURCE, until=ReleaseUnit)
        assert self._is_about_to(SOURCE, ReleaseUnit)
        assert self.world.the(SOURCE).in_hands == {}

    def release(self) -> None:
        self._work(SOURCE)
        assert self.world.catalog.units[UNIT].released_epoch == 1

    def decide_to_start(self) -> None:
        self._work(TARGET, until=StartUnit)
        assert self._is_about_to(TARGET, StartUnit)

    def start(self) -> None:
        self._work(TARGET, until=ReportUnit)
        assert self._is_about_to(TARGET, ReportUnit)
        assert self.world.the(TARGET).running == {UNIT: 2}

    def report(self) -> None:
        self._work(TARGET)
        assert self.world.catalog.units[UNIT].is_up

    def finish(self) -> None:
        self.world.a_controller_decides()
        assert self.world.catalog.moves[1].state == "done"

    def kill(self, victim: str) -> None:
        if victim == "controller":
            self.world.plans = [[], []]
        else:
            self.world.processes[victim] = None


STEPS: tuple[Callable[[HandOver], None], ...] = (
    HandOver.ask,
    HandOver.prepare,
    HandOver.look,
    HandOver.assign,
    HandOver.change_move,
    HandOver.decide_to_stop,
    HandOver.stop_at_source,
    HandOver.release,
    HandOver.decide_to_start,
    HandOver.start,
    HandOver.report,
    HandOver.finish,
)
VICTIMS = ("controller", SOURCE, TARGET)
DEATHS = [
    who for count in range(1, len(VICTIMS) + 1) for who in itertools.combinations(VICTIMS, count)
]


def after(step: Callable[[HandOver], None]) -> HandOver:
    hand_over = HandOver()
    for one in STEPS[: STEPS.index(step) + 1]:
        one(hand_over)
        hand_over.world.check_safety()
    return hand_over


def test_undisturbed_it_comes_to_its_end() -> None:
    world = after(STEPS[-1]).world
    unit = world.catalog.units[UNIT]
    assert (unit.node, unit.epoch) == (TARGET, 2)


@pytest.mark.parametrize("victims", DEATHS, ids=["+".join(who) for who in DEATHS])
@pytest.mark.parametrize("step", STEPS, ids=[step.__name__ for step in STEPS])
@pytest.mark.parametrize("comes_back", [False, True], ids=["for good", "for a while"])
def test_whoever_dies_the_unit_runs_in_the_end(
    step: Callable[[HandOver], None], victims: tuple[str, ...], comes_back: bool
) -> None:
    hand_over = after(step)
    world = hand_over.world
    for victim in victims:
        hand_over.kill(victim)
    if comes_back:
        for name in {*victims} & {*world.processes}:
            world.boot(name)
    world.settle()
    world.check_settled()
    runs_on = [name for name, one in world.processes.items() if one and UNIT in one.running]
    assert len(runs_on) == 1
    assert comes_back or runs_on[0] not in victims


@pytest.mark.parametrize("step", STEPS, ids=[step.__name__ for step in STEPS])
@pytest.mark.parametrize("victim", [SOURCE, TARGET])
def test_whoever_sleeps_through_its_lease_is_replaced(
    step: Callable[[HandOver], None], victim: str
) -> None:
    world = after(step).world
    process = world.processes[victim]
    assert process is not None
    process.is_frozen = True
    for _ in range(10):
        world.pass_quietly(1.0)
    assert [one.node for one in world.awake() if UNIT in one.running] != []
    world.settle()
    world.check_settled()
