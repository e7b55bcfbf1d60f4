"""The light fragments of a node: a bundle, and the thread that runs its rounds."""

from __future__ import annotations

import fcntl
import logging
import shutil
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from math import inf
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import TypeVar

from pyspark.sql import SparkSession

from penstock.channels.channel import Channel
from penstock.channels.durable import claimed
from penstock.channels.writer import Writer
from penstock.errors import PenstockError, RunError
from penstock.kernels.planning import LightPlan
from penstock.model.fragments import Fragment
from penstock.model.ids import FragmentId, PartId, channel_for
from penstock.model.measurements import FragmentStatus
from penstock.spark.bundles.backlog import Backlog, Unread
from penstock.spark.bundles.bundle import Bundle, Delivery
from penstock.spark.bundles.bundle_log import BundleLog
from penstock.spark.bundles.light_run import LightRun
from penstock.spark.bundles.membership import Claim
from penstock.spark.bundles.messengers import Messengers
from penstock.spark.bundles.round_reading import Round
from penstock.spark.checkpoints import replaced
from penstock.spark.failures import explained, is_passing
from penstock.spark.sinks.batch import BatchSink
from penstock.spark.sinks.channel_sink import ChannelSink
from penstock.spark.state import StateFolder

_RESTARTS = 5
_ANSWERED_WITHIN_S = 60.0
_LOOK_EVERY_S = 2.0
_FORGET_AFTER_S = 30.0
_TRY_AGAIN_AFTER_S = 0.5
_SHORTEST_S = 0.005
_GLANCE_EVERY_S = 0.02
_ROUNDS_REMEMBERED = 20

_Answer = TypeVar("_Answer")

log = logging.getLogger(__name__)


