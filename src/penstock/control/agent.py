"""The agent of a node: carries out what :class:`NodeState` decides, and tells it what came of it.

One thread feeds the state with events, one at a time, and waits for nothing else. What may take
time is done by others: those who hold the lease, read the catalog, write to it, look after units,
start and stop units, and prepare moves wait for nobody but themselves.
"""

from __future__ import annotations

import errno
import logging
import queue
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from penstock import __version__
from penstock.control.catalog import Catalog
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
    CancelPreparation,
    CheckUnits,
    GiveBackLease,
    JoinSystem,
    LogWarning,
    NodeInstruction,
    PrepareMove,
    ReadCatalog,
    ReleaseUnit,
    RenewLease,
    ReportUnit,
    StartUnit,
    StopUnit,
    TakeSample,
    TellMove,
)
from penstock.control.node_state import LEASE_S, NodeState, Pace
from penstock.control.recorded_plans import recorded_unit
from penstock.control.records import NodeRecord, UnitRecord
from penstock.control.resuming import Resuming
from penstock.control.system import Unit
from penstock.control.talking import Talk
from penstock.control.versions import check_system
from penstock.errors import FullDiskError, InputError, PenstockError
from penstock.model.measurements import NodeSample

_HANDS: Mapping[str, tuple[int, tuple[type, ...]]] = {
    "lease": (1, (JoinSystem, RenewLease, GiveBackLease)),
    "look": (1, (ReadCatalog,)),
    "tell": (2, (ReportUnit, ReleaseUnit, TellMove)),
    "care": (1, (CheckUnits, TakeSample)),
    "units": (4, (StartUnit, StopUnit)),
    "prepare": (2, (PrepareMove, CancelPreparation)),
}
"""Who does what: how many threads, and for which instructions."""

_DOING: Mapping[type, str] = {
    JoinSystem: "joining as",
    RenewLease: "renewing the lease of",
    GiveBackLease: "giving back the lease of",
    ReadCatalog: "reading the catalog for",
    CheckUnits: "looking after the units of",
    TakeSample: "measuring",
    StartUnit: "starting",
    StopUnit: "stopping",
    PrepareMove: "preparing a move of",
    CancelPreparation: "letting go of",
    ReportUnit: "reporting",
    ReleaseUnit: "releasing",
}
"""How the log calls what went wrong."""

log = logging.getLogger(__name__)


class Worker(Protocol):
    """What does the work: a node, real or inline."""

    def start(self, unit: Unit, epoch: int) -> None:
        """Starts a unit; raises if that does not work."""

    def warm(self, unit: Unit, epoch: int) -> None:
        """Gets ready to start a unit quickly as its owner with this epoch."""

    def cool(self, name: str) -> None:
        """Lets go of a unit that it was got ready for in vain."""

    def release(self, name: str, patience_s: float = 0.0) -> None:
        """Stops a unit; with patience what is under way is finished first."""

    def failure(self, name: str) -> PenstockError | None:
        """What went wrong with a unit."""

    def is_finished(self, name: str) -> bool:
        """Whether a unit has nothing left to do, ever."""

    def is_held_back(self, name: str) -> bool:
        """Whether a unit waits for its readers."""

    def milestones(self, name: str) -> Mapping[str, float]:
        """When a unit was taken over, started, got through its first batch, as far as it has."""

    def has_room(self) -> bool:
        """Whether the disk that was full has room again."""

    def measurements(self) -> NodeSample:
        """What was measured since the last time."""


