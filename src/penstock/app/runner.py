"""Running a plan: start Spark, watch it work, stop it, say what came of it."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from penstock import __version__
from penstock.app.outcome import Ending, Outcome, labelled, with_unread, without_a_run
from penstock.app.output import diverted, quiet
from penstock.app.rates import Rates
from penstock.app.run_plan import (
    RunPlan,
    RunRequest,
    has_begun,
    is_finished,
    is_on_nodes,
    prepared_state,
    room_warnings,
)
from penstock.app.signals import StopRequest
from penstock.app.snapshots import Presenter, SetAside, Snapshot
from penstock.app.tally import counted_before, set_aside_since, since
from penstock.app.words import counted
from penstock.control.meter import NodeMeter, NodeUse
from penstock.errors import PenstockError, RunError, listed
from penstock.model.beginnings import Beginning
from penstock.model.durations import US_PER_S, moment_text

if TYPE_CHECKING:
    from penstock.spark.engine import Engine
    from penstock.spark.session import SparkSession
    from penstock.spark.state import StateFolder

_DRAW_EVERY_S = 0.25
_MEASURE_EVERY_S = 1.0
# Asking Spark for its progress costs it time; this keeps the asking below a tenth of ours.
_REST_PER_WORK = 9
_LONGEST_REST_S = 1.0
_CPU_BARS = 12


def run(plan: RunPlan, request: RunRequest, presenter: Presenter, stop: StopRequest) -> Outcome:
    """Runs the plan until its inputs end, its time is up, or somebody asks to stop.

    Several nodes are processes of their own; a single one is this process.
    """
    if is_on_nodes(plan.deployment, request):
        from penstock.app.system_runner import run_on_nodes

        return run_on_nodes(plan, request, presenter, stop, facts(plan))
    state = prepared_state(plan, request)
    if is_finished(plan, state):
        return with_unread(without_a_run(plan, "finished before"), state)
    presenter.begin(facts(plan), [*_notes(plan, request, state), *_beginnings(plan, state)])
    with quiet(_own_log(state)):
        try:
            return with_unread(_run(plan, request, presenter, stop, state), state)
        finally:
            with suppress(OSError):
                presenter.close()


def _own_log(state: StateFolder) -> Path:
    """What happens on our side of Spark."""
    return state.log.with_name("penstock.log")


def facts(plan: RunPlan) -> list[str]:
    """What is about to run, for the first line."""
    operators = counted(len(plan.network.operators), "operator")
    nodes = len(plan.deployment.nodes) if plan.deployment.nodes else 1
    return [
        f"penstock {__version__}",
        f"{counted(len(plan.network.queries), 'query')}, {operators} in "
        f"{counted(len(plan.fragments), 'fragment')}",
        f"{counted(nodes, 'node')}, {counted(plan.cores, 'core')}, "
        f"{plan.memory_bytes / 2**30:g} GiB",
    ]


def _notes(plan: RunPlan, request: RunRequest, state: StateFolder) -> list[str]:
    notes = []
    if has_begun(plan, state):
        notes.append(f"going on from the state in {plan.folder}")
    if request.ui_port is not None:
        notes.append(f"Spark's pages http://127.0.0.1:{request.ui_port}")
    return [*notes, *room_warnings(plan)]


def _beginnings(plan: RunPlan, state: StateFolder) -> list[str]:
    """Since when queries count that were added to what has run before, decided here and now."""
    from penstock.spark.late_fragments import begun

    late = begun(state, plan.network, plan.fragments, state.next_epoch())
    new = [part for part in late.fragments if not state.fragment(part.id).has_begun]
    added = [name for name, number in plan.generations.items() if number]
    names = [name for part in new for name in part.queries if name in added]
    inputs = [pair for fragment in new for pair in fragment.beginning.inputs.items()]
    streams = sorted({name for name, begin in inputs if begin.before is not None})
    notes = []
    if names and streams:
        notes.append(f"added since: {listed(names)}; read again from the start: {listed(streams)}")
    for fragment in new:
        if fragment.name in late.reasons:
            what = f"{listed(fragment.queries) or fragment.name} {_since(fragment.beginning)}"
            notes.append(f"{what}: {late.reasons[fragment.name]}")
    return notes


def _since(beginning: Beginning) -> str:
    if beginning.since_us is None:
        return "sees rows from the next batch on"
    return f"counts after {moment_text(beginning.since_us)}, event time"


def _run(
    plan: RunPlan,
    request: RunRequest,
    presenter: Presenter,
    stop: StopRequest,
    state: StateFolder,
) -> Outcome:
    session = _started_session(plan, request, presenter, stop, state)
    if session is None:
        return without_a_run(plan, "not begun")
    try:
        with _stated_plainly(plan, state):
            return _Watch(plan, request, presenter, stop, state, session).outcome()
    finally:
        with suppress(Exception):
            session.stop()


@contextmanager
def _stated_plainly(plan: RunPlan, state: StateFolder) -> Iterator[None]:
    """Whatever Spark raises becomes one of our errors, which says where the details are."""
    from penstock.spark.failures import explained

    try:
        yield
    except (PenstockError, BrokenPipeError):
        raise
    except Exception as error:
        logging.exception("the run failed")
        raise explained(error, plan.deployment.name, _own_log(state)) from error


def _started_session(
    plan: RunPlan,
    request: RunRequest,
    presenter: Presenter,
    stop: StopRequest,
    state: StateFolder,
) -> SparkSession | None:
    """The session; None if somebody asked to stop meanwhile.

    Spark starts in a thread of its own: in the main thread it would take over Ctrl-C.
    """
    from penstock.spark.session import SessionOptions, start_session

    options = SessionOptions(plan.cores, plan.memory_bytes, request.ui_port)
    started: list[SparkSession] = []
    failed: list[Exception] = []

    def start() -> None:
        try:
            with diverted(1, state.log):
                started.append(start_session(plan.deployment.name, options, state.log))
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=start, name="start Spark", daemon=True)
    with presenter.working("starting Spark…"):
        thread.start()
        while thread.is_alive() and not stop.wait(0.1):
            pass
    if failed:
        raise _not_started(failed[0], state.log) from failed[0]
    return started[0] if started else None


def _not_started(error: Exception, log: Path) -> PenstockError:
    if isinstance(error, PenstockError):
        return error
    logging.error("Spark did not start", exc_info=error)
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    return RunError(
        f"Spark did not start: {reason}",
        hint=f"Details are in {log}; penstock doctor checks this machine.",
    )


class _Watch:
    """Follows a running engine."""

    def __init__(
        self,
        plan: RunPlan,
        request: RunRequest,
        presenter: Presenter,
        stop: StopRequest,
        state: StateFolder,
        session: SparkSession,
    ) -> None:
        from penstock.spark.engine import Engine
        from penstock.spark.node import NodeOptions

        self._plan, self._presenter, self._stop = plan, presenter, stop
        self._limit_s = None if request.for_us is None else request.for_us / US_PER_S
        options = NodeOptions(cores=plan.cores)
        self._engine: Engine = Engine(session, plan.network, state, options, presenter.rows)
        self._dead_letters = state.layout.dead_letters
        self._first = counted_before(state.path, plan.fragments)
        self._first_aside = self._engine.set_aside()
        self._rates = Rates()
        self._meter = NodeMeter(plan.cores)
        self._use: NodeUse | None = None
        self._measured_s = 0.0
        self._cpu: deque[float] = deque(maxlen=_CPU_BARS)

    def outcome(self) -> Outcome:
        """Starts the engine, follows it to its end and stops it."""
        began_s = time.monotonic()
        try:
            with self._presenter.working("starting queries…"):
                self._engine.start()
            ending = self._follow(began_s)
            statuses = self._engine.status()
        except BaseException:
            # What went wrong matters more than what goes wrong now because of it.
            with suppress(Exception):
                self._stop_engine()
            raise
        self._stop_engine()
        return Outcome(
            self._plan,
            ending,
            time.monotonic() - began_s,
            since(self._first, statuses),
            self._set_aside(),
        )

    def _stop_engine(self) -> None:
        # A reader that has gone must not keep the engine from stopping cleanly.
        with suppress(BrokenPipeError), ExitStack() as shown:
            with suppress(OSError):
                shown.enter_context(self._presenter.working("stopping…"))
            self._engine.stop()

    def _follow(self, began_s: float) -> Ending:
        rest_s = 0.0
        while not self._stop.wait(rest_s):
            looked_s = time.monotonic()
            if self._engine.is_finished:
                return "finished"
            self._engine.check()
            self._presenter.update(self._snapshot(looked_s), looked_s - began_s)
            if self._limit_s is not None and looked_s - began_s >= self._limit_s:
                return "time"
            worked_s = time.monotonic() - looked_s
            rest_s = min(_LONGEST_REST_S, max(_DRAW_EVERY_S, _REST_PER_WORK * worked_s))
        return "asked"

    def _snapshot(self, now_s: float) -> Snapshot:
        if now_s - self._measured_s >= _MEASURE_EVERY_S:
            self._use, self._measured_s = self._meter.sample(), now_s
            self._cpu.append(self._use.cpu)
        statuses = since(self._first, self._rates.recent(self._engine.status(), now_s))
        return Snapshot(
            statuses=labelled(self._plan.fragments, statuses),
            use=self._use,
            cpu_history=tuple(self._cpu),
            set_aside=self._set_aside(),
            dead_letters=self._dead_letters,
        )

    def _set_aside(self) -> SetAside:
        return set_aside_since(self._first_aside, self._engine.set_aside())
