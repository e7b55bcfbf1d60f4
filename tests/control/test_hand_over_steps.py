"""A hand-over broken off at every one of its steps, by the death of everybody it needs."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from control.world import Process, World
from penstock.control.decisions import Assign, ChangeMove
from penstock.control.records import MoveRecord

UNIT, SOURCE, TARGET = "q", "a", "b"


class HandOver:
    """One unit on its way from a to b, in a world where nothing happens by itself."""

    def __init__(self) -> None:
        self.world = World(lambda some: some[0], units=1, nodes=3)
        self.world.a_controller_decides()
        self._look(SOURCE)
        self._start(SOURCE)
        assert self._process(SOURCE).running == {UNIT: 1}

    def _process(self, name: str) -> Process:
        process = self.world.processes[name]
        assert process is not None
        return process

    def _look(self, name: str) -> None:
        self.world._look(self._process(name))

    def _start(self, name: str) -> None:
        self.world._start(self._process(name), works=True)

    def ask(self) -> None:
        now_s = self.world.now_s
        self.world.moves[1] = MoveRecord(1, UNIT, SOURCE, TARGET, "preparing", False, now_s)

    def warm(self) -> None:
        self.world._warm(self._process(TARGET), works=True)

    def look(self) -> None:
        """The controller sees that the target is ready; it has two things to write down."""
        self.world.a_controller_looks()
        assert [type(plan) for plan in self.world.plans[0]] == [Assign, ChangeMove]

    def assign(self) -> None:
        self.world._carry_out(self.world.plans[0].pop(0))

    def change_move(self) -> None:
        self.world._carry_out(self.world.plans[0].pop(0))

    def stop_at_source(self) -> None:
        self._look(SOURCE)
        assert self._process(SOURCE).stopping == {UNIT: 1}

    def release(self) -> None:
        self.world._stop(self._process(SOURCE))

    def claim(self) -> None:
        self._look(TARGET)
        assert self._process(TARGET).starting == {UNIT: 2}

    def start(self) -> None:
        self._start(TARGET)

    def finish(self) -> None:
        self.world.a_controller_decides()
        assert self.world.moves[1].state == "done"

    def kill(self, victim: str) -> None:
        if victim == "controller":
            self.world.plans = [[], []]
        else:
            self.world.processes[victim] = None


STEPS: tuple[Callable[[HandOver], None], ...] = (
    HandOver.ask,
    HandOver.warm,
    HandOver.look,
    HandOver.assign,
    HandOver.change_move,
    HandOver.stop_at_source,
    HandOver.release,
    HandOver.claim,
    HandOver.start,
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
    assert (world.units[UNIT].node, world.units[UNIT].epoch) == (TARGET, 2)


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
            world._boot(name)
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
        world.now_s += 1.0
        for awake in world._awake():
            world._renew(awake)
            world._look(awake)
            world._stop(awake)
            world._disown(awake)
            world._start(awake, works=True)
        world.a_controller_decides()
        world.check_safety()
    assert [one.node for one in world._awake() if UNIT in one.running] != []
    world.settle()
    world.check_settled()
