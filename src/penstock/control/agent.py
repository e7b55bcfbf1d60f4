"""The agent of a node: runs what the catalog says its node should run, and says how it goes.

It holds a lease. As long as it renews it, the units given to it are its own; when it cannot, it
stops them by itself, because others may be running them already.
"""

from __future__ import annotations

import errno
import logging
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Set
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from typing import Protocol

from penstock import __version__
from penstock.control.catalog import Catalog
from penstock.control.decisions import may_start
from penstock.control.recorded_plans import recorded_unit
from penstock.control.records import MoveRecord, NodeRecord, UnitRecord
from penstock.control.resuming import Resuming
from penstock.control.system import Unit
from penstock.control.versions import check_system
from penstock.errors import FullDiskError, InputError, PenstockError
from penstock.model.measurements import NodeSample

LEASE_S = 5.0
_RENEW_EVERY_S = 1.0
_LOOK_EVERY_S = 0.05
_IDLE_EVERY_S = 0.2
_WAITING_EVERY_S = 0.01
_WATCH_EVERY_S = 0.1
_CHECK_EVERY_S = 0.25
_SAMPLE_EVERY_S = 2.0
_PATIENCE_S = 10.0
_STOP_AGAIN_AFTER_S = 1.0
_TRY_EVERY_S = 0.5
_NO_ROOM = "no room"
_AT_ONCE = 4
_WARMED_AT_ONCE = 2

