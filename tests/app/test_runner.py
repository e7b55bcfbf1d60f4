"""The course of a run, with an engine that only pretends."""

import os
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cli.made_up import status
from penstock.app.outcome import Outcome
from penstock.app.run_plan import RunPlan, RunRequest, plan_run
from penstock.app.runner import facts, run
from penstock.app.signals import StopRequest
from penstock.app.snapshots import Snapshot
from penstock.errors import RunError, UnreachableError
from penstock.model.measurements import FragmentStatus

FILE = """\
streams:
  readings:
    source: {generate: meters, homes: 10, days: 1, speedup: 600}
    lateness: 2min
queries:
  peaks: SELECT home, kwh FROM readings WHERE kwh > 2
nodes: {a: {cores: 2}}
"""


@dataclass
class Pretence:
    """What the pretended Spark does, and what was done to it."""

    looks_until_finished: int = 3
    failure: Exception | None = None
    start_failure: Exception | None = None
    stop_failure: Exception | None = None
    looks: int = 0
    stopped: list[str] = field(default_factory=list)


class PretendedEngine:
    """Has the interface of the engine as far as the command line uses it."""

    pretence: Pretence

    def __init__(
        self, session: object, network: object, state: object, options: object, show: object
    ):
        self.is_running = False

    def start(self) -> None:
        self.is_running = True

    @property
    def is_finished(self) -> bool:
        self.pretence.looks += 1
        return self.pretence.looks > self.pretence.looks_until_finished

    def check(self) -> None:
        if self.pretence.failure is not None:
            raise self.pretence.failure

    def status(self) -> tuple[FragmentStatus, ...]:
        assert self.is_running, "asked before it was started"
        return (status("peaks", 480, 7, finished=True),)

    def set_aside(self) -> dict[str, dict[str, int]]:
        return {"readings": {"malformed": 0, "late": 0}}

    def stop(self) -> None:
        self.pretence.stopped.append("engine")
        if self.pretence.stop_failure is not None:
            raise self.pretence.stop_failure


class PretendedSession:
    def __init__(self, pretence: Pretence) -> None:
        self._pretence = pretence

    def stop(self) -> None:
        self._pretence.stopped.append("session")


class Recorder:
    """A presenter that remembers what it was told; ``on_update`` may interfere."""

    def __init__(self, on_update: Callable[[], None] = lambda: None) -> None:
        self.said: list[str] = []
        self.updates = 0
        self._on_update = on_update

    def begin(self, facts: list[str], notes: list[str]) -> None:
        self.said += [*facts, *notes]

    def note(self, text: str) -> None:
        self.said.append(text)

    def working(self, what: str) -> AbstractContextManager[object]:
        self.said.append(what)
        return nullcontext()

    def rows(self, query: str, rows: object) -> None:
        raise AssertionError("nobody has rows")

    def update(self, snapshot: Snapshot, seconds: float) -> None:
        self.updates += 1
        self._on_update()

    def end(self, outcome: Outcome) -> None:
        raise AssertionError("the runner leaves this to its caller")

    def close(self) -> None:
        self.said.append("closed")


@pytest.fixture
def pretence(monkeypatch: pytest.MonkeyPatch) -> Pretence:
    made = Pretence()

    def start_session(*arguments: Any) -> PretendedSession:
        if made.start_failure is not None:
            raise made.start_failure
        return PretendedSession(made)

    monkeypatch.setattr(PretendedEngine, "pretence", made, raising=False)
    monkeypatch.setattr("penstock.spark.engine.Engine", PretendedEngine)
    monkeypatch.setattr("penstock.spark.session.start_session", start_session)
    monkeypatch.setattr("penstock.app.runner._DRAW_EVERY_S", 0.01)
    return made


@pytest.fixture
def request_(tmp_path: Path) -> RunRequest:
    path = tmp_path / "tiny.yaml"
    path.write_text(FILE)
    return RunRequest(path)


def ran(request: RunRequest, recorder: Recorder) -> Outcome:
    with StopRequest() as stop:
        return run(plan_run(request), request, recorder, stop)


