"""The agent of a node: runs what the catalog says its node should run, and says how it goes.

It holds a lease. As long as it renews it, the units given to it are its own; when it cannot, it
stops them by itself, because others may be running them already.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Set
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Protocol

from penstock import __version__
from penstock.control.catalog import Catalog
from penstock.control.decisions import may_start
from penstock.control.records import MoveRecord, NodeRecord, UnitRecord
from penstock.control.system import System, Unit, assembled
from penstock.errors import PenstockError

LEASE_S = 5.0
_RENEW_EVERY_S = 1.0
_LOOK_EVERY_S = 0.05
_WAITING_EVERY_S = 0.01
_CHECK_EVERY_S = 0.25
_SAMPLE_EVERY_S = 2.0
_PATIENCE_S = 10.0
_AT_ONCE = 4

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

    def measurements(self) -> dict[str, object]:
        """What was measured since the last time."""


class Agent:
    """Brings what its node runs in line with the catalog, again and again."""

    def __init__(
        self, node: NodeRecord, catalog: Catalog, worker: Worker, lease_s: float = LEASE_S
    ) -> None:
        self.name = node.name
        self._node = replace(node, version=__version__)
        self._catalog = catalog
        self._worker = worker
        self._lease_s = lease_s
        self._stopping = threading.Event()
        self._owned: dict[str, int] = {}
        self._failed: dict[str, int] = {}
        self._busy: dict[str, Future[None]] = {}
        self._warming: dict[int, tuple[str, Future[None]]] = {}
        self._told: dict[str, str] = {}
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix=f"units-{node.name}")
        self._system = (-1, System())
        self._renewed_s = 0.0
        self._checked_s = 0.0
        self._sampled_s = 0.0
        self._changes = -1

    def run(self) -> None:
        """Works until :meth:`stop`, then gives everything back."""
        self._join()
        renewing = threading.Thread(target=self._renew_always, daemon=True, name="lease")
        renewing.start()
        while not self._stopping.wait(_WAITING_EVERY_S if self._is_waiting else _LOOK_EVERY_S):
            try:
                self._step()
            except PenstockError as error:
                log.warning("%s", error)
        self._leave()
        renewing.join()

    def stop(self) -> None:
        """Lets :meth:`run` come to its end."""
        self._stopping.set()

    def _join(self) -> None:
        self._node = replace(self._node, incarnation=uuid.uuid4().hex)
        until_s = self._catalog.now_s() + self._lease_s
        self._renewed_s = time.monotonic()
        self._catalog.join(replace(self._node, lease_until_s=until_s))
        self._changes = -1
        log.info("node %s joined as %s", self.name, self._node.incarnation)

    def _renew_always(self) -> None:
        while not self._stopping.wait(_RENEW_EVERY_S):
            try:
                self._renew()
            except PenstockError as error:
                log.warning("the lease could not be renewed: %s", error)

    def _renew(self) -> None:
        asked_s = time.monotonic()
        if asked_s - self._renewed_s > self._lease_s:
            self._give_up("its lease ran out")
            self._join()
            return
        until_s = self._catalog.now_s() + self._lease_s
        if self._catalog.renew(self.name, self._node.incarnation, until_s):
            self._renewed_s = asked_s
        else:
            self._give_up("another process has become this node")
            self._stopping.set()

    def _give_up(self, why: str) -> None:
        """Stops everything at once: others may be running it already."""
        log.warning("node %s stops its units: %s", self.name, why)
        for name in tuple(self._owned):
            self._attempt(name, partial(self._worker.release, name))
            self._owned.pop(name, None)

    def _leave(self) -> None:
        for name, epoch in tuple(self._owned.items()):
            self._attempt(name, partial(self._worker.release, name, _PATIENCE_S))
            self._catalog.release(name, epoch)
        self._pool.shutdown(wait=True)
        self._catalog.renew(self.name, self._node.incarnation, 0.0)

    def _attempt(self, name: str, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception:
            log.exception("%s could not be stopped cleanly", name)

    def _step(self) -> None:
        if time.monotonic() - self._renewed_s > self._lease_s:
            return
        now_s = time.monotonic()
        changes = self._catalog.changes()
        if changes != self._changes or self._is_waiting:
            self._changes = changes
            self._reconcile()
        if now_s - self._checked_s > _CHECK_EVERY_S:
            self._checked_s = now_s
            self._check()
        if now_s - self._sampled_s > _SAMPLE_EVERY_S:
            self._sampled_s = now_s
            self._catalog.sample(self.name, time.time(), self._worker.measurements())

    @property
    def _is_waiting(self) -> bool:
        """Whether something of ours cannot start yet, for want of another node's word or lease."""
        return any(state == "waiting" for state in self._told.values())

    def _reconcile(self) -> None:
        units = {unit.name: unit for unit in self._catalog.units()}
        wanted = {name: unit for name, unit in units.items() if self._is_wanted(unit)}
        for name, epoch in tuple(self._owned.items()):
            if name not in wanted or wanted[name].epoch != epoch:
                self._do(name, partial(self._release, name, epoch))
        self._told = {name: told for name, told in self._told.items() if name in wanted}
        self._start_missing(list(wanted.values()))
        moves = {move.id: move for move in self._catalog.moves(open_only=True)}
        for move in moves.values():
            self._prepare(move)
        self._cool(moves.keys(), wanted.keys())

    def _is_wanted(self, unit: UnitRecord) -> bool:
        done = unit.state == "finished" and unit.reported_epoch == unit.epoch
        return unit.node == self.name and not unit.is_dropped and not done

    def _start_missing(self, wanted: list[UnitRecord]) -> None:
        missing = [
            unit
            for unit in wanted
            if unit.name not in self._owned and self._failed.get(unit.name) != unit.epoch
        ]
        if not missing:
            return
        nodes, now_s = self._catalog.nodes(), self._catalog.now_s()
        for unit in missing:
            if may_start(unit, nodes, now_s):
                self._told[unit.name] = "starting"
                self._do(unit.name, partial(self._start, unit))
            else:
                self._told[unit.name] = "waiting"

    def _do(self, name: str, work: Callable[[], None]) -> None:
        """Works on a unit in the background, one thing at a time for each."""
        busy = self._busy.get(name)
        if busy is None or busy.done():
            self._busy[name] = self._pool.submit(self._guarded, name, work)

    def _guarded(self, name: str, work: Callable[[], None]) -> None:
        try:
            work()
        except PenstockError as error:
            log.warning("%s: %s", name, error)
        except Exception:
            log.exception("%s", name)
        finally:
            # Whatever came of it, look again.
            self._changes = -1

    def _unit(self, record: UnitRecord) -> Unit:
        if record.name not in self._system[1].units:
            submissions = self._catalog.submissions()
            newest = max((one.id for one in submissions), default=0)
            self._system = (newest, assembled(submissions))
        return self._system[1].units[record.name]

    def _start(self, record: UnitRecord) -> None:
        began_s = time.monotonic()
        try:
            self._worker.start(self._unit(record), record.epoch)
        except Exception as error:
            log.exception("%s did not start", record.name)
            self._failed[record.name] = record.epoch
            self._catalog.report(record.name, record.epoch, "failed", _told(error))
            return
        self._owned[record.name] = record.epoch
        self._told[record.name] = "running"
        self._catalog.report(record.name, record.epoch, "running")
        took_s = time.monotonic() - began_s
        log.info("%s runs here, epoch %d, started in %.2f s", record.name, record.epoch, took_s)

    def _release(self, name: str, epoch: int) -> None:
        began_s = time.monotonic()
        try:
            self._worker.release(name, _PATIENCE_S)
        finally:
            self._owned.pop(name, None)
            self._catalog.release(name, epoch)
        log.info("%s released, epoch %d, in %.2f s", name, epoch, time.monotonic() - began_s)

    def _prepare(self, move: MoveRecord) -> None:
        mine = move.target == self.name and move.state == "preparing"
        if mine and not move.is_warm and move.id not in self._warming:
            self._warming[move.id] = (move.unit, self._pool.submit(self._warm, move))

    def _cool(self, moving: Set[int], wanted: Set[str]) -> None:
        """Lets go of what was got ready for moves that came to nothing."""
        for number, (unit, work) in tuple(self._warming.items()):
            if number not in moving and work.done():
                del self._warming[number]
                if unit not in wanted:
                    self._attempt(unit, partial(self._worker.cool, unit))

    def _warm(self, move: MoveRecord) -> None:
        try:
            record = next(one for one in self._catalog.units() if one.name == move.unit)
            self._worker.warm(self._unit(record), record.epoch + 1)
            self._catalog.change_move(move.id, is_warm=True)
        except Exception as error:
            log.exception("%s could not be prepared", move.unit)
            self._catalog.change_move(move.id, error=_told(error))

    def _check(self) -> None:
        for name, epoch in tuple(self._owned.items()):
            busy = self._busy.get(name)
            if busy is not None and not busy.done():
                continue
            failure = self._worker.failure(name)
            if failure is not None:
                self._stop_failed(name, epoch, failure)
            elif self._worker.is_finished(name):
                self._finish(name, epoch)
            else:
                state = "held back" if self._worker.is_held_back(name) else "running"
                if self._told.get(name) != state:
                    self._told[name] = state
                    self._catalog.report(name, epoch, state)

    def _stop_failed(self, name: str, epoch: int, failure: PenstockError) -> None:
        log.warning("%s failed: %s", name, failure)
        self._attempt(name, partial(self._worker.release, name))
        self._owned.pop(name, None)
        self._failed[name] = epoch
        self._catalog.release(name, epoch)
        self._catalog.report(name, epoch, "failed", str(failure))

    def _finish(self, name: str, epoch: int) -> None:
        self._attempt(name, partial(self._worker.release, name))
        self._owned.pop(name, None)
        self._catalog.report(name, epoch, "finished")
        self._catalog.release(name, epoch)
        log.info("%s has finished", name)


def _told(error: BaseException) -> str:
    return str(error) if isinstance(error, PenstockError) else f"{type(error).__name__}: {error}"
