"""What came of a run: as words for people and as JSON for programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from penstock.app.results import QueryRows
from penstock.app.run_plan import RunPlan
from penstock.app.snapshots import SetAside, totals
from penstock.app.tally import is_delivered, rows_delivered, rows_from_outside
from penstock.app.words import span
from penstock.errors import InputError, listed
from penstock.model.fragments import Fragment
from penstock.model.measurements import FragmentStatus
from penstock.model.network import Network
from penstock.model.sources import ConsoleSink

if TYPE_CHECKING:
    from penstock.spark.state import StateFolder

Ending = Literal["finished", "finished before", "asked", "time", "not begun"]
"""All inputs ended now, or in an earlier run; somebody asked; the time given with --for is up;
somebody asked before anything ran."""


@dataclass(frozen=True)
class Outcome:
    """A run that is over; counts are those of this run alone.

    ``unread`` says of every input of which nothing could be read what became of it instead, and
    ``dead_letters`` where that is.
    """

    plan: RunPlan
    ending: Ending
    seconds: float
    statuses: tuple[FragmentStatus, ...]
    set_aside: SetAside
    results: tuple[QueryRows, ...] = ()
    unread: Mapping[str, str] = field(default_factory=dict)
    dead_letters: Path | None = None

    @property
    def is_finished(self) -> bool:
        return self.ending in ("finished", "finished before") and not self.unread

    @property
    def has_run(self) -> bool:
        return self.ending not in ("finished before", "not begun")

    @property
    def rows_in(self) -> int:
        return rows_from_outside(self.plan.fragments, self.statuses)

    @property
    def rows_out(self) -> int:
        return rows_delivered(self.plan.network, self.plan.fragments, self.statuses)


def without_a_run(plan: RunPlan, ending: Ending) -> Outcome:
    """What came of a run in which nothing had to be done, or nothing was."""
    done = ending == "finished before"
    statuses = tuple(FragmentStatus(fragment.name, is_finished=done) for fragment in plan.fragments)
    return Outcome(plan, ending, 0.0, statuses, {})


def with_unread(outcome: Outcome, state: StateFolder) -> Outcome:
    """The outcome with the inputs of which nothing could be read, now or in an earlier run."""
    unread = state.unread_inputs(outcome.plan.network)
    return replace(outcome, unread=unread, dead_letters=state.layout.dead_letters)


def sentence(outcome: Outcome) -> str:
    """What happened, in one sentence."""
    counts = totals(outcome.rows_in, outcome.rows_out, outcome.set_aside)
    if outcome.unread and outcome.ending in ("finished", "finished before"):
        return f"nothing could be read of {listed(outcome.unread)}"
    if outcome.ending == "finished before":
        return (
            f"{outcome.plan.deployment.name} has already finished: all its inputs have ended "
            "and all results are out; start over with --fresh"
        )
    if outcome.ending == "not begun":
        return "stopped before anything ran"
    if outcome.ending == "finished":
        return f"finished after {span(outcome.seconds)}: {counts}"
    return (
        f"stopped cleanly after {span(outcome.seconds)}: {counts}; "
        "start again with the same command to go on where it stopped"
    )


def check_read(outcome: Outcome) -> None:
    """Raises if an input has ended of which nothing could be read: that is no result."""
    if not outcome.unread:
        return
    told = "; ".join(f"{stream}: {text}" for stream, text in outcome.unread.items())
    raise InputError(
        f"nothing could be read of {listed(outcome.unread)}: {told}",
        hint=f"The rows are in {outcome.dead_letters}. Correct the schema, the format or the "
        "files, and run it with --fresh.",
    )


def destinations(outcome: Outcome) -> list[tuple[str, str]]:
    """Where results went, other than to the terminal: pairs of query and place."""
    network = outcome.plan.network
    return [
        (name, place)
        for fragment in outcome.plan.fragments
        if is_delivered(network, fragment)
        for name, place in _places(network, fragment)
    ]


def _places(network: Network, fragment: Fragment) -> list[tuple[str, str]]:
    from penstock.lang.explain.words import sink_words

    tables = [f"to table {write.table} in {write.database.shown}" for write in fragment.writes]
    names = listed(fragment.queries) if fragment.queries else fragment.name
    places = [(names, place) for place in tables]
    for name in fragment.queries:
        sink = network.query(name).sink
        if sink is not None and not isinstance(sink, ConsoleSink):
            places.append((name, sink_words(sink)))
    return places


def labelled(
    fragments: tuple[Fragment, ...], statuses: tuple[FragmentStatus, ...]
) -> tuple[FragmentStatus, ...]:
    """The statuses under the names of the queries they answer, where they answer any."""
    names = {fragment.name: ", ".join(fragment.queries) or fragment.name for fragment in fragments}
    return tuple(replace(status, fragment=names[status.fragment]) for status in statuses)


def as_record(outcome: Outcome) -> Mapping[str, object]:
    """The outcome as plain values, the form that ``penstock run --json`` prints.

    ``deployment``, ``seconds``, ``finished`` (whether all inputs have ended), ``ending``,
    ``rows_in`` and ``rows_out``; ``queries`` with ``name``, ``rows_in``, ``rows_out``, ``batches``,
    ``batch_ms_p50`` and ``state_rows`` each, null for a query that runs inside those that read it;
    ``set_aside``: by stream, the number of rows ``malformed`` and ``late``, and of rows ``untimed``
    or ``ahead`` and of files ``skipped`` if there are any; ``unread``: the streams of which nothing
    could be read.
    """
    by_query = _by_query(outcome)
    return {
        "deployment": outcome.plan.deployment.name,
        "seconds": round(outcome.seconds, 3),
        "finished": outcome.is_finished,
        "ending": outcome.ending,
        "rows_in": outcome.rows_in,
        "rows_out": outcome.rows_out,
        "queries": [
            {"name": query.name} | _counts(by_query.get(query.name))
            for query in outcome.plan.network.queries
        ],
        "set_aside": {stream: dict(kinds) for stream, kinds in outcome.set_aside.items()},
        "unread": list(outcome.unread),
    }


def _by_query(outcome: Outcome) -> dict[str, FragmentStatus]:
    statuses = {status.fragment: status for status in outcome.statuses}
    return {
        name: statuses[fragment.name]
        for fragment in outcome.plan.fragments
        for name in fragment.queries
    }


def _counts(status: FragmentStatus | None) -> dict[str, object]:
    return {
        "rows_in": status and status.rows_in,
        "rows_out": status and status.rows_out,
        "batches": status and status.batches,
        "batch_ms_p50": status and status.batch_ms,
        "state_rows": status and status.state_rows,
    }