def log(request: RunRequest) -> Path:
    return request.file.parent / ".penstock" / "tiny" / "log" / "penstock.log"


def test_to_the_end(pretence: Pretence, request_: RunRequest) -> None:
    recorder = Recorder()
    outcome = ran(request_, recorder)
    assert (outcome.ending, outcome.rows_in, outcome.rows_out) == ("finished", 480, 7)
    assert recorder.updates == 3
    assert recorder.said[1:] == [
        "1 query, 2 operators in 1 fragment",
        *facts(plan_run(request_))[2:],
        "starting Spark…",
        "starting queries…",
        "stopping…",
        "closed",
    ]
    assert pretence.stopped == ["engine", "session"]


def test_for_a_while(pretence: Pretence, request_: RunRequest) -> None:
    pretence.looks_until_finished = 1 << 30
    limited = RunRequest(request_.file, for_us=100_000)
    assert ran(limited, Recorder()).ending == "time"
    assert pretence.stopped == ["engine", "session"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_until_asked(pretence: Pretence, request_: RunRequest, number: int) -> None:
    pretence.looks_until_finished = 1 << 30
    assert ran(request_, Recorder(lambda: os.kill(os.getpid(), number))).ending == "asked"
    assert pretence.stopped == ["engine", "session"]


def test_a_reader_that_has_gone_stops_it_cleanly(pretence: Pretence, request_: RunRequest) -> None:
    def gone() -> None:
        raise BrokenPipeError(32, "Broken pipe")

    with pytest.raises(BrokenPipeError):
        ran(request_, Recorder(gone))
    assert pretence.stopped == ["engine", "session"]


def test_what_the_engine_says_is_passed_on(pretence: Pretence, request_: RunRequest) -> None:
    pretence.failure = RunError("peaks stopped: the disk under /state is full")
    pretence.stop_failure = RuntimeError("and it cannot be stopped")
    with pytest.raises(RunError, match="the disk under /state is full"):
        ran(request_, Recorder())
    assert pretence.stopped == ["engine", "session"]


def test_anything_else_is_put_in_words(pretence: Pretence, request_: RunRequest) -> None:
    pretence.failure = ConnectionRefusedError(111, "Connection refused")
    with pytest.raises(RunError) as raised:
        ran(request_, Recorder())
    assert str(raised.value) == (
        f"tiny stopped: [Errno 111] Connection refused. Details are in {log(request_)}. "
        "The same command goes on from the last finished batch."
    )
    assert "Traceback" in log(request_).read_text()


def test_spark_does_not_start(pretence: Pretence, request_: RunRequest) -> None:
    pretence.start_failure = RuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited.\n…")
    with pytest.raises(RunError) as raised:
        ran(request_, Recorder())
    assert str(raised.value) == (
        "Spark did not start: [JAVA_GATEWAY_EXITED] Java gateway process exited. "
        f"Details are in {log(request_).with_name('spark.log')}; "
        "penstock doctor checks this machine."
    )


def test_no_java(pretence: Pretence, request_: RunRequest) -> None:
    pretence.start_failure = UnreachableError("no Java 17 or later was found")
    with pytest.raises(UnreachableError, match="no Java 17"):
        ran(request_, Recorder())


def test_finished_before_starts_nothing(pretence: Pretence, request_: RunRequest) -> None:
    from penstock.spark.state import StateFolder

    plan: RunPlan = plan_run(request_)
    state = StateFolder(plan.folder)
    for fragment in plan.fragments:
        state.fragment(fragment.name).path.mkdir(parents=True)
        state.fragment(fragment.name).finish()
    recorder = Recorder()
    assert ran(request_, recorder).ending == "finished before"
    assert recorder.said == []
    assert pretence.looks == 0


def test_rows_of_earlier_runs_do_not_count(pretence: Pretence, request_: RunRequest) -> None:
    from penstock.spark.state import StateFolder

    plan = plan_run(request_)
    folder = StateFolder(plan.folder).fragment("peaks")
    folder.path.mkdir(parents=True)
    folder.add_rows_out(3, 5)
    assert ran(request_, Recorder()).rows_out == 2
