"""A small world of nodes that die, hang and come back, to try decisions in.

Nodes decide by the real :class:`NodeState`, the controllers by the real :func:`decide`. What
happens next is drawn by whoever drives the world, and nothing happens at once that takes two steps
in reality: an instruction is carried out later than it is given, its answer comes later still, or
twice, or never although it was carried out; a controller looks and acts on what it has seen later,
or never.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, TypeVar

from control.memory_catalog import MemoryCatalog
from control.world_process import LEASE_S, Process, UnsafeError
from penstock.control import decisions
from penstock.control.decisions import RESTARTS_AT_MOST, Instruction
from penstock.control.node_events import AskedToLeave, Ticked, UnitCondition
from penstock.control.node_state import NodeState
from penstock.control.records import UnitRecord
from penstock.control.returning import AWAITED_AT_START_S, RETURNS_AT_MOST, STEADY_AFTER_S

__all__ = ["LEASE_S", "Process", "UnsafeError", "World"]

_T = TypeVar("_T")
Choose = Callable[[Sequence[Any]], Any]
_MOSTLY = (True,) * 5 + (False,)
_NEARLY_ALWAYS = (True,) * 29 + (False,)


class World:
    """Units, nodes and two controllers, one of which may be a mistake."""

    def __init__(
        self,
        choose: Choose,
        units: int = 2,
        nodes: int = 3,
        decide: Callable[..., list[Instruction]] = decisions.decide,
        node_state: Callable[[str, float], NodeState] = NodeState,
        catalog: Callable[..., MemoryCatalog] = MemoryCatalog,
    ) -> None:
        self.choose = choose
        self.now_s = 0.0
        self.began_s = 0.0
        self.story: list[str] = []
        self.catalog = catalog(self._tell)
        pins = [*[None] * 8, *"abcd"[:nodes]]
        for name in "qrs"[:units]:
            self.catalog.units[name] = UnitRecord(name, "fragment", 1, pinned=choose(pins))
        self.processes: dict[str, Process | None] = dict.fromkeys("abcd"[:nodes])
        # Those that hang while another process has become their node.
        self.replaced: list[Process] = []
        self.plans: list[list[Instruction]] = [[], []]
        self._decide, self._node_state = decide, node_state
        self._started: dict[str, tuple[int, str]] = {}
        self._lives = count(1)
        for name in self.processes:
            self.boot(name)
            self.let_work(self.the(name))

    def step(self) -> None:
        """One thing happens."""
        self.choose(_EVENTS)(self)
        self.check_safety()

    def _tell(self, text: str) -> None:
        self.story.append(f"{self.now_s:5.1f} {text}")

    def the(self, name: str) -> Process:
        process = self.processes[name]
        assert process is not None
        return process

    # What processes do.

    def boot(self, name: str) -> None:
        state = self._node_state(name, LEASE_S)
        self.processes[name] = Process(
            state,
            self.catalog,
            lambda: f"{name}-{next(self._lives)}",
            lambda: [one for one in self._all() if one.node == name],
        )
        self.tick(self.the(name))

    def tick(self, process: Process) -> None:
        process.handle(Ticked(), self.now_s)
        self._bury(process)

    def _bury(self, process: Process) -> None:
        """A process that has come to its end takes what it could not stop with it."""
        if process.state.has_ended:
            self._tell(f"{process.node} ends")
            self.replaced = [one for one in self.replaced if one is not process]
            if self.processes[process.node] is process:
                self.processes[process.node] = None

    def let_work(self, process: Process, works: bool = True) -> None:
        """Everything that waits is done and delivered, in order, until nothing is left to do."""
        for _ in range(200):
            if process.to_do:
                self.carry_out(process, 0, works, True)
            elif process.asked:
                process.ask(process.asked[0], self.now_s, True)
            elif process.starting:
                self.end_start(process, 0, works)
            elif process.answers:
                process.handle(process.answers.pop(0), self.now_s)
                self._bury(process)
            else:
                return
        raise UnsafeError(self.tell_problem(f"{process.node} never comes to rest"))

    def carry_out(self, process: Process, at: int, works: bool, is_heard: bool) -> None:
        done = process.to_do[at]
        before = len(process.starting)
        process.carry_out(done, self.now_s, works, is_heard)
        if len(process.starting) > before:
            start = process.starting[-1]
            self._tell(f"{process.node} starts {start.unit.name}, epoch {start.unit.epoch}")
            self._check_epoch(start.unit.name, start.unit.epoch, process)

    def end_start(self, process: Process, at: int, works: bool) -> None:
        start = process.starting[at]
        if not works:
            self._tell(f"{start.unit.name} does not start on {process.node}")
        process.end_start(start, works)

    def _all(self) -> list[Process]:
        present = [process for process in self.processes.values() if process is not None]
        return [*present, *self.replaced]

    def awake(self) -> list[Process]:
        return [process for process in self._all() if not process.is_frozen]

    def _one_of(self, some: Sequence[_T]) -> list[_T]:
        return [self.choose(some)] if some else []

    # What can happen, one of it at a time.

    def time_passes(self) -> None:
        """And those who can prolong their leases."""
        self.now_s += self.choose((0.3, 0.6, 1.2, 3.0))
        for process in self.awake():
            self.tick(process)
            self._see_to_lease(process)

    def _see_to_lease(self, process: Process) -> None:
        """Nearly always: otherwise everybody would be without a lease most of the time."""
        if self.choose(_NEARLY_ALWAYS):
            for at in reversed(range(len(process.to_do))):
                if type(process.to_do[at]).__name__ in ("JoinSystem", "RenewLease"):
                    self.carry_out(process, at, True, True)
            for asked in tuple(process.asked):
                process.ask(asked, self.now_s, self.choose(_NEARLY_ALWAYS))
            for answer in tuple(process.answers):
                if type(answer).__name__ in ("LeaseBegun", "LeaseRenewed"):
                    process.handle(answer, self.now_s)
                    process.answers.remove(answer)

    def everybody_is_late(self) -> None:
        self.now_s += LEASE_S + 1

    def some_process_acts(self) -> None:
        """It carries out something it has decided, hears what came of it, or looks at the clock."""
        for process in self._one_of(self.awake()):
            acts = [self._works] * len(process.to_do) + [self._hears] * len(process.answers)
            acts += [self._ends_a_start] * len(process.starting) + [self._asks] * len(process.asked)
            self.choose([*acts, self.tick])(process)

    def some_process_works_off_all_it_can(self) -> None:
        for process in self._one_of(self.awake()):
            self.tick(process)
            self.let_work(process, works=self.choose(_MOSTLY))

    def _works(self, process: Process) -> None:
        at = self.choose(range(len(process.to_do)))
        self.carry_out(process, at, self.choose(_MOSTLY), self.choose(_MOSTLY))

    def _asks(self, process: Process) -> None:
        process.ask(self.choose(process.asked), self.now_s, self.choose(_MOSTLY))

    def _ends_a_start(self, process: Process) -> None:
        self.end_start(process, self.choose(range(len(process.starting))), self.choose(_MOSTLY))

    def _hears(self, process: Process) -> None:
        """In any order, and some of it twice."""
        answer = self.choose(process.answers)
        if self.choose(_MOSTLY):
            process.answers.remove(answer)
        process.handle(answer, self.now_s)
        self._bury(process)

    def an_old_view_comes_again(self) -> None:
        for process in self._one_of([one for one in self.awake() if one.seen]):
            process.handle(self.choose(process.seen[-5:]), self.now_s)
            self._bury(process)

    def some_unit_ends(self) -> None:
        """By failing, most of the time."""
        running = [(one, name) for one in self.awake() for name in one.running]
        for process, name in self._one_of(running):
            is_failure = self.choose((True, True, True, False))
            self._tell(f"{name} {'fails' if is_failure else 'finishes'}")
            process.ill[name] = UnitCondition("no room" if is_failure else None, is_finished=True)

    def some_process_dies(self) -> None:
        """More often than not one that has just been given something: that is the worst moment."""
        alive = [name for name, one in self.processes.items() if one]
        units = self.catalog.units.values()
        new = [unit.node for unit in units if unit.node in alive and not unit.is_up]
        for name in self._one_of([*alive, *new * 3]):
            self._tell(f"{name} dies")
            self.processes[name] = None

    def some_process_is_asked_to_leave(self) -> None:
        for process in self._one_of(self.awake()):
            self.ask_to_leave(process)

    def ask_to_leave(self, process: Process) -> None:
        self._tell(f"{process.node} is asked to leave")
        process.handle(AskedToLeave(), self.now_s)
        self._bury(process)

    def the_system_is_restarted(self) -> None:
        """Everybody leaves; a new controller begins, and nodes come up one after the other."""
        for process in self.awake():
            self.ask_to_leave(process)
            self.let_work(process)
        self._tell("the system is started again")
        self.plans = [[], []]
        self.began_s = self.now_s

    def perhaps_the_system_is_restarted(self) -> None:
        if self.choose((True, False, False, False)):
            self.the_system_is_restarted()

    def some_process_hangs(self) -> None:
        for process in self._one_of(self.awake()):
            self._tell(f"{process.node} hangs")
            process.is_frozen = True

    def some_node_comes_back(self) -> None:
        """As another process, or because the one that hung goes on; or both."""
        away = [name for name, one in self.processes.items() if one is None or one.is_frozen]
        for name in self._one_of(away):
            process = self.processes[name]
            if process is None:
                self._tell(f"{name} comes back")
                self.boot(name)
            elif self.choose((True, True, False)):
                self._tell(f"{name} goes on")
                process.is_frozen = False
            else:
                self._tell(f"{name} hangs, and is replaced")
                self.replaced.append(process)
                self.boot(name)

    def somebody_replaced_goes_on(self) -> None:
        for process in self._one_of([one for one in self.replaced if one.is_frozen]):
            self._tell(f"the former {process.node} goes on")
            process.is_frozen = False

    def a_controller_looks(self) -> None:
        """And forgets what it was about to do, as one that is killed and started again."""
        plan = self.choose(self.plans)
        catalog = self.catalog
        known = (list(one.values()) for one in (catalog.units, catalog.nodes, catalog.moves))
        plan[:] = self._decide(*known, self.now_s, self.began_s)

    def a_controller_acts(self) -> None:
        plan = self.choose(self.plans)
        if plan:
            self.catalog.carry_out(plan.pop(0), self.now_s)

    def a_controller_decides(self) -> None:
        self.a_controller_looks()
        for plan in self.plans:
            while plan:
                self.catalog.carry_out(plan.pop(0), self.now_s)

    def somebody_asks_for_a_move(self) -> None:
        if not self.catalog.nodes:
            return
        unit = self.choose([*self.catalog.units.values()])
        target = self.choose([*self.catalog.nodes.values()])
        moving = any(
            move.is_open and move.unit == unit.name for move in self.catalog.moves.values()
        )
        alive = target.is_alive(self.now_s) and target.name != unit.node
        if alive and not moving and unit.node is not None and unit.state != "finished":
            self.catalog.add_move(unit.name, target.name, self.now_s)

    def somebody_drops_a_unit(self) -> None:
        name = self.choose([*self.catalog.units, *[None] * 10])
        if name is not None:
            self.catalog.drop(name)

    # What must hold.

    def check_safety(self) -> None:
        """Raises if two processes have their hands on one unit, both with a lease."""
        for name in self.catalog.units:
            owners = [one.node for one in self._all() if one.owns(name, self.now_s)]
            if len(owners) > 1:
                raise UnsafeError(self.tell_problem(f"{name} is run by {owners}"))

    def _check_epoch(self, name: str, epoch: int, process: Process) -> None:
        last, node = self._started.get(name, (0, ""))
        if epoch < last or (epoch == last and node != process.node):
            text = f"{process.node} starts epoch {epoch} of {name}, {node} had {last}"
            raise UnsafeError(self.tell_problem(text))
        self._started[name] = (epoch, process.node)

    def settle(self) -> None:
        """Faults stop, and time passes: what is dead stays so, unless nothing else is left."""
        for process in self._all():
            process.is_frozen = False
            process.ill = {name: how for name, how in process.ill.items() if how.failure is None}
        self.pass_quietly(2 * LEASE_S)
        if not self.awake():
            self.boot("a")
        self.pass_quietly(AWAITED_AT_START_S + 60)

    def pass_quietly(self, seconds: float) -> None:
        """Time in which nothing goes wrong."""
        until_s = self.now_s + seconds
        while self.now_s < until_s:
            self.now_s = min(until_s, self.now_s + 3.0)
            for process in self.awake():
                self.tick(process)
                self.let_work(process)
            self.a_controller_decides()
            self.check_safety()

    def check_settled(self) -> None:
        """Raises if something still waits although nothing is in its way."""
        for move in self.catalog.moves.values():
            if move.is_open:
                raise UnsafeError(self.tell_problem(f"move {move.id} of {move.unit} is still open"))
        for unit in self.catalog.units.values():
            if not self._is_settled(unit):
                raise UnsafeError(self.tell_problem(f"{unit.name} does not run: {unit}"))
            if self._should_have_returned(unit):
                raise UnsafeError(self.tell_problem(f"{unit.name} has not come back: {unit}"))

    def _is_settled(self, unit: UnitRecord) -> bool:
        runs_on = [one.node for one in self.awake() if unit.name in one.running]
        alive = self.processes.get(unit.node or "") is not None
        if unit.is_dropped:
            return not runs_on and (not alive or not unit.epoch or self._has_stopped(unit))
        if unit.state == "failed" and unit.restarts >= RESTARTS_AT_MOST:
            return not runs_on and alive
        if unit.state == "finished":
            return not runs_on
        return runs_on == [unit.node] and unit.is_up

    def _should_have_returned(self, unit: UnitRecord) -> bool:
        """Whether the node it belongs to is there, and it is not."""
        is_over = unit.is_dropped or unit.state == "finished" or unit.returns >= RETURNS_AT_MOST
        home = self.catalog.nodes.get(unit.belongs or "")
        if is_over or home is None or not home.is_alive(self.now_s):
            return False
        return self.now_s - home.joined_s > STEADY_AFTER_S

    def _has_stopped(self, unit: UnitRecord) -> bool:
        """Dropping waits for the word of the owner, be it only that it never began."""
        return unit.released_epoch >= unit.epoch

    def tell_problem(self, problem: str) -> str:
        return "\n".join([problem, *self.story[-40:]])


_EVENTS: tuple[Callable[[World], None], ...] = (
    *[World.some_process_acts] * 100,
    *[World.some_process_works_off_all_it_can] * 8,
    *[World.a_controller_decides] * 12,
    *[World.a_controller_looks] * 4,
    *[World.a_controller_acts] * 6,
    *[World.time_passes] * 10,
    *[World.somebody_asks_for_a_move] * 8,
    *[World.some_process_dies] * 2,
    *[World.some_process_is_asked_to_leave] * 1,
    *[World.perhaps_the_system_is_restarted] * 1,
    *[World.some_process_hangs] * 2,
    *[World.some_node_comes_back] * 12,
    *[World.somebody_replaced_goes_on] * 2,
    *[World.some_unit_ends] * 3,
    *[World.an_old_view_comes_again] * 6,
    World.everybody_is_late,
    World.somebody_drops_a_unit,
)
