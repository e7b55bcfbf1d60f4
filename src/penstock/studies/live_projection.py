"""Projected against measured: different queries submitted to real nodes that get ever busier.

What a submission was told beforehand, its latency and the load of its node, is compared with what
was measured once it ran. Then queries are submitted to one node until they are refused; those that
were admitted are watched, and once more while the refused ones are forced in.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

from penstock.channels.channel import Channel
from penstock.control.answer_models import SubmittedAnswer
from penstock.errors import InputError, RunError
from penstock.studies.figures import Figure
from penstock.studies.live_system import Delivered, LiveSystem, live_system
from penstock.studies.projection_load import PacketQuery, queries, streams
from penstock.studies.report import Row, Runner, Say, StudyReport, records, within
from penstock.studies.running import one_by_one

_AIM = 0.1
_LOOK_EVERY_S = 1.0
_PATIENCE_S = 30.0
_LEAD = 4
"""So many queries run before the first that is measured."""
_MEMORY_BYTES = 2 << 30


@dataclass(frozen=True)
class Course:
    """How many queries are submitted, and how long each is waited for and measured.

    ``rest_s`` is how long it takes until what a query costs is in what is measured of its node.
    """

    submissions: int
    warm_s: float
    settle_s: float
    measured_s: float
    admitted_at_most: int
    rest_s: float
    watched_s: float
    rate_per_s: int = 30_000
    hosts: int = 10_000


_QUICK = Course(30, 30.0, 0.0, 8.0, 20, 3.0, 30.0)
_FULL = Course(40, 120.0, 5.0, 25.0, 40, 12.0, 180.0)


@dataclass(frozen=True)
class Submitted:
    """One submission: what was projected, and what was measured.

    Loads are shares of its node; ``seen_load`` is what was measured of it just before.
    """

    number: int
    query: str
    node: str
    limit_s: float
    engine: str
    shares: int
    seen_load: float
    projected_load: float | None
    measured_load: float
    load_error: float | None
    projected_s: float | None
    measured_s: float | None
    measured_p50_s: float | None
    latency_error: float | None
    batches: int


@dataclass(frozen=True)
class Kept:
    """How a query that was admitted kept its limit while it was watched."""

    phase: str
    query: str
    limit_s: float
    measured_s: float | None
    is_kept: bool


def study(quick: bool, say: Say, run: Runner = one_by_one) -> StudyReport:
    """Both parts, each in a system of its own."""
    course = _QUICK if quick else _FULL
    submitted = _projected(course, say)
    kept, admitted, refused = _admitted(course, say)
    tables = (
        records("live-projection", [asdict(submission) for submission in submitted]),
        records("live-admission", [asdict(query) for query in kept]),
    )
    rows = (*_findings(submitted), *_admission_findings(kept, admitted, refused))
    return StudyReport("live-projection", rows, tables, _drawn(), _setup(course))


@dataclass
class _SubmissionWatch:
    """A system under watch: nodes' use and results, look by look."""

    live: LiveSystem
    _channels: dict[str, Channel] = field(default_factory=dict)
    _places: dict[str, int] = field(default_factory=dict)
    _seen: list[tuple[float, Mapping[str, float]]] = field(default_factory=list)
    _delivered: list[Delivered] = field(default_factory=list)

    def add(self, query: str) -> None:
        """Has the results of a query watched as well."""
        self._channels[query] = self.live.channel(query)
        self._places[query] = 0

    def wait(self, seconds: float) -> None:
        """Lets time go by."""
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            time.sleep(_LOOK_EVERY_S)
            look = self.live.look(())
            self._seen.append((look.at_s, look.utilisation))
            self._delivered += self.live.delivered(self._channels, self._places)
        self.live.check()

    def load(self, node: str, seconds: float) -> float:
        """The share of a node that was used in the last seconds."""
        since_s = time.time() - seconds
        known = [used[node] for at_s, used in self._seen if at_s >= since_s]
        return float(np.mean(known)) if known else 0.0

    def latencies_s(self, query: str, seconds: float) -> list[float]:
        """How old the results of a query were that came out in the last seconds; sorted."""
        since_s = time.time() - seconds
        return sorted(
            batch.latency_s
            for batch in self._delivered
            if batch.query == query and batch.at_s >= since_s
        )

    def await_results(self, query: str) -> None:
        """Waits for the first of them."""
        until_s = time.monotonic() + _PATIENCE_S
        while not any(batch.query == query for batch in self._delivered):
            if time.monotonic() > until_s:
                raise RunError(f"{query} gave no results within {_PATIENCE_S:g} s")
            self.wait(_LOOK_EVERY_S)


