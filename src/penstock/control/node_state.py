"""What a node decides: events in, instructions out; no clock, no thread, no catalog, no Spark.

A node holds a lease. While it is renewed, the units that the catalog gives to the node are its own;
without it the node stops them by itself, because others may be running them already. It starts a
unit only as its owner and after the former owner, says of every unit what came of it, and says that
it has stopped only after it has.

:class:`penstock.control.agent.Agent` carries the instructions out on a real node; the tests of
safety do so in a world where everything fails, comes late, twice or in another order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from itertools import count
from typing import Literal

from penstock.control.decisions import may_start
from penstock.control.node_events import (
    AskedToLeave,
    CatalogRead,
    CatalogView,
    Done,
    Event,
    LeaseBegun,
    LeaseRenewed,
    NotDone,
    Occupied,
    Skipped,
    Ticked,
    Trouble,
    UnitCondition,
    UnitsChecked,
)
from penstock.control.node_instructions import (
    CheckUnits,
    GiveBackLease,
    LogWarning,
    NodeInstruction,
    ReadCatalog,
    ReleaseUnit,
    ReportUnit,
    StartUnit,
    StopUnit,
    TakeSample,
    Telling,
    TellMove,
)
from penstock.control.node_lease import Lease
from penstock.control.node_outbox import Outbox
from penstock.control.node_preparations import Preparations
from penstock.control.records import UnitRecord, UnitState
from penstock.model.measurements import FragmentStatus

LEASE_S = 5.0
_NOBODY = 0
"""The epoch before the first owner: of what is to be stopped, whatever the catalog says."""

Ending = Literal["released", "failed", "no room", "finished", "given up"]


@dataclass(frozen=True)
class Pace:
    """How often a node does what it does again and again, and how patient it is."""

    look_every_s: float = 0.05
    look_idle_every_s: float = 0.2
    look_waiting_every_s: float = 0.01
    check_every_s: float = 0.25
    sample_every_s: float = 2.0
    renew_every_s: float = 1.0
    tell_again_after_s: float = 0.25
    stop_again_after_s: float = 1.0
    room_again_after_s: float = 0.5
    patience_s: float = 10.0


@dataclass
class HeldUnit:
    """A unit this node has its hands on: from before it is started until after it is stopped.

    ``job`` numbers the start or stop that is under way, ``ending`` says why it is being stopped.
    """

    epoch: int
    phase: Literal["starting", "running", "stopping", "stuck"]
    job: int
    told: UnitState = "waiting"
    ending: Ending = "released"
    error: str = ""
    measured: FragmentStatus | None = None
    tried_s: float = 0.0


class NodeState:
    """One process that is a node, from before it joins until after it has left.

    ``has_ended`` once nothing is left to do, ``has_failed`` if that is because it could not join.
    """

    def __init__(self, name: str, lease_s: float = LEASE_S, pace: Pace | None = None) -> None:
        self.name = name
        self.pace = pace or Pace()
        self.owned: dict[str, HeldUnit] = {}
        self.has_ended = self.has_failed = False
        self.is_leaving = False
        self._next_number = count(1).__next__
        self.lease = Lease(
            self._next_number, lease_s, self.pace.renew_every_s, self.pace.look_every_s
        )
        self.outbox = Outbox(self._next_number, self.pace.tell_again_after_s)
        # What has failed here, by the epoch it failed with: it is not started again with that.
        self._failed: dict[str, tuple[int, str]] = {}
        # What waits for room on the disk: it stays ours, and is started again by us.
        self._without_room: dict[str, int] = {}
        self.preparations = Preparations(name, self._next_number)
        # Units of which something came to its end, by the number of the first look that shows it.
        self._shown_from: dict[str, int] = {}
        # Units that cannot start yet, for want of another node's word or lease.
        self._waiting: set[str] = set()
        self._view = CatalogView(-1, 0.0)
        self._known: int | None = None
        self._is_replaced = False
        self._looking: int | None = None
        self._checking: int | None = None
        self._sampling: int | None = None
        self._giving_back: int | None = None
        self._is_to_look_at_once = False
        self._looked_s = self._read_s = self._checked_s = self._sampled_s = -float("inf")
        self._out: list[NodeInstruction] = []

    def handle(self, event: Event, now_s: float) -> list[NodeInstruction]:
        """What to do after this event; ``now_s`` is any clock that never goes back.

        Linear in the units of the catalog after it was read, and in those of the node otherwise.
        """
        self._out = []
        self.lease.pass_time(now_s)
        if self.lease.is_over(now_s):
            self._give_up(f"its lease ran out: {self.lease.why_not_renewed(now_s)}")
        match event:
            case AskedToLeave():
                self._on_asked_to_leave()
            case LeaseBegun() | Occupied() | LeaseRenewed():
                self._on_lease(event, now_s)
            case CatalogRead():
                self._on_seen(event, now_s)
            case UnitsChecked():
                self._on_checked(event)
            case Done() | NotDone() | Skipped():
                self._on_answer(event, now_s)
            case Ticked():
                pass
        if not self.has_ended:
            self._do_what_is_due(now_s)
        return self._out

    def holds(self, start: StartUnit, now_s: float) -> bool:
        """Whether a start, whose turn has come, is still to be carried out."""
        holding = self.owned.get(start.unit.name)
        is_wanted = holding is not None and holding.job == start.number and not self.is_leaving
        return is_wanted and start.life == self.lease.life and not self.lease.is_over(now_s)

    @property
    def pause_s(self) -> float:
        """How long nothing is due, if no event comes."""
        return min(self._look_every_s, self.lease.margin_s)

    # The lease.

    def _on_lease(self, event: LeaseBegun | Occupied | LeaseRenewed, now_s: float) -> None:
        why = self.lease.why_not_renewed(now_s)
        if not self.lease.is_answer(event.number):
            return
        match event:
            case LeaseBegun(_, life, asked_s):
                self.lease.begin(life, asked_s)
                self._look_again()
            case LeaseRenewed(_, asked_s, True):
                self.lease.prolong(asked_s)
            case LeaseRenewed():
                self._give_up(f"its lease had run out: {why}")
            case Occupied() if self.lease.has_been_held:
                self._is_replaced = True
                text = f"node {self.name} ends: another process has become this node"
                self._out.append(LogWarning(self._next_number(), text))
        if self.lease.is_over(now_s):
            self._give_up(f"its lease ran out: {why}")

    def _give_up(self, why: str) -> None:
        """Stops everything at once: others may be running it already."""
        self._out.append(
            LogWarning(self._next_number(), f"node {self.name} stops its units: {why}")
        )
        self.lease.lose()
        # Whatever was read holds for this life only, and so does what was about to be said.
        self.outbox.clear()
        self._waiting.clear()
        self._looking = self._checking = self._giving_back = None
        for name, holding in self.owned.items():
            if holding.phase in ("running", "stuck"):
                self._stop(name, holding, "given up")

    @property
    def _is_busy(self) -> bool:
        """Whether something is being started or stopped."""
        return any(held.phase in ("starting", "stopping") for held in self.owned.values())

    # What is due.

    def _do_what_is_due(self, now_s: float) -> None:
        if self.is_leaving or self._is_replaced:
            self._leave()
        elif self.lease.life is None:
            self._stop_stuck(now_s)
        if self._may_ask_for_lease and not self.has_ended:
            self._out += self.lease.ask(now_s)
        self._out += self.outbox.take(now_s)
        if self.lease.life is not None and not self.is_leaving:
            self._look(now_s)
            self._check(now_s)
            self._sample(now_s)

    def _stop_stuck(self, now_s: float) -> None:
        for name, holding in self.owned.items():
            is_time = now_s - holding.tried_s >= self.pace.stop_again_after_s
            if holding.phase == "stuck" and is_time:
                self._stop(name, holding, "given up")

    @property
    def _may_ask_for_lease(self) -> bool:
        if self.lease.life is None:
            return not (self._is_busy or self.is_leaving or self._is_replaced)
        return self._giving_back is None

    @property
    def _look_every_s(self) -> float:
        """Rows wait only where something runs."""
        if self._waiting:
            return self.pace.look_waiting_every_s
        return self.pace.look_every_s if self.owned else self.pace.look_idle_every_s

    def _look(self, now_s: float) -> None:
        is_time = now_s - self._looked_s >= self._look_every_s
        if self._looking is None and (is_time or self._is_to_look_at_once):
            known = None if self._waiting or self._has_to_try_again(now_s) else self._known
            if known is None:
                self._read_s = now_s
            self._looked_s, self._is_to_look_at_once = now_s, False
            self._looking = self._next_number()
            self._out.append(ReadCatalog(self._looking, known, bool(self._without_room)))

    def _has_to_try_again(self, now_s: float) -> bool:
        """Whether it is time to see if there is room by now, or to stop what could not be."""
        is_stuck = any(
            now_s - holding.tried_s >= self.pace.stop_again_after_s
            for holding in self.owned.values()
            if holding.phase == "stuck"
        )
        since_s = now_s - self._read_s
        return is_stuck or (bool(self._without_room) and since_s >= self.pace.room_again_after_s)

    def _look_again(self, unit: str | None = None) -> None:
        self._known, self._is_to_look_at_once = None, True
        if unit is not None:
            self._shown_from[unit] = self._next_number()

    def _check(self, now_s: float) -> None:
        running = {name: held.epoch for name, held in self.owned.items() if held.phase == "running"}
        is_time = now_s - self._checked_s >= self.pace.check_every_s
        if running and is_time and self._checking is None:
            self._checked_s, self._checking = now_s, self._next_number()
            self._out.append(CheckUnits(self._checking, running))

    def _sample(self, now_s: float) -> None:
        if self._sampling is None and now_s - self._sampled_s >= self.pace.sample_every_s:
            self._sampled_s, self._sampling = now_s, self._next_number()
            self._out.append(TakeSample(self._sampling))

    # What the catalog wants.

    def _on_seen(self, event: CatalogRead, now_s: float) -> None:
        if event.number != self._looking:
            return
        self._looking = None
        if event.view is None or self.is_leaving:
            return
        self._view, self._known = event.view, event.view.changes
        if self._is_to_look_at_once:
            self._known = None
        # What was read before the latest about a unit was said is not true of it any more.
        late = {name for name, number in self._shown_from.items() if number > event.number}
        self._shown_from = {name: self._shown_from[name] for name in late}
        units = {unit.name: unit for unit in event.view.units if unit.name not in late}
        wanted = {name: unit for name, unit in units.items() if self._is_wanted(unit)}
        self._forget_former(wanted, late)
        self._stop_unwanted(units, wanted, late, now_s)
        for unit in units.values():
            self._disown(unit)
        self._start_missing(wanted.values(), event.view)
        for wish in self.preparations.follow(self._view.moves, units, wanted.keys() | late):
            if isinstance(wish, TellMove):
                self._tell(wish)
            else:
                self._out.append(wish)

    def _is_wanted(self, unit: UnitRecord) -> bool:
        return unit.node == self.name and not unit.is_dropped and not unit.has_said("finished")

    def _forget_former(self, wanted: Mapping[str, UnitRecord], late: Set[str]) -> None:
        """Another unit of the same name begins with the same epochs."""
        for name in (self._failed.keys() | self._without_room.keys()) - late:
            epoch = wanted[name].epoch if name in wanted else _NOBODY
            if self._failed.get(name, (epoch, ""))[0] != epoch:
                del self._failed[name]
            if self._without_room.get(name, epoch) != epoch:
                del self._without_room[name]

    def _stop_unwanted(
        self,
        units: Mapping[str, UnitRecord],
        wanted: Mapping[str, UnitRecord],
        late: Set[str],
        now_s: float,
    ) -> None:
        for name, holding in self.owned.items():
            if name in late or (name in wanted and wanted[name].epoch == holding.epoch):
                continue
            is_time = now_s - holding.tried_s >= self.pace.stop_again_after_s
            if holding.phase == "running" or (holding.phase == "stuck" and is_time):
                # What is dropped need not be finished first: nobody takes it up again.
                is_dropped = name in units and units[name].is_dropped
                self._stop(name, holding, "released", 0.0 if is_dropped else self.pace.patience_s)

    def _disown(self, unit: UnitRecord) -> None:
        """Says that it does not run what it never started, or only in a former life."""
        if unit.name in self.owned:
            return
        if unit.previous == self.name and unit.released_epoch < unit.epoch - 1:
            self._tell(self._release(unit.name, unit.epoch - 1))
        if unit.node == self.name and unit.is_dropped and unit.released_epoch < unit.epoch:
            self._tell(self._release(unit.name, unit.epoch))

    def _start_missing(self, wanted: Iterable[UnitRecord], view: CatalogView) -> None:
        self._waiting.clear()
        for unit in wanted:
            if unit.name in self.owned or unit.released_epoch >= unit.epoch:
                continue
            epoch, error = self._failed.get(unit.name, (_NOBODY, ""))
            if epoch == unit.epoch:
                self._tell_failed(unit.name, epoch, error)
            elif self._without_room.get(unit.name) == unit.epoch and not view.has_room:
                continue
            elif not self._may_start(unit, view):
                self._waiting.add(unit.name)
            elif not (self.preparations.is_under_way(unit.name) or unit.name in self.outbox):
                self._start(unit)

    def _may_start(self, unit: UnitRecord, view: CatalogView) -> bool:
        return may_start(unit, view.nodes, view.catalog_s)

    def _start(self, unit: UnitRecord) -> None:
        assert self.lease.life is not None
        holding = HeldUnit(unit.epoch, "starting", self._next_number())
        self.owned[unit.name] = holding
        self._out.append(StartUnit(holding.job, unit, self.lease.life))

    def _stop(self, name: str, holding: HeldUnit, why: Ending, patience_s: float = 0.0) -> None:
        holding.phase, holding.ending, holding.job = "stopping", why, self._next_number()
        self._out.append(StopUnit(holding.job, name, holding.epoch, patience_s))

    # How units are.

    def _on_checked(self, event: UnitsChecked) -> None:
        if event.number != self._checking:
            return
        self._checking = None
        for name, condition in event.conditions.items():
            holding = self.owned.get(name)
            if holding is not None and holding.phase == "running":
                self._take_care(name, holding, condition)

    def _take_care(self, name: str, holding: HeldUnit, condition: UnitCondition) -> None:
        if condition.failure is not None:
            holding.error = condition.failure
            self._stop(name, holding, "no room" if condition.is_for_want_of_room else "failed")
        elif condition.is_finished:
            holding.measured = condition.measured
            self._stop(name, holding, "finished")
        else:
            state: UnitState = "held back" if condition.is_held_back else "running"
            if holding.told != state:
                holding.told = state
                self._tell(ReportUnit(0, name, holding.epoch, state))

    # What came of instructions.

    def _on_answer(self, event: Done | NotDone | Skipped, now_s: float) -> None:
        number, is_done = event.number, isinstance(event, Done)
        told = self.outbox.answer(number, is_done, now_s, is_last_try=self.is_leaving)
        if told is not None:
            if is_done and not isinstance(told, TellMove):
                self._look_again(told.unit)
            return
        if isinstance(event, NotDone) and self.lease.is_answer(number):
            is_hopeless = event.trouble == "refused" or not self.lease.has_been_held
            if self.lease.life is None and is_hopeless:
                self._end(is_failure=True)
        elif number == self._looking:
            self._looking = self._known = None
        elif number == self._checking:
            self._checking = None
        elif number == self._sampling:
            self._sampling = None
        elif number == self._giving_back:
            self._end()
        elif not self._is_of_preparation(event):
            self._on_job(event, now_s)

    def _is_of_preparation(self, event: Done | NotDone | Skipped) -> bool:
        error = event.error if isinstance(event, NotDone) else ""
        told = self.preparations.answer(event.number, error)
        if told is not None:
            self._look_again()
            self._tell(told)
        return told is not None

    def _on_job(self, event: Done | NotDone | Skipped, now_s: float) -> None:
        found = [(name, held) for name, held in self.owned.items() if held.job == event.number]
        for name, holding in found:
            # Whatever came of it.
            self._look_again(name)
            match holding.phase, event:
                case "starting", Done():
                    self._on_started(name, holding)
                case "starting", NotDone(_, error, trouble):
                    del self.owned[name]
                    self._on_not_running(name, holding.epoch, error, trouble)
                case "starting", Skipped():
                    del self.owned[name]
                case "stopping", Done():
                    self._on_stopped(name, holding)
                case "stopping", NotDone(_, error, _):
                    self._on_not_stopped(name, holding, error, now_s)

    def _on_started(self, name: str, holding: HeldUnit) -> None:
        holding.phase, holding.told = "running", "running"
        self._without_room.pop(name, None)
        if self.lease.life is None:
            self._stop(name, holding, "given up")
        elif self.is_leaving:
            self._stop(name, holding, "released", self.pace.patience_s)
        else:
            self._tell(ReportUnit(0, name, holding.epoch, "running"))

    def _on_stopped(self, name: str, holding: HeldUnit) -> None:
        del self.owned[name]
        match holding.ending:
            case "failed":
                self._on_not_running(name, holding.epoch, holding.error, "error")
            case "no room":
                self._on_not_running(name, holding.epoch, holding.error, "no room")
            case "finished":
                epoch, last = holding.epoch, holding.measured
                self._tell(ReportUnit(0, name, epoch, "finished", measured=last))
                self._tell(self._release(name, epoch))
            case "released" if holding.epoch != _NOBODY:
                self._tell(self._release(name, holding.epoch))

    def _on_not_running(self, name: str, epoch: int, error: str, trouble: Trouble) -> None:
        if trouble == "no room":
            # No other node would fare better.
            self._without_room[name] = epoch
            self._out.append(LogWarning(self._next_number(), f"{name} waits for room: {error}"))
            self._tell(ReportUnit(0, name, epoch, "held back", error))
            return
        self._failed[name] = (epoch, error)
        self._tell_failed(name, epoch, error)

    def _tell_failed(self, name: str, epoch: int, error: str) -> None:
        # In this order: what is given back without a word is given out again at once.
        self._tell(ReportUnit(0, name, epoch, "failed", error), self._release(name, epoch))

    def _on_not_stopped(self, name: str, holding: HeldUnit, error: str, now_s: float) -> None:
        holding.phase, holding.tried_s = "stuck", now_s
        if holding.ending in ("failed", "no room"):
            self._failed[name] = (holding.epoch, holding.error)
            self._tell(ReportUnit(0, name, holding.epoch, "failed", holding.error))
        if holding.ending == "released" and self.lease.life is not None:
            self._tell_stuck(name, f"{self.name} could not stop {name}: {error}")
        else:
            # Nobody's any more: before it is started again, stopping is tried again.
            holding.epoch = _NOBODY

    def _tell_stuck(self, name: str, error: str) -> None:
        """Lets a move of a unit that does not stop fail; one that has come back is not well."""
        for move in self._view.moves:
            if move.unit == name and move.source == self.name:
                self._tell(TellMove(0, move.id, error))
        for unit in self._view.units:
            if unit.name == name and self._is_wanted(unit):
                self._tell(ReportUnit(0, name, unit.epoch, "failed", error))

    def _tell(self, *tellings: Telling) -> None:
        # Without a lease it has no say; what still counts later is found when it has joined again.
        if self.lease.life is not None:
            self.outbox.add(*tellings)

    def _release(self, name: str, epoch: int) -> ReleaseUnit:
        return ReleaseUnit(0, name, epoch, self.lease.life or "")

    # Leaving.

    def _on_asked_to_leave(self) -> None:
        self.is_leaving = True
        self._waiting.clear()
        for name, holding in self.owned.items():
            if holding.phase in ("running", "stuck"):
                self._stop(name, holding, "released", self.pace.patience_s)

    def _leave(self) -> None:
        """Ends once everything has stopped and was said; the lease is held until then."""
        is_open = self._is_busy or len(self.preparations) or len(self.outbox)
        if is_open or self.lease.is_asked_for or self._giving_back is not None:
            # Not while a renewal is under way: it would bring the lease back.
            return
        if self.lease.life is None or self.owned:
            # What could not be stopped is left to its lease, which runs out.
            self._end()
        else:
            self._giving_back = self._next_number()
            self._out.append(GiveBackLease(self._giving_back, self.lease.life))

    def _end(self, is_failure: bool = False) -> None:
        self.has_ended, self.has_failed = True, is_failure
