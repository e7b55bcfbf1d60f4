"""A small world of nodes that die, hang and come back, to try decisions in.

Everything is said in a catalog kept in memory. What happens next is drawn by whoever drives the
world; a process obeys its lease, :func:`may_start` and the epochs, and nothing happens at once that
takes two steps in reality: a start is decided and carried out later, a unit is stopped and that is
told later, a controller looks and acts on what it has seen later, or never.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from penstock.control import decisions
from penstock.control.decisions import RESTARTS_AT_MOST, Assign, Forgive, Instruction
from penstock.control.records import MoveRecord, NodeRecord, UnitRecord
from penstock.control.returning import (
    AWAITED_AT_START_S,
    RETURNS_AT_MOST,
    STEADY_AFTER_S,
    BringBack,
)

LEASE_S = 5.0
_T = TypeVar("_T")
Choose = Callable[[Sequence[Any]], Any]


class UnsafeError(AssertionError):
    """Something happened that must never happen."""


@dataclass
class Process:
    """A process that is a node: what it runs, and until when it may."""

    node: str
    incarnation: str
    lease_until_s: float
    is_frozen: bool = False
    starting: dict[str, int] = field(default_factory=dict)
    running: dict[str, int] = field(default_factory=dict)
    stopping: dict[str, int] = field(default_factory=dict)
    failed: dict[str, int] = field(default_factory=dict)

    @property
    def has_hands_on(self) -> set[str]:
        return {*self.starting, *self.running, *self.stopping}


class World:
    """Units, nodes and two controllers, one of which may be a mistake."""

    def __init__(
        self,
        choose: Choose,
        units: int = 2,
        nodes: int = 3,
        decide: Callable[..., list[Instruction]] = decisions.decide,
        may_start: Callable[..., bool] = decisions.may_start,
    ) -> None:
        self.choose = choose
        self.now_s = 0.0
        self.began_s = 0.0
        self.story: list[str] = []
        pins = [*[None] * 8, *"abcd"[:nodes]]
        self.units = {
            name: UnitRecord(name, "fragment", 1, pinned=choose(pins)) for name in "qrs"[:units]
        }
        self.nodes: dict[str, NodeRecord] = {}
        self.moves: dict[int, MoveRecord] = {}
        self.processes: dict[str, Process | None] = dict.fromkeys("abcd"[:nodes])
        self.plans: list[list[Instruction]] = [[], []]
        self.started: dict[str, tuple[int, str]] = {}
        self._decide, self._may_start = decide, may_start
        self._incarnations = 0
        for name in self.processes:
            self._boot(name)

    def step(self) -> None:
        """One thing happens."""
        self.choose(_EVENTS)(self)
        self.check_safety()

    def _tell(self, text: str) -> None:
        self.story.append(f"{self.now_s:5.1f} {text}")

    # The catalog, with the meaning that the real one gives to the same words.

    def _assign(self, given: Assign) -> None:
        there = self.units[given.unit.name]
        if there.epoch != given.unit.epoch:
            return
        self.units[there.name] = replace(
            there,
            node=given.node,
            epoch=there.epoch + 1,
            previous=given.unit.node,
            restarts=there.restarts + given.is_restart,
            belongs=given.belongs,
        )
        self._tell(f"{there.name} to {given.node}, epoch {there.epoch + 1}: {given.reason}")

    def _report(self, name: str, epoch: int, state: str, error: str = "") -> None:
        there = self.units[name]
        if there.epoch == epoch:
            said: dict[str, Any] = {"state": state, "error": error, "reported_epoch": epoch}
            self.units[name] = replace(there, **said)

    def _release(self, name: str, epoch: int) -> None:
        there = self.units[name]
        if there.released_epoch < epoch:
            self._tell(f"{name} released, epoch {epoch}")
            self.units[name] = replace(there, released_epoch=epoch)

    def _carry_out(self, instruction: Instruction) -> None:
        if isinstance(instruction, Assign):
            self._assign(instruction)
            return
        if isinstance(instruction, Forgive):
            return
        if isinstance(instruction, BringBack):
            self._bring_back(instruction)
            return
        told: dict[str, Any] = {"state": instruction.state}
        if instruction.error:
            told["error"] = instruction.error
        number = instruction.move.id
        if not self.moves[number].is_open:
            return
        self._tell(f"move {number} {instruction.state} {instruction.error}")
        self.moves[number] = replace(self.moves[number], **told)

    def _bring_back(self, wanted: BringBack) -> None:
        seen, there = wanted.unit, self.units[wanted.unit.name]
        if there.epoch != seen.epoch or there.returns != seen.returns or there.node is None:
            return
        self.units[there.name] = replace(there, returns=there.returns + 1)
        number = len(self.moves) + 1
        self._tell(f"move {number} brings {there.name} back to {wanted.node}")
        self.moves[number] = MoveRecord(
            number,
            there.name,
            there.node,
            wanted.node,
            "preparing",
            False,
            self.now_s,
            numbers={"by": "return"},
        )

    # What processes do.

    def _boot(self, name: str) -> None:
        self._incarnations += 1
        process = Process(name, f"{name}-{self._incarnations}", self.now_s + LEASE_S)
        self.processes[name] = process
        self._join(process)

    def _join(self, process: Process) -> None:
        known = self.nodes.get(process.node)
        is_same = known is not None and known.incarnation == process.incarnation
        self.nodes[process.node] = NodeRecord(
            process.node,
            1,
            1 << 30,
            process.incarnation,
            lease_until_s=process.lease_until_s,
            joined_s=known.joined_s if known is not None and is_same else self.now_s,
        )

    def _has_lease(self, process: Process) -> bool:
        return process.lease_until_s > self.now_s

    def _renew(self, process: Process) -> None:
        if not self._has_lease(process):
            self._tell(f"{process.node} gives up {process.has_hands_on}")
            for given_up in (process.starting, process.running, process.stopping):
                given_up.clear()
            self._incarnations += 1
            process.incarnation = f"{process.node}-{self._incarnations}"
        process.lease_until_s = self.now_s + LEASE_S
        self._join(process)

    def _look(self, process: Process) -> None:
        """Begins to stop what is wanted no more and to start what is missing."""
        if not self._has_lease(process):
            return
        for name, unit in self.units.items():
            wanted = _is_wanted(unit, process.node)
            epoch = process.running.get(name)
            if epoch is not None and (not wanted or epoch != unit.epoch):
                del process.running[name]
                process.stopping[name] = epoch
            elif name in process.has_hands_on or process.failed.get(name) == unit.epoch:
                continue
            elif wanted and self._may_start(unit, self.nodes.values(), self.now_s):
                process.starting[name] = unit.epoch

    def _start(self, process: Process, works: bool) -> None:
        """Carries out the starts that were begun."""
        if not self._has_lease(process):
            return
        for name, epoch in tuple(process.starting.items()):
            del process.starting[name]
            self._tell(f"{process.node} starts {name}, epoch {epoch}: {works}")
            self._check_epoch(name, epoch, process)
            if works:
                process.running[name] = epoch
                self._report(name, epoch, "running")
            else:
                self._stop_failed(process, name, epoch)

    def _stop_failed(self, process: Process, name: str, epoch: int) -> None:
        process.failed[name] = epoch
        self._release(name, epoch)
        self._report(name, epoch, "failed", "no room")

    def _stop(self, process: Process) -> None:
        """Tells what has stopped by now."""
        if self._has_lease(process):
            for name, epoch in tuple(process.stopping.items()):
                del process.stopping[name]
                self._release(name, epoch)

    def _disown(self, process: Process) -> None:
        """Tells that it does not run what it never began to, or only in a former life."""
        for name, unit in self.units.items():
            if name in process.has_hands_on or not self._has_lease(process):
                continue
            if unit.previous == process.node:
                self._release(name, unit.epoch - 1)
            if unit.node == process.node and unit.is_dropped:
                self._release(name, unit.epoch)

    def _warm(self, process: Process, works: bool) -> None:
        for number, move in self.moves.items():
            if move.state == "preparing" and move.target == process.node and not move.is_warm:
                told: dict[str, Any] = {"is_warm": True} if works else {"error": "no memory"}
                self.moves[number] = replace(move, **told)

    # What can happen, one of it at a time.

    def time_passes(self) -> None:
        """And those who can prolong their leases."""
        self.now_s += self.choose((0.5, 1.0, 3.0))
        for process in self._awake():
            self._renew(process)

    def everybody_is_late(self) -> None:
        self.now_s += LEASE_S + 1

    def some_process_acts(self) -> None:
        for process in self._one_of(self._awake()):
            acts = [self._look, self._disown]
            acts += [self._start_some] * 2 * bool(process.starting)
            acts += [self._stop] * bool(process.stopping)
            self.choose(acts)(process)

    def _one_of(self, some: Sequence[_T]) -> list[_T]:
        return [self.choose(some)] if some else []

    def _start_some(self, process: Process) -> None:
        self._start(process, works=self.choose((True, True, True, True, False)))

    def some_process_warms(self) -> None:
        for process in self._one_of(self._awake()):
            self._warm(process, works=self.choose((True, True, True, True, False)))

    def _awake(self) -> list[Process]:
        return [
            process
            for process in self.processes.values()
            if process is not None and not process.is_frozen
        ]

    def some_unit_ends(self) -> None:
        """By failing, most of the time."""
        running = [(one, name) for one in self._awake() for name in one.running]
        for process, name in self._one_of(running):
            if not self._has_lease(process):
                return
            epoch = process.running.pop(name)
            if self.choose((True, True, True, False)):
                self._stop_failed(process, name, epoch)
            else:
                self._tell(f"{name} finishes")
                self._report(name, epoch, "finished")
                self._release(name, epoch)

    def some_process_dies(self) -> None:
        """More often than not one that has just been given something: that is the worst moment."""
        alive = [name for name, one in self.processes.items() if one]
        new = [unit.node for unit in self.units.values() if unit.node in alive and not unit.is_up]
        for name in self._one_of([*alive, *new * 3]):
            self._tell(f"{name} dies")
            self.processes[name] = None

    def some_process_leaves(self) -> None:
        """Cleanly: it stops everything, says so and gives its lease back."""
        for process in self._one_of(self._awake()):
            if self._has_lease(process):
                self.leave(process)

    def leave(self, process: Process) -> None:
        self._tell(f"{process.node} leaves")
        for name, epoch in {**process.running, **process.stopping}.items():
            self._release(name, epoch)
        self.nodes[process.node] = replace(self.nodes[process.node], lease_until_s=0.0)
        self.processes[process.node] = None

    def the_system_is_restarted(self) -> None:
        """Everybody leaves; a new controller begins, and nodes come up one after the other."""
        for process in self._awake():
            if self._has_lease(process):
                self.leave(process)
        self._tell("the system is started again")
        self.plans = [[], []]
        self.began_s = self.now_s

    def perhaps_the_system_is_restarted(self) -> None:
        if self.choose((True, False, False, False)):
            self.the_system_is_restarted()

    def some_process_hangs(self) -> None:
        for process in self._one_of(self._awake()):
            self._tell(f"{process.node} hangs")
            process.is_frozen = True

    def some_node_comes_back(self) -> None:
        """As another process, or because the one that hung goes on."""
        away = [name for name, one in self.processes.items() if one is None or one.is_frozen]
        for name in self._one_of(away):
            self._tell(f"{name} comes back")
            process = self.processes[name]
            if process is None:
                self._boot(name)
            else:
                process.is_frozen = False

    def a_controller_looks(self) -> None:
        """And forgets what it was about to do, as one that is killed and started again."""
        plan = self.choose(self.plans)
        units, nodes, moves = (list(one.values()) for one in (self.units, self.nodes, self.moves))
        plan[:] = self._decide(units, nodes, moves, self.now_s, self.began_s)

    def a_controller_acts(self) -> None:
        plan = self.choose(self.plans)
        if plan:
            self._carry_out(plan.pop(0))

    def a_controller_decides(self) -> None:
        self.a_controller_looks()
        for plan in self.plans:
            while plan:
                self._carry_out(plan.pop(0))

    def somebody_asks_for_a_move(self) -> None:
        unit, target = self.choose([*self.units.values()]), self.choose([*self.nodes.values()])
        moving = any(move.is_open and move.unit == unit.name for move in self.moves.values())
        alive = target.is_alive(self.now_s) and target.name != unit.node
        if moving or not alive or unit.node is None or unit.state == "finished":
            return
        number = len(self.moves) + 1
        self._tell(f"move {number} of {unit.name} from {unit.node} to {target.name} asked for")
        self.moves[number] = MoveRecord(
            number, unit.name, unit.node, target.name, "preparing", False, self.now_s
        )

    def somebody_drops_a_unit(self) -> None:
        name = self.choose([*self.units, *[None] * 10])
        if name is not None:
            self._tell(f"{name} dropped")
            self.units[name] = replace(self.units[name], is_dropped=True)

    # What must hold.

    def check_safety(self) -> None:
        """Raises if two processes have their hands on one unit, both with a lease."""
        for name in self.units:
            owners = [
                process.incarnation
                for process in self.processes.values()
                if process is not None and name in process.has_hands_on and self._has_lease(process)
            ]
            if len(owners) > 1:
                raise UnsafeError(self._told(f"{name} is run by {owners}"))

    def _check_epoch(self, name: str, epoch: int, process: Process) -> None:
        last, node = self.started.get(name, (0, ""))
        if epoch < last or (epoch == last and node != process.node):
            text = f"{process.node} starts epoch {epoch} of {name}, {node} had {last}"
            raise UnsafeError(self._told(text))
        self.started[name] = (epoch, process.node)

    def settle(self) -> None:
        """Faults stop, and time passes: what is dead stays so, unless nothing else is left."""
        for process in self.processes.values():
            if process is not None:
                process.is_frozen = False
        if not self._awake():
            self._boot("a")
        self.pass_quietly(AWAITED_AT_START_S + 60)

    def pass_quietly(self, seconds: float) -> None:
        """Time in which nothing goes wrong."""
        until_s = self.now_s + seconds
        while self.now_s < until_s:
            self.now_s = min(until_s, self.now_s + 3.0)
            for process in self._awake():
                self._renew(process)
                self._warm(process, works=True)
                self._look(process)
                self._stop(process)
                self._disown(process)
                self._start(process, works=True)
            self.a_controller_decides()
            self.check_safety()

    def check_settled(self) -> None:
        """Raises if something still waits although nothing is in its way."""
        for move in self.moves.values():
            if move.is_open:
                raise UnsafeError(self._told(f"move {move.id} of {move.unit} is still open"))
        for unit in self.units.values():
            if not self._is_settled(unit):
                raise UnsafeError(self._told(f"{unit.name} does not run: {unit}"))
            if self._should_have_returned(unit):
                raise UnsafeError(self._told(f"{unit.name} has not come back: {unit}"))

    def _is_settled(self, unit: UnitRecord) -> bool:
        runs_on = [one.node for one in self._awake() if unit.name in one.running]
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
        home = self.nodes.get(unit.belongs or "")
        if is_over or home is None or not home.is_alive(self.now_s):
            return False
        return self.now_s - home.joined_s > STEADY_AFTER_S

    def _has_stopped(self, unit: UnitRecord) -> bool:
        """Dropping waits for the word of the owner, be it only that it never began."""
        return unit.released_epoch >= unit.epoch

    def _told(self, problem: str) -> str:
        return "\n".join([problem, *self.story[-40:]])


def _is_wanted(unit: UnitRecord, node: str) -> bool:
    done = unit.state == "finished" and unit.reported_epoch == unit.epoch
    return unit.node == node and not unit.is_dropped and not done


_EVENTS: tuple[Callable[[World], None], ...] = (
    *[World.some_process_acts] * 40,
    *[World.a_controller_decides] * 12,
    *[World.a_controller_looks] * 4,
    *[World.a_controller_acts] * 6,
    *[World.time_passes] * 10,
    *[World.somebody_asks_for_a_move] * 8,
    *[World.some_process_warms] * 10,
    *[World.some_process_dies] * 2,
    *[World.some_process_leaves] * 1,
    *[World.perhaps_the_system_is_restarted] * 1,
    *[World.some_process_hangs] * 1,
    *[World.some_node_comes_back] * 8,
    *[World.some_unit_ends] * 1,
    World.everybody_is_late,
    World.somebody_drops_a_unit,
)