def _projected(course: Course, say: Say) -> list[Submitted]:
    """Submits queries to two nodes, each time one to each: they do not touch each other."""
    found: list[Submitted] = []
    with live_system(2, _MEMORY_BYTES) as live:
        watch = _begin(live, course, say)
        asked = queries(live.nodes, _LEAD + course.submissions)
        for query in asked[:_LEAD]:
            _submit(watch, query, force=True)
        watch.wait(course.warm_s)
        for first in range(_LEAD, len(asked), len(live.nodes)):
            turn = asked[first : first + len(live.nodes)]
            seen = {node: watch.load(node, course.measured_s) for node in live.nodes}
            loads = ", ".join(f"{node} at {load:.0%}" for node, load in seen.items())
            say(f"submission {first - _LEAD + 1} of {course.submissions}, {loads}")
            answers = [_submit(watch, query, force=True) for query in turn]
            for query in turn:
                watch.await_results(query.name)
            watch.wait(course.settle_s + course.measured_s)
            for query, answer in zip(turn, answers, strict=True):
                number = len(found) + 1
                found.append(_compared(number, query, seen, answer, watch, course.measured_s))
    return found


def _begin(live: LiveSystem, course: Course, say: Say) -> _SubmissionWatch:
    say("starting")
    text = streams(live.nodes, course.rate_per_s, course.hosts)
    live.client.submit("packets", "yaml", text, ".")
    return _SubmissionWatch(live)


def _submit(watch: _SubmissionWatch, query: PacketQuery, force: bool) -> SubmittedAnswer:
    answer = watch.live.client.submit(query.name, "yaml", query.deployment(), ".", force=force)
    watch.add(query.name)
    watch.live.client.await_running(query.name)
    return answer