class Agent:
    """Runs a node: brings what it runs in line with the catalog until it is told to stop."""

    def __init__(
        self,
        node: NodeRecord,
        catalog: Catalog,
        worker: Worker,
        lease_s: float = LEASE_S,
        pace: Pace | None = None,
        clock: Callable[[], float] = time.monotonic,
        talk: Talk | None = None,
    ) -> None:
        self.name = node.name
        self._node = replace(node, version=__version__)
        self._catalog = catalog
        self._worker = worker
        self._lease_s = lease_s
        self._clock = clock
        self._talk = talk
        self.state = NodeState(node.name, lease_s, pace)
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._hands: dict[type, ThreadPoolExecutor] = {}
        self._resuming = Resuming(node.name, catalog, worker.milestones, lease_s)
        self._lives: list[str] = []
        self._why_not_joined: BaseException | None = None

    def run(self) -> None:
        """Works until :meth:`stop`, then gives everything back.

        Raises if it could not join, or if the system has come to be run by another version.
        """
        pools = self._hire()
        try:
            while not self.state.has_ended:
                for instruction in self.state.handle(self._next_event(), self._clock()):
                    self._hand_out(instruction)
        except BaseException:
            self._stop_all()
            raise
        finally:
            for pool in pools:
                pool.shutdown(wait=True, cancel_futures=True)
            if self._talk is not None:
                self._talk.end()
        if self.state.has_failed and self._why_not_joined is not None:
            raise self._why_not_joined

    def _stop_all(self) -> None:
        """Leaves nothing running that nobody looks after."""
        for name in tuple(self.state.owned):
            with suppress(Exception):
                self._worker.release(name)

    def stop(self) -> None:
        """Lets :meth:`run` come to its end."""
        self._events.put(AskedToLeave())

    def _hire(self) -> list[ThreadPoolExecutor]:
        pools = []
        for work, (threads, kinds) in _HANDS.items():
            pool = ThreadPoolExecutor(threads, thread_name_prefix=f"{work}-{self.name}")
            pools.append(pool)
            self._hands |= dict.fromkeys(kinds, pool)
        return pools

    def _next_event(self) -> Event:
        try:
            return self._events.get(timeout=self.state.pause_s)
        except queue.Empty:
            return Ticked()

    def _hand_out(self, instruction: NodeInstruction) -> None:
        if isinstance(instruction, LogWarning):
            log.warning("%s", instruction.text)
            return
        pool = self._hands[type(instruction)]
        pool.submit(lambda: self._events.put(self.answer(instruction)))

    def answer(self, instruction: NodeInstruction) -> Event:
        """Carries out an instruction; what came of it. Raises nothing."""
        try:
            return self._carry_out(instruction)
        except Exception as error:
            self._log_trouble(instruction, error)
            if isinstance(instruction, JoinSystem):
                self._why_not_joined = error
            return NotDone(instruction.number, _told(error), _trouble(error))

    def _log_trouble(self, instruction: NodeInstruction, error: Exception) -> None:
        """A known problem in a line; what nobody has thought of with where it comes from."""
        is_known = isinstance(error, PenstockError) or _trouble(error) == "no room"
        subject = getattr(instruction, "unit", self.name)
        name = subject.name if isinstance(subject, UnitRecord) else subject
        doing = _DOING.get(type(instruction), "telling")
        log.warning("%s %s did not work: %s", doing, name, error, exc_info=not is_known)

    def _carry_out(self, instruction: NodeInstruction) -> Event:
        match instruction:
            case JoinSystem():
                return self._join(instruction)
            case RenewLease(number, life):
                asked_s = self._clock()
                until_s = self._catalog.now_s() + self._lease_s
                return LeaseRenewed(number, asked_s, self._catalog.renew(self.name, life, until_s))
            case ReadCatalog():
                return self._look(instruction)
            case CheckUnits(number, units):
                return UnitsChecked(number, self._conditions(units))
            case StartUnit() if not self.state.holds(instruction, self._clock()):
                return Skipped(instruction.number)
            case StartUnit(_, unit):
                self._start(unit)
            case StopUnit():
                self._stop(instruction)
            case PrepareMove(_, _, unit):
                self._worker.warm(self._unit(unit), unit.epoch + 1)
            case CancelPreparation(_, unit_name):
                self._worker.cool(unit_name)
            case TakeSample():
                self._sample()
            case _:
                self._tell(instruction)
        return Done(instruction.number)

    def _sample(self) -> None:
        measured, life = self._worker.measurements(), self.state.lease.life
        self._catalog.sample(self.name, measured)
        if self._talk is not None and life is not None:
            self._talk.measure(measured, life)

    def _tell(self, instruction: NodeInstruction) -> None:
        match instruction:
            case ReportUnit(_, unit, epoch, state, error, measured):
                self._catalog.report(unit, epoch, state, error, measured)
            case ReleaseUnit(_, unit, epoch, life):
                self._catalog.release(unit, epoch, by=(self.name, life))
            case TellMove(_, move, error):
                told: dict[str, object] = {"error": error} if error else {"is_warm": True}
                self._catalog.change_move(move, **told)
            case GiveBackLease(_, life):
                self._catalog.renew(self.name, life, 0.0)

    def _join(self, instruction: JoinSystem) -> Event:
        check_system(self._catalog, self.name)
        asked_s, life = self._clock(), uuid.uuid4().hex
        self._lives.append(life)
        now_s = self._catalog.now_s()
        lease = replace(
            self._node, incarnation=life, lease_until_s=now_s + self._lease_s, joined_s=now_s
        )
        if not self._catalog.join(lease, self._lives):
            return Occupied(instruction.number)
        log.info("node %s joined as %s", self.name, life)
        if self._talk is not None:
            self._talk.join(life)
        return LeaseBegun(instruction.number, life, asked_s)

    def _look(self, look: ReadCatalog) -> CatalogRead:
        changes = self._catalog.changes()
        if changes == look.known:
            return CatalogRead(look.number, None)
        units = self._catalog.units()
        view = CatalogView(
            changes,
            self._catalog.now_s(),
            units,
            self._catalog.nodes(),
            self._catalog.moves(open_only=True),
            not look.needs_room or self._worker.has_room(),
        )
        return CatalogRead(look.number, view)

    def _unit(self, record: UnitRecord) -> Unit:
        return recorded_unit(self._catalog, record)

    def _start(self, record: UnitRecord) -> None:
        began_s = time.monotonic()
        self._worker.start(self._unit(record), record.epoch)
        self._resuming.begin(record)
        took_s = time.monotonic() - began_s
        log.info("%s runs here, epoch %d, started in %.2f s", record.name, record.epoch, took_s)

    def _stop(self, stop: StopUnit) -> None:
        began_s = time.monotonic()
        self._worker.release(stop.unit, stop.patience_s)
        self._resuming.forget(stop.unit)
        took_s = time.monotonic() - began_s
        log.info("%s stopped, epoch %d, in %.2f s", stop.unit, stop.epoch, took_s)

    def _conditions(self, names: Iterable[str]) -> dict[str, UnitCondition]:
        found = {}
        for name in names:
            try:
                found[name] = self._condition(name)
            except Exception as error:
                holding = self.state.owned.get(name)
                if holding is not None and holding.phase == "running":
                    log.warning("%s could not be looked after: %s", name, error, exc_info=True)
        return found

    def _condition(self, name: str) -> UnitCondition:
        failure = self._worker.failure(name)
        if failure is not None:
            return UnitCondition(str(failure), _trouble(failure) == "no room")
        is_finished = self._worker.is_finished(name)
        self._resuming.look(name)
        if not is_finished:
            return UnitCondition(is_held_back=self._worker.is_held_back(name))
        last = self._worker.measurements().fragments.get(name)
        return UnitCondition(is_finished=True, measured=last)


def _trouble(error: BaseException) -> Trouble:
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    if full or isinstance(error, FullDiskError):
        return "no room"
    return "refused" if isinstance(error, InputError) else "error"


def _told(error: BaseException) -> str:
    return str(error) if isinstance(error, PenstockError) else f"{type(error).__name__}: {error}"