class LightFragments:
    """Runs light fragments in one bundle, in rounds as short as the shortest of them asks for.

    Everything that touches the bundle happens in one thread; whoever starts or releases a fragment
    waits for the round under way at most. Other fragments go on.
    """

    def __init__(self, session: SparkSession, state: StateFolder, max_rows: int) -> None:
        self._state = state
        self._runs: dict[PartId, LightRun] = {}
        self._orders: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._stopping = Event()
        name = uuid.uuid4().hex[:12]
        self._messengers = Messengers(state.bundles / name)
        self._bundle = Bundle(
            session,
            state.bundles,
            name,
            self._claims_of,
            self._channel_of,
            self._runs_of,
            self._groups_of,
            max_rows,
            self._deliver,
        )
        self._max_rows = max_rows
        self._backlog = Backlog(self._channel_of)
        self._state_rows: dict[PartId, int] = {}
        self._state_bytes: dict[PartId, int] = {}
        self._group_rows: dict[PartId, tuple[int, ...]] = {}
        self._rounds_ms: deque[float] = deque(maxlen=_ROUNDS_REMEMBERED)
        self._looked_s = 0.0
        self._arrived_s = time.monotonic()
        self._worked_s = -inf
        self._trouble: BaseException | None = None
        self._present: frozenset[str] = frozenset()
        self._thread = Thread(target=self._work, daemon=True, name="bundle")
        self._thread.start()

    def _channel_of(self, stream: str) -> Channel:
        return self._state.channel(channel_for(stream))

    def _claims_of(self, name: PartId) -> Path:
        return self._state.fragment(name).claims

    def _runs_of(self, name: PartId) -> Path:
        return self._state.fragment(name).runs

    def _groups_of(self, whole: FragmentId) -> Path:
        return self._state.layout.groups(whole)

    @property
    def idle_s(self) -> float:
        """How long ago a round last had rows; infinite if none ever had."""
        return time.monotonic() - self._worked_s

    @property
    def names(self) -> frozenset[PartId]:
        """What is run here."""
        return frozenset(self._runs)

    def start(
        self,
        fragment: Fragment,
        plan: LightPlan,
        epoch: int,
        sinks: Sequence[BatchSink],
        output: Writer | None,
        round_us: int,
        taps: Mapping[str, ChannelSink],
    ) -> None:
        """Runs a fragment from where its former owner has come to."""
        folder = self._state.fragment(fragment.id)
        self._arrived_s = time.monotonic()
        arrival = self._bundle.arrive(plan, epoch, fragment.beginning.inputs)
        member = arrival.running.member
        run = LightRun(
            fragment,
            plan,
            epoch,
            folder,
            sinks,
            output,
            round_us,
            member.rows_in,
            member.rows_out,
            taps=taps,
        )
        run.reached_s["taken_over_s"] = time.time()
        self._runs[fragment.id] = run
        try:
            self._ask(lambda: self._bundle.admit(arrival))
        except BaseException:
            self._runs.pop(fragment.id, None)
            raise
        run.is_admitted = True
        run.reached_s["started_s"] = time.time()

    def read_ahead(self, plan: LightPlan) -> None:
        """Reads the state of a fragment that is to come."""
        self._arrived_s = time.monotonic()
        self._bundle.read_ahead(plan)

    def release(self, name: PartId) -> None:
        """Leaves a fragment out from now on; what it has come to lies in the log."""
        self._release([name])

    def _release(self, names: Sequence[PartId]) -> None:
        self._ask(lambda: self._leave(names))
        for name in names:
            if self._runs.pop(name).folder.is_finished:
                self._bundle.membership(name).give_up()

    def _leave(self, names: Sequence[PartId]) -> None:
        # What somebody has taken away is not there any more.
        leaving = [name for name in names if name in self._bundle.members]
        try:
            for name in leaving:
                self._bundle.release(name)
            self._bundle.settle()
        except Exception:
            log.exception("the release of %s could not be written", ", ".join(leaving))
            for name in leaving:
                # Whoever comes next fences it.
                self._bundle.abandon(name)

    def failure(self, name: PartId) -> PenstockError | None:
        """What went wrong with a fragment; what may pass is tried again a few times before."""
        run = self._runs[name]
        if run.is_admitted and name not in self._present:
            newest = claimed(run.folder.path)
            if newest > run.epoch:
                return replaced(name, newest, run.epoch)
        if run.folder.is_finished:
            return None
        error = self._bundle.failed.get(name) or self._trouble
        if error is None:
            return None
        if is_passing(error) and run.restarts < _RESTARTS:
            run.restarts += 1
            self._ask(lambda: self._resume(name))
            return None
        return explained(error, name, self._state.log)

    def _resume(self, name: PartId) -> None:
        self._trouble = None
        if name in self._bundle.members:
            self._bundle.resume(name)

    def is_finished(self, name: PartId) -> bool:
        """Whether everything is out that will ever come."""
        return self._runs[name].folder.is_finished

    def is_held_back(self, name: PartId) -> bool:
        """Whether readers that are far behind keep it from going on."""
        output = self._runs[name].output
        return output is not None and output.is_held_back

    def batches(self, name: PartId) -> int:
        """How many rounds with rows a fragment has got through here."""
        return self._runs[name].batches

    def milestones(self, name: PartId) -> dict[str, float]:
        """When a fragment was taken over, admitted, and got through its first round."""
        return dict(self._runs[name].reached_s)

    def status(self, name: PartId) -> FragmentStatus:
        """How a fragment is doing."""
        run = self._runs[name]
        unread = self._unread(run)
        waits_s = None if unread.since_s is None else max(0.0, time.time() - unread.since_s)
        waiting_s = None if waits_s is None else round(waits_s, 3)
        status = run.status(self._state_rows.get(name, 0), unread.rows, waiting_s)
        return replace(
            status,
            state_bytes=self._state_bytes.get(name, 0),
            round_ms=self._round_ms,
            group_rows=self._group_rows.get(name, ()),
        )

    def _unread(self, run: LightRun) -> Unread:
        running = run.running
        if running is None or running.ended:
            return Unread()
        unread = Unread()
        for channel, following in running.reads().items():
            unread += self._backlog.behind(channel, following)
        for position in running.inputs:
            if position.before and position.begin is not None:
                unread += self._backlog.behind(position.stream, position.begin.next)
        return unread

    def take_latencies_s(self, only: str | None = None) -> list[float]:
        """How old rows were when results of them were out, since last asked; of one if named."""
        runs = [run for name, run in tuple(self._runs.items()) if only in (None, name)]
        return [latency_s for run in runs for latency_s in run.latencies.take()]

    def stop(self) -> None:
        """Ends the rounds; a later start goes on from here."""
        self._release(tuple(self._runs))
        self._stopping.set()
        self._orders.put(lambda: None)
        self._thread.join()
        self._messengers.close()
        self._bundle.close()

    def _ask(self, order: Callable[[], _Answer]) -> _Answer:
        """Has something done between two rounds."""
        answer: Future[_Answer] = Future()

        def carry_out() -> None:
            try:
                answered = order()
                self._present = frozenset(self._bundle.members)
                answer.set_result(answered)
            except BaseException as error:
                answer.set_exception(error)

        self._orders.put(carry_out)
        try:
            return answer.result(_ANSWERED_WITHIN_S)
        except TimeoutError:
            raise RunError(
                f"the round under way has not ended within {_ANSWERED_WITHIN_S:g} s",
                hint=f"See {self._state.log}.",
            ) from None

    def _work(self) -> None:
        self._remove_logs_of_the_dead()
        next_s = rested_s = 0.0
        while not self._stopping.is_set():
            if self._carry_out_orders(until_s=min(next_s, self._glance_s())):
                # Who comes is not kept waiting; where hundreds come, rounds take half of the time.
                next_s = min(next_s, rested_s)
            began_s = time.monotonic()
            if began_s < next_s:
                self._receive_groups()
                continue
            is_behind = self._round()
            ended_s = time.monotonic()
            rested_s = ended_s + (ended_s - began_s)
            next_s = began_s if is_behind else began_s + self._round_s()

    def _carry_out_orders(self, until_s: float) -> bool:
        """Waits for orders; whether there were any. All that are there are carried out."""
        try:
            wait_s = max(0.0, until_s - time.monotonic()) if self._runs else None
            self._orders.get(timeout=wait_s)()
        except Empty:
            return False
        while True:
            try:
                self._orders.get_nowait()()
            except Empty:
                return True

    def _round_s(self) -> float:
        if self._trouble is not None:
            return _TRY_AGAIN_AFTER_S
        rounds = [run.round_us for run in tuple(self._runs.values())]
        return max(_SHORTEST_S, min(rounds, default=1_000_000) / 1e6)

    def _round(self) -> bool:
        """One round; whether there is more to be read at once."""
        if not self._runs:
            return False
        began_s = time.monotonic()
        try:
            self._bundle.rest([name for name in tuple(self._runs) if self._must_rest(name)])
            done = self._bundle.round()
            self._follow(done)
        except Exception as error:
            self._note_trouble(error)
            return False
        self._trouble = None
        self._present = frozenset(self._bundle.members)
        if done.rows:
            self._rounds_ms.append(1_000 * (time.monotonic() - began_s))
        self._tidy_up()
        return done.rows >= self._max_rows

    def _follow(self, done: Round) -> None:
        self._note(done)
        while self._bundle.has_followers:
            self._note(self._bundle.follow())

    def _note_trouble(self, error: Exception) -> None:
        log.error("a round has failed", exc_info=error)
        self._trouble = error

    def _glance_s(self) -> float:
        """When to look next whether parts of joins have been given groups."""
        return time.monotonic() + _GLANCE_EVERY_S if self._bundle.has_parts else inf

    def _receive_groups(self) -> None:
        """Has parts of joins take what was given to them, without waiting for the next round."""
        try:
            if self._trouble is None and self._bundle.has_receivers:
                self._follow(self._bundle.receive())
        except Exception as error:
            self._note_trouble(error)

    @property
    def _round_ms(self) -> float:
        """How long rounds with rows take: the median of the last ones."""
        taken = sorted(self._rounds_ms)
        return round(taken[len(taken) // 2], 2) if taken else 0.0

    def _note(self, done: Round) -> None:
        if done.rows:
            self._worked_s = time.monotonic()
        for name, running in self._bundle.members.items():
            if name in self._runs and name in done.busy_ms:
                self._runs[name].note(running, done)

    def _must_rest(self, name: PartId) -> bool:
        run = self._runs.get(name)
        return run is None or (run.output is not None and self.is_held_back(name))

    def _tidy_up(self) -> None:
        now_s = time.monotonic()
        if now_s - self._looked_s > _LOOK_EVERY_S:
            self._looked_s = now_s
            self._bundle.advance()
            self._state_rows = self._bundle.state_rows
            self._state_bytes = self._bundle.state_bytes
            self._group_rows = self._bundle.group_rows
            reading: dict[str, int] = {}
            for running in self._bundle.members.values():
                for channel, following in running.reads().items():
                    reading[channel] = min(following, reading.get(channel, following))
            for channel, following in reading.items():
                self._backlog.free(channel, following)
        if now_s - self._arrived_s > _FORGET_AFTER_S:
            self._arrived_s = now_s
            self._bundle.forget_former_logs()

    def _deliver(self, deliveries: Sequence[Delivery]) -> dict[int, Exception]:
        return self._messengers.deliver(self._runs, deliveries)

    def _remove_logs_of_the_dead(self) -> None:
        """Removes logs whose processes have ended and of whose members nobody needs anything."""
        for path in sorted(self._state.bundles.iterdir()):
            try:
                with (path / "owner").open("r+") as owner:
                    fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    if not self._is_needed(path):
                        shutil.rmtree(path, ignore_errors=True)
            except (OSError, PenstockError):
                continue  # Its process lives, or it is damaged: whoever needs it will say so.

    def _is_needed(self, path: Path) -> bool:
        _, known = BundleLog(path).load()
        members = [*known.members.values(), *(handed.member for handed in known.handed)]
        return any(
            not self._bundle.membership(member.name).is_over(Claim(member.epoch, path.name))
            for member in members
        )