def _compared(
    number: int,
    query: PacketQuery,
    seen: Mapping[str, float],
    answer: SubmittedAnswer,
    watch: _SubmissionWatch,
    measured_s: float,
) -> Submitted:
    told = answer.admission
    assert told is not None and answer.sharing is not None and query.node is not None
    latencies_s = watch.latencies_s(query.name, measured_s)
    taken_s = latencies_s[round(0.99 * (len(latencies_s) - 1))] if latencies_s else None
    projected_load, load = told.loads.get(query.node), watch.load(query.node, measured_s)
    return Submitted(
        number,
        query.name,
        query.node,
        query.limit_s,
        "native" if query.is_native else "light",
        len(answer.sharing.shared),
        seen[query.node],
        projected_load,
        load,
        error(projected_load, load),
        told.projected_s,
        taken_s,
        latencies_s[(len(latencies_s) - 1) // 2] if latencies_s else None,
        error(told.projected_s, taken_s),
        len(latencies_s),
    )


def error(projected: float | None, measured: float | None) -> float | None:
    """How far what was projected is off, as a part of what was measured.

    >>> error(1.5, 2.0)
    -0.25
    """
    if projected is None or not measured:
        return None
    return (projected - measured) / measured


def _admitted(course: Course, say: Say) -> tuple[list[Kept], int, bool]:
    """Submits to one node until it is too much; how admitted queries fare, alone and not.

    How many were admitted, and whether one was refused.
    """
    with live_system(1, _MEMORY_BYTES) as live:
        watch = _begin(live, course, say)
        asked = queries(live.nodes, course.admitted_at_most)
        admitted: list[PacketQuery] = []
        for query in asked:
            say(f"{len(admitted)} admitted")
            try:
                _submit(watch, query, force=False)
            except InputError as refused:
                say(f"refused: {refused}")
                break
            admitted.append(query)
            watch.wait(course.rest_s)
        watch.wait(course.settle_s)
        watch.wait(course.watched_s)
        kept = _kept("admitted", admitted, watch, course.watched_s)
        more = asked[len(admitted) :]
        for query in more:
            say(f"forcing {query.name} in")
            _submit(watch, query, force=True)
        watch.wait(course.settle_s)
        watch.wait(course.watched_s)
        kept += _kept("with those refused", [*admitted, *more], watch, course.watched_s)
    return kept, len(admitted), bool(more)


def _kept(
    phase: str, among: Sequence[PacketQuery], watch: _SubmissionWatch, seconds: float
) -> list[Kept]:
    found = []
    for query in among:
        latencies_s = watch.latencies_s(query.name, seconds)
        taken_s = latencies_s[round(0.99 * (len(latencies_s) - 1))] if latencies_s else None
        # What gives nothing for so long is late as well.
        is_kept = taken_s is not None and taken_s <= query.limit_s
        found.append(Kept(phase, query.name, query.limit_s, taken_s, is_kept))
    return found


def _findings(submitted: Sequence[Submitted]) -> list[Row]:
    loads = [submission.measured_load for submission in submitted]
    found = [
        within("submissions", None, len(submitted), low=30),
        within("load of their nodes, least", None, round(min(loads), 3)),
        within("load of their nodes, most", None, round(max(loads), 3)),
    ]
    for what, errors in (
        ("latency", [submission.latency_error for submission in submitted]),
        ("load of the node", [submission.load_error for submission in submitted]),
    ):
        known = np.array([found_error for found_error in errors if found_error is not None])
        if not len(known):
            continue
        sizes = np.abs(known)
        low, middle, high = (float(np.percentile(sizes, share)) for share in (25, 50, 75))
        found += [
            within(f"{what}: |projected - measured| / measured, median", None, round(middle, 3),
                   high=_AIM, note=f"of {len(known)}; the median with its sign is "
                   f"{float(np.median(known)):+.3f}"),
            within(f"{what}, lower quartile", None, round(low, 3)),
            within(f"{what}, upper quartile", None, round(high, 3)),
            within(f"{what}, worst", None, round(float(sizes.max()), 3)),
        ]  # fmt: skip
    return found


def _admission_findings(kept: Sequence[Kept], admitted: int, refused: bool) -> list[Row]:
    broken = {
        phase: sum(not query.is_kept for query in kept if query.phase == phase)
        for phase in ("admitted", "with those refused")
    }
    return [
        within("one node: queries admitted until one was refused", None, admitted, low=1,
               note="" if refused else "none was refused"),
        within("one node: admitted queries that broke their limits", None, broken["admitted"],
               high=0),
        within("one node: queries that did with those refused forced in", None,
               broken["with those refused"], low=1),
    ]  # fmt: skip


def _drawn() -> tuple[Figure, ...]:
    return (
        Figure("live-projection-latency", "live-projection", "measured_s", "projected_s",
               by="node", kind="scatter", bound="measured_s",
               title="Latency of a submission", x_label="measured, s", y_label="projected, s"),
        Figure("live-projection-load", "live-projection", "measured_load", "projected_load",
               by="node", kind="scatter", bound="measured_load",
               title="Load of its node", x_label="measured", y_label="projected"),
    )  # fmt: skip


def _setup(course: Course) -> str:
    return (
        f"Two nodes of one core on one machine, a stream of {course.rate_per_s:,} packets a second "
        f"at each; {course.submissions} aggregates submitted in turns of one to each, every fourth "
        "with an aggregate that runs already, every third a streaming query of its own; each is "
        f"watched for {course.measured_s:g} s after its first results. Projected loads and "
        "latencies are those told when it was submitted. One node: the same stream and queries of "
        f"the same kind, watched for {course.watched_s:g} s, first those admitted, then all."
    )