_NOBODY = 0
"""The epoch before the first owner."""

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
    """Brings what its node runs in line with the catalog, again and again."""

    def __init__(
        self, node: NodeRecord, catalog: Catalog, worker: Worker, lease_s: float = LEASE_S
    ) -> None:
        self.name = node.name
        self._node = replace(node, version=__version__, incarnation=uuid.uuid4().hex)
        self._catalog = catalog
        self._worker = worker
        self._lease_s = lease_s
        self._stopping = threading.Event()
        self._left = threading.Event()
        self._giving_up = threading.Lock()
        self._has_lease = False
        # What it has its hands on, from before it is started until after it is stopped.
        self._owned: dict[str, int] = {}
        self._failed: dict[str, tuple[int, str]] = {}
        # What waits for room on the disk: it stays ours, and is started again by us.
        self._held: dict[str, int] = {}
        self._busy: dict[str, Future[None]] = {}
        self._warming: dict[int, tuple[str, Future[None]]] = {}
        self._told: dict[str, str] = {}
        # What could not be stopped, and when it was last tried.
        self._stuck: dict[str, float] = {}
        self._resuming = Resuming(node.name, catalog, worker.milestones, lease_s)
        self._refusal: PenstockError | None = None
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix=f"units-{node.name}")
        # Apart: what is to be started now must not wait for what may be started later.
        self._warmers = ThreadPoolExecutor(_WARMED_AT_ONCE, thread_name_prefix=f"warm-{node.name}")
        self._renewed_s = 0.0
        self._checked_s = 0.0
        self._sampled_s = 0.0
        self._tried_s = 0.0
        self._changes = -1

    def run(self) -> None:
        """Works until :meth:`stop`, then gives everything back.

        Raises if the system has come to be run by another version of Penstock.
        """
        check_system(self._catalog, self.name)
        if not self._is_free_to_join():
            return
        self._join()
        threads = [
            threading.Thread(target=self._renew_always, daemon=True, name="lease"),
            threading.Thread(target=self._watch_lease, daemon=True, name="watch"),
        ]
        for thread in threads:
            thread.start()
        while not self._stopping.wait(self._pause_s):
            try:
                self._step()
            except Exception as error:
                _log_trouble("node %s could not look at its work: %s", self.name, error)
                self._changes = -1
        self._stop_all()
        self._left.set()
        for thread in threads:
            thread.join()
        # Only now: a renewal under way would bring it back.
        self._attempt(self.name, self._give_back_lease)
        if self._refusal is not None:
            raise self._refusal

    def stop(self) -> None:
        """Lets :meth:`run` come to its end."""
        self._stopping.set()

    def _is_free_to_join(self) -> bool:
        """Lets a process that was this node, and may be running still, use up its lease."""
        while any(
            node.name == self.name and node.is_alive(self._catalog.now_s())
            for node in self._catalog.nodes()
        ):
            if self._stopping.wait(_LOOK_EVERY_S):
                return False
        return True

    def _join(self) -> None:
        asked_s = time.monotonic()
        now_s = self._catalog.now_s()
        lease = replace(self._node, lease_until_s=now_s + self._lease_s, joined_s=now_s)
        self._catalog.join(lease)
        self._renewed_s, self._has_lease, self._changes = asked_s, True, -1
        log.info("node %s joined as %s", self.name, self._node.incarnation)

    def _renew_always(self) -> None:
        while not self._left.wait(_RENEW_EVERY_S):
            try:
                self._renew()
            except Exception as error:
                _log_trouble("the lease of %s could not be renewed: %s", self.name, error)

    def _renew(self) -> None:
        if self._is_over or not self._has_lease:
            self._give_up("its lease ran out")
            self._join_again()
            return
        asked_s, life = time.monotonic(), self._node.incarnation
        until_s = self._catalog.now_s() + self._lease_s
        if not self._catalog.renew(self.name, life, until_s):
            self._give_up("another process has become this node")
            self._stopping.set()
            self._left.set()
        elif not self._is_over:
            # Otherwise others may have seen it run out before it was renewed.
            self._renewed_s = asked_s

    def _join_again(self) -> None:
        try:
            check_system(self._catalog, self.name)
        except InputError as error:
            self._refusal = error
            self._stopping.set()
            self._left.set()
            return
        self._join()

    @property
    def _is_over(self) -> bool:
        """Whether its lease has run out, or is about to."""
        margin_s = min(_WATCH_EVERY_S, self._lease_s / 4)
        return time.monotonic() - self._renewed_s > self._lease_s - margin_s

    def _watch_lease(self) -> None:
        # Apart from everything else: who waits for the catalog does not notice the time.
        while not self._left.wait(min(_WATCH_EVERY_S, self._lease_s / 4)):
            if self._has_lease and self._is_over:
                self._give_up("its lease ran out")

    def _give_up(self, why: str) -> None:
        """Stops everything at once: others may be running it already."""
        with self._giving_up:
            if not self._has_lease:
                return
            log.warning("node %s stops its units: %s", self.name, why)
            # What was about to be started was so in another life.
            self._node = replace(self._node, incarnation=uuid.uuid4().hex)
            self._let_go()
            wait(tuple(self._busy.values()))
            self._let_go()
            self._has_lease = False

    def _let_go(self) -> None:
        for name in tuple(self._owned):
            if not self._is_busy(name):
                self._end(name)

    def _end(self, name: str) -> bool:
        """Stops a unit at once; False if that did not work."""
        try:
            self._worker.release(name)
        except Exception:
            log.exception("%s could not be stopped cleanly", name)
            # Nobody's any more: before it is started again, stopping is tried again.
            self._owned[name], self._stuck[name] = _NOBODY, time.monotonic()
            return False
        self._forget(name)
        return True

    def _forget(self, name: str) -> None:
        self._resuming.forget(name)
        self._owned.pop(name, None)
        self._stuck.pop(name, None)

    def _stop_all(self) -> None:
        """Stops everything and says so; the lease is held until then."""
        wait([work for work in tuple(self._busy.values()) if not work.cancel()])
        for name, epoch in tuple(self._owned.items()):
            self._pool.submit(self._guarded, name, partial(self._release, name, epoch))
        self._pool.shutdown(wait=True)
        self._warmers.shutdown(wait=True, cancel_futures=True)

    def _give_back_lease(self) -> None:
        self._catalog.renew(self.name, self._node.incarnation, 0.0)

    def _attempt(self, name: str, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception:
            log.exception("%s could not be stopped cleanly", name)

    def _step(self) -> None:
        # Taken first: whatever is read from here on holds for this life only.
        life = self._node.incarnation
        if self._is_over or not self._has_lease:
            return
        now_s = time.monotonic()
        changes = self._catalog.changes()
        is_time = self._has_stuck(now_s) or self._is_time_to_try(now_s)
        if changes != self._changes or self._is_waiting or is_time:
            self._changes = changes
            self._reconcile(life)
        if now_s - self._checked_s > _CHECK_EVERY_S:
            self._checked_s = now_s
            self._check()
        if now_s - self._sampled_s > _SAMPLE_EVERY_S:
            self._sampled_s = now_s
            self._catalog.sample(self.name, self._worker.measurements())

    @property
    def _pause_s(self) -> float:
        """How long to wait before the next look: rows wait only where something runs."""
        if self._is_waiting:
            return _WAITING_EVERY_S
        return _LOOK_EVERY_S if self._owned else _IDLE_EVERY_S

    @property
    def _is_waiting(self) -> bool:
        """Whether something of ours cannot start yet, for want of another node's word or lease."""
        return "waiting" in tuple(self._told.values())

    def _has_stuck(self, now_s: float) -> bool:
        """Whether it is time to try again to stop something."""
        return any(now_s - tried_s > _STOP_AGAIN_AFTER_S for tried_s in self._stuck.values())

    def _is_time_to_try(self, now_s: float) -> bool:
        """Whether to look if there is room by now for what waits for it."""
        if _NO_ROOM not in tuple(self._told.values()) or now_s - self._tried_s < _TRY_EVERY_S:
            return False
        self._tried_s = now_s
        return True

    def _reconcile(self, life: str) -> None:
        units = {unit.name: unit for unit in self._catalog.units()}
        wanted = {name: unit for name, unit in units.items() if self._is_wanted(unit)}
        for name, epoch in tuple(self._owned.items()):
            tried_s = self._stuck.get(name, -_STOP_AGAIN_AFTER_S)
            is_time = time.monotonic() - tried_s >= _STOP_AGAIN_AFTER_S
            if is_time and (name not in wanted or wanted[name].epoch != epoch):
                # What is dropped need not be finished first: nobody takes it up again.
                is_dropped = name in units and units[name].is_dropped
                patience_s = 0.0 if is_dropped else _PATIENCE_S
                self._do(name, partial(self._release, name, epoch, patience_s))
        for unit in units.values():
            self._disown(unit)
        self._told = {name: told for name, told in self._told.items() if name in wanted}
        self._start_missing(list(wanted.values()), life)
        moves = {move.id: move for move in self._catalog.moves(open_only=True)}
        for move in moves.values():
            self._prepare(move)
        self._cool(moves.keys(), wanted.keys())

    def _disown(self, unit: UnitRecord) -> None:
        """Says that it does not run what it never started, or only in a former life."""
        if unit.name in self._owned or self._is_busy(unit.name):
            return
        if unit.previous == self.name and unit.released_epoch < unit.epoch - 1:
            self._catalog.release(unit.name, unit.epoch - 1)
        if unit.node == self.name and unit.is_dropped and unit.released_epoch < unit.epoch:
            self._catalog.release(unit.name, unit.epoch)

    def _is_wanted(self, unit: UnitRecord) -> bool:
        done = unit.state == "finished" and unit.reported_epoch == unit.epoch
        return unit.node == self.name and not unit.is_dropped and not done

    def _start_missing(self, wanted: list[UnitRecord], life: str) -> None:
        missing = [
            unit
            for unit in wanted
            if unit.name not in self._owned and unit.released_epoch < unit.epoch
        ]
        if not missing:
            return
        nodes, now_s = self._catalog.nodes(), self._catalog.now_s()
        for unit in missing:
            epoch, error = self._failed.get(unit.name, (0, ""))
            if epoch == unit.epoch:
                # It was not possible to say so at the time.
                self._tell_failed(unit.name, epoch, error)
            elif self._held.get(unit.name) == unit.epoch and not self._worker.has_room():
                self._told[unit.name] = _NO_ROOM
            elif may_start(unit, nodes, now_s):
                self._told[unit.name] = "starting"
                self._do(unit.name, partial(self._start, unit, life))
            else:
                self._told[unit.name] = "waiting"

    def _is_busy(self, name: str) -> bool:
        """Whether something is being done about a unit: nothing else may be, meanwhile."""
        busy = self._busy.get(name)
        is_warming = any(
            unit == name and not work.done() for unit, work in tuple(self._warming.values())
        )
        return is_warming or (busy is not None and not busy.done())

    def _do(self, name: str, work: Callable[[], None]) -> None:
        """Works on a unit in the background, one thing at a time for each."""
        if not self._is_busy(name):
            with self._giving_up:
                self._busy[name] = self._pool.submit(self._guarded, name, work)
            # Whatever came of it, look again; not before it counts as done.
            self._busy[name].add_done_callback(self._look_again)

    def _look_again(self, _: Future[None]) -> None:
        self._changes = -1

    def _guarded(self, name: str, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            _log_trouble("%s: %s", name, error)

    def _unit(self, record: UnitRecord) -> Unit:
        return recorded_unit(self._catalog, record)

    def _start(self, record: UnitRecord, life: str) -> None:
        if life != self._node.incarnation:
            return
        began_s, name, epoch = time.monotonic(), record.name, record.epoch
        self._owned[name] = epoch
        try:
            self._worker.start(self._unit(record), epoch)
        except Exception as error:
            if _is_for_want_of_room(error):
                self._hold(name, epoch, _told(error))
                return
            log.exception("%s did not start", name)
            self._fail(name, epoch, _told(error))
            return
        self._resuming.begin(record)
        self._held.pop(name, None)
        self._stuck.pop(name, None)
        self._catalog.report(name, epoch, "running")
        self._told[name] = "running"
        took_s = time.monotonic() - began_s
        log.info("%s runs here, epoch %d, started in %.2f s", name, epoch, took_s)

    def _hold(self, name: str, epoch: int, error: str) -> None:
        """Waits with a unit until there is room on the disk: no other node would fare better."""
        log.warning("%s waits for room: %s", name, error)
        self._held[name], self._told[name] = epoch, _NO_ROOM
        self._owned.pop(name, None)
        self._catalog.report(name, epoch, "held back", error)

    def _fail(self, name: str, epoch: int, error: str) -> None:
        """Says that a unit has failed and does not run any more."""
        self._failed[name] = (epoch, error)
        self._forget(name)
        self._tell_failed(name, epoch, error)

    def _tell_failed(self, name: str, epoch: int, error: str) -> None:
        # In this order: what is given back without a word is given out again at once.
        self._catalog.report(name, epoch, "failed", error)
        self._catalog.release(name, epoch)

    def _release(self, name: str, epoch: int, patience_s: float = _PATIENCE_S) -> None:
        if self._owned.get(name) != epoch:
            return  # Given up since this was decided: there is nothing left to stop.
        began_s = time.monotonic()
        try:
            self._worker.release(name, patience_s)
        except Exception as error:
            log.exception("%s could not be stopped", name)
            self._stuck[name] = time.monotonic()
            self._tell_stuck(name, f"{self.name} could not stop {name}: {_told(error)}")
            return
        self._forget(name)
        self._catalog.release(name, epoch)
        log.info("%s released, epoch %d, in %.2f s", name, epoch, time.monotonic() - began_s)

    def _tell_stuck(self, name: str, error: str) -> None:
        """Lets a move of a unit that does not stop fail; one that has come back is not well."""
        for move in self._catalog.moves(open_only=True):
            if move.unit == name and move.source == self.name:
                self._catalog.change_move(move.id, error=error)
        for unit in self._catalog.units():
            if unit.name == name and self._is_wanted(unit):
                self._catalog.report(name, unit.epoch, "failed", error)

    def _prepare(self, move: MoveRecord) -> None:
        mine = move.target == self.name and move.state == "preparing"
        if mine and not move.is_warm and move.id not in self._warming:
            work = self._warmers.submit(self._warm, move)
            self._warming[move.id] = (move.unit, work)
            work.add_done_callback(self._look_again)

    def _cool(self, moving: Set[int], wanted: Set[str]) -> None:
        """Lets go of what was got ready for moves that came to nothing."""
        for number, (unit, work) in tuple(self._warming.items()):
            if number not in moving and work.done():
                del self._warming[number]
                if unit not in wanted:
                    self._attempt(unit, partial(self._worker.cool, unit))

    def _warm(self, move: MoveRecord) -> None:
        try:
            record = next(unit for unit in self._catalog.units() if unit.name == move.unit)
            self._worker.warm(self._unit(record), record.epoch + 1)
            self._catalog.change_move(move.id, is_warm=True)
        except Exception as error:
            log.exception("%s could not be prepared", move.unit)
            self._catalog.change_move(move.id, error=_told(error))

    def _check(self) -> None:
        for name, epoch in tuple(self._owned.items()):
            if self._is_busy(name) or name in self._stuck:
                continue
            failure = self._worker.failure(name)
            if failure is not None:
                log.warning("%s failed: %s", name, failure)
                if self._end(name):
                    give_up = self._hold if _is_for_want_of_room(failure) else self._fail
                    give_up(name, epoch, str(failure))
                else:
                    self._failed[name] = (epoch, str(failure))
                    self._catalog.report(name, epoch, "failed", str(failure))
            elif self._worker.is_finished(name):
                self._finish(name, epoch)
            else:
                state = "held back" if self._worker.is_held_back(name) else "running"
                if self._told.get(name) != state:
                    self._catalog.report(name, epoch, state)
                    self._told[name] = state
                self._resuming.look(name)

    def _finish(self, name: str, epoch: int) -> None:
        last = self._worker.measurements().fragments.get(name)
        self._resuming.look(name)
        if not self._end(name):
            return
        self._catalog.report(name, epoch, "finished", measured=last)
        self._catalog.release(name, epoch)
        log.info("%s has finished", name)


def _log_trouble(text: str, name: str, error: Exception) -> None:
    """A known problem in a line; what nobody has thought of with where it comes from."""
    log.warning(text, name, error, exc_info=not isinstance(error, PenstockError))


def _is_for_want_of_room(error: BaseException) -> bool:
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    return full or isinstance(error, FullDiskError)


def _told(error: BaseException) -> str:
    return str(error) if isinstance(error, PenstockError) else f"{type(error).__name__}: {error}"
