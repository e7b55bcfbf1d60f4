"""Courses of events that are too rare to wait for, in the same world."""

from __future__ import annotations

from typing import Any

import pytest

from control.memory_catalog import MemoryCatalog
from control.mutants import (
    BelievesFormerLives,
    BelievesWhatItReadBeforeItSpoke,
    CountsItsLeaseFromTheAnswer,
)
from control.world import LEASE_S, Process, UnsafeError, World
from penstock.control.node_events import CatalogRead, UnitCondition
from penstock.control.node_instructions import NodeInstruction, ReadCatalog, ReleaseUnit, ReportUnit
from penstock.control.node_state import NodeState


class Course:
    """One unit that runs on node a; nothing happens by itself."""

    def __init__(self, **broken: Any) -> None:
        self.world = World(lambda some: some[0], units=1, nodes=2, **broken)
        self.world.a_controller_decides()
        self.pass_time(1.0)
        self.world.let_work(self.a)
        assert self.a.running == {"q": 1}

    @property
    def a(self) -> Process:
        return self.world.the("a")

    def pass_time(self, seconds: float) -> None:
        self.world.now_s += seconds
        self.world.tick(self.a)

    def do(self, kind: type[NodeInstruction], process: Process | None = None) -> None:
        """Carries out what there is to do of a kind."""
        process = process or self.a
        (at,) = [at for at, one in enumerate(process.to_do) if isinstance(one, kind)]
        self.world.carry_out(process, at, works=True, is_heard=True)

    def hear(self, but: tuple[type, ...] = ()) -> None:
        for answer in [one for one in self.a.answers if not isinstance(one, but)]:
            self.a.answers.remove(answer)
            self.a.handle(answer, self.world.now_s)

    def work_until(self, kind: type[NodeInstruction]) -> None:
        """Does and hears everything else until there is something of that kind to do."""
        while not any(isinstance(one, kind) for one in self.a.to_do):
            while self.a.to_do:
                self.world.carry_out(self.a, 0, works=True, is_heard=True)
            for asked in tuple(self.a.asked):
                self.a.ask(asked, self.world.now_s, is_heard=True)
            self.hear()


def speak_late(catalog: type[MemoryCatalog]) -> None:
    """A process says that it has stopped when another one is its node and runs the unit."""
    course = Course(catalog=catalog)
    course.a.ill["q"] = UnitCondition("no memory")
    course.pass_time(1.0)
    course.work_until(ReleaseUnit)
    former = course.a
    former.is_frozen = True
    course.world.replaced.append(former)
    course.world.boot("a")
    course.pass_time(LEASE_S + 1)
    course.world.let_work(course.a)
    assert course.a.running == {"q": 1}
    course.do(ReleaseUnit, former)


def read_early(node_state: type[NodeState]) -> None:
    """A view from before a node said that a unit has finished comes after it was said."""
    course = Course(node_state=node_state)
    course.a.ill["q"] = UnitCondition(is_finished=True)
    course.pass_time(1.0)
    course.work_until(ReportUnit)
    course.do(ReadCatalog)
    course.do(ReportUnit)
    course.hear(but=(CatalogRead,))
    course.do(ReleaseUnit)
    course.hear(but=(CatalogRead,))
    assert course.world.catalog.units["q"].released_epoch == 1
    course.hear()
    course.world.let_work(course.a)
    assert course.a.running == {}


def hear_late(node_state: type[NodeState]) -> None:
    """The answer to a renewal takes its time."""
    course = Course(node_state=node_state)
    course.pass_time(1.0)
    while course.a.to_do:
        course.world.carry_out(course.a, 0, works=True, is_heard=True)
    (asked,) = course.a.asked
    course.a.ask(asked, course.world.now_s, is_heard=True)
    course.world.now_s += 3.0
    course.hear()
    course.pass_time(2.5)


@pytest.mark.parametrize(
    ("course", "sound", "broken", "noticed"),
    [
        (speak_late, MemoryCatalog, BelievesFormerLives, "before it has stopped"),
        (read_early, NodeState, BelievesWhatItReadBeforeItSpoke, "which it has given back"),
        (hear_late, NodeState, CountsItsLeaseFromTheAnswer, "has no lease and keeps"),
    ],
)
def test_a_rare_course_does_no_harm_and_what_is_broken_shows(
    course: Any, sound: type, broken: type, noticed: str
) -> None:
    course(sound)
    with pytest.raises(UnsafeError, match=noticed):
        course(broken)
