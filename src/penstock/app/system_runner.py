"""Running a plan on several nodes: a system of its own for one file, torn down at the end."""

from __future__ import annotations

import shutil
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from penstock.app.outcome import Ending, Outcome, labelled, with_unread, without_a_run
from penstock.app.rates import Rates
from penstock.app.run_plan import (
    SYSTEM,
    RunPlan,
    RunRequest,
    check_speed,
    has_begun,
    is_finished,
    remember_run,
    remove_earlier,
    room_warnings,
)
from penstock.app.run_submissions import keep_in_line, run_parts, submit_parts
from penstock.app.signals import StopRequest
from penstock.app.snapshots import Presenter, SetAside, Snapshot
from penstock.app.tally import counted_before, set_aside_since, since
from penstock.channels.dead_letters import DeadLetters
from penstock.channels.durable import read_record, write_record
from penstock.channels.layout import StateLayout
from penstock.control.answer_models import SystemAnswer
from penstock.control.client import Client
from penstock.control.cost_memory import COSTS
from penstock.control.home import Home
from penstock.control.launch import bring_down, bring_up, is_up
from penstock.control.meter import NodeUse
from penstock.control.records import UNREADABLE
from penstock.errors import InputError, PenstockError, RunError
from penstock.model.durations import US_PER_S
from penstock.model.measurements import FragmentStatus
from penstock.model.sources import ConsoleSink
from penstock.spark.state import StateFolder

_LOOK_EVERY_S = 0.5
_OVER = ("finished", "unread", UNREADABLE)


def run_on_nodes(
    plan: RunPlan, request: RunRequest, presenter: Presenter, stop: StopRequest, facts: list[str]
) -> Outcome:
    """Runs the plan on node processes until its inputs end, its time is up, or somebody asks."""
    home = Home(plan.folder / SYSTEM)
    if is_up(home):
        raise InputError(
            f"the system in {home.path} is running already",
            hint=f"Look at it with penstock status --home {home.path}, or stop it with down.",
        )
    if request.fresh:
        remove_earlier(plan.network, home.state)
        _start_over(home)
    check_speed(home.state, request)
    keep_in_line(plan, home)
    state = StateFolder(home.state)
    if is_finished(plan, state):
        return with_unread(without_a_run(plan, "finished before"), state)
    going_on = has_begun(plan, state)
    notes = [f"going on from the state in {plan.folder}"] if going_on else []
    presenter.begin(facts, [*notes, *room_warnings(plan)])
    try:
        return _RunOfSystem(plan, request, presenter, stop, home).outcome()
    finally:
        with suppress(OSError):
            presenter.close()


def _start_over(home: Home) -> None:
    """Forgets everything but what fragments cost: the same work costs the same again."""
    for path in home.path.iterdir() if home.path.exists() else ():
        if path.name != COSTS:
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink()


class _RunOfSystem:
    """One run of a system that exists for it alone."""

    def __init__(
        self,
        plan: RunPlan,
        request: RunRequest,
        presenter: Presenter,
        stop: StopRequest,
        home: Home,
    ) -> None:
        self._plan, self._presenter, self._stop, self._home = plan, presenter, stop, home
        self._request = request
        self._limit_s = None if request.for_us is None else request.for_us / US_PER_S
        self._rates = Rates()
        self._shown: dict[str, int] = read_record(self._shown_mark) or {}
        self._first_aside = self._set_aside()
        self._first = counted_before(home.state, plan.fragments)
        state = StateFolder(home.state)
        names = [fragment.id for fragment in plan.fragments]
        self._done_before = {name for name in names if state.fragment(name).is_finished}

    def outcome(self) -> Outcome:
        """Brings the system up, follows it to its end, and takes it down."""
        with self._presenter.working("starting nodes…"):
            client = bring_up(self._home, self._plan.deployment.nodes)
        began_s = time.monotonic()
        try:
            link = client.login_link()
            self._presenter.note(f"dashboard {link}  ·  good once, for a minute")
            remember_run(self._plan, self._request, self._home.state)
            for note in submit_parts(client, run_parts(self._plan), self._folder):
                self._presenter.note(note)
            ending = self._follow(client, began_s)
            self._show_rows(client)
            statuses = self._statuses(client.system())
        finally:
            client.close()
            with self._presenter.working("stopping…"):
                bring_down(self._home)
        aside = set_aside_since(self._first_aside, self._set_aside())
        outcome = Outcome(self._plan, ending, time.monotonic() - began_s, statuses, aside)
        return with_unread(outcome, StateFolder(self._home.state))

    @property
    def _folder(self) -> Path:
        """Where Python operators are looked for."""
        return self._request.file.absolute().parent

    def _follow(self, client: Client, began_s: float) -> Ending:
        while not self._stop.wait(_LOOK_EVERY_S):
            found = client.system()
            self._check(found)
            self._show_rows(client)
            passed_s = time.monotonic() - began_s
            self._presenter.update(self._snapshot(found), passed_s)
            if all(fragment.state in _OVER for fragment in found.fragments):
                return "finished"
            if self._limit_s is not None and passed_s >= self._limit_s:
                return "time"
        return "asked"

    def _check(self, found: SystemAnswer) -> None:
        for fragment in found.fragments:
            if fragment.state == "failed" and fragment.restarts >= fragment.restarts_at_most:
                raise RunError(fragment.error, hint=f"Logs are in {self._home.logs}.")

    @property
    def _shown_mark(self) -> Path:
        """Keeps how far rows were shown: a run that goes on shows those that come after."""
        return self._home.state / "shown"

    def _show_rows(self, client: Client) -> None:
        before = dict(self._shown)
        for query in self._plan.network.queries:
            if isinstance(query.sink, ConsoleSink):
                with suppress(PenstockError):
                    rows, self._shown[query.name], _ = client.batches(
                        query.stream, self._shown.get(query.name)
                    )
                    if rows is not None and rows.num_rows:
                        self._presenter.rows(query.name, rows)
        if self._shown != before:
            write_record(self._shown_mark, self._shown)

    def _statuses(self, found: SystemAnswer) -> tuple[FragmentStatus, ...]:
        by_name = {fragment.name: fragment for fragment in found.fragments}
        statuses = []
        for fragment in self._plan.fragments:
            known = by_name.get(fragment.name)
            status = None if known is None else known.status
            done = known is not None and known.state in _OVER
            measured = status or FragmentStatus(fragment.name, is_finished=done)
            if status is None or fragment.name in self._done_before:
                # What was never measured since was not read or given either.
                measured = replace(measured, **vars(self._first[fragment.name]))
            statuses.append(measured)
        return since(self._first, statuses)

    def _snapshot(self, found: SystemAnswer) -> Snapshot:
        statuses = self._rates.recent(self._statuses(found), time.monotonic())
        memory = sum(node.memory_bytes for node in found.nodes)
        cpu = sum(node.utilisation for node in found.nodes) / max(1, len(found.nodes))
        return Snapshot(
            statuses=labelled(self._plan.fragments, statuses),
            use=NodeUse(cpu, memory, memory),
            set_aside=set_aside_since(self._first_aside, self._set_aside()),
            dead_letters=StateLayout(self._home.state).dead_letters,
        )

    def _set_aside(self) -> SetAside:
        folder = StateLayout(self._home.state).dead_letters
        names = self._plan.network.judged
        return {name: DeadLetters(folder / name).counts() for name in names}
