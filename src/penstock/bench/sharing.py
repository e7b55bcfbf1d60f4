"""What sharing saves: queries over one stream that overlap, submitted shared and unshared.

Each side is a system of its own with one node of two cores. Queries are added until results come
later than they may; at 1, 10 and 50 of them, what they use is compared.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.bench.processes import own_bytes, processor_s, total
from penstock.bench.report import BenchCase, Report, compared
from penstock.bench.sharing_load import (
    LIMIT_S,
    RATE_PER_S,
    SteadyRows,
    deployment,
    name_of,
    sql,
    stream,
)
from penstock.channels.channel import Channel
from penstock.control.client import await_that
from penstock.errors import RunError
from penstock.studies.live_system import READER, LiveSystem, live_system

Say = Callable[[str], None]
_COMPARED = (1, 10, 50)
_MORE = (200, 600)
_CORES, _MEMORY_BYTES = 2, 3 << 30
_WATCHED = 20
_SINGLY = 10
"""So many queries are submitted one by one, as people do; what exceeds that, in files."""
_A_FILE = 50
_PATIENCE_S = 120.0


@dataclass(frozen=True)
class StagePace:
    """How long a stage is warmed up and measured, and which stages there are."""

    warm_up_s: float
    measured_s: float
    stages: tuple[int, ...]


_QUICK = StagePace(2.0, 8.0, _COMPARED)
_FULL = StagePace(4.0, 10.0, (*_COMPARED, *_MORE))


@dataclass(frozen=True)
class StageUse:
    """What so many queries used, and how old results were.

    ``operators`` is how many operators the queries run themselves.
    """

    queries: int
    cores: float
    memory_bytes: float
    p50_s: float
    p99_s: float
    operators: int

    @property
    def is_within_limit(self) -> bool:
        return self.p99_s <= LIMIT_S

    @property
    def told(self) -> str:
        """The same in a few words."""
        gibibytes = self.memory_bytes / 2**30
        return f"{self.cores:.2f} cores, {gibibytes:.2f} GiB, p99 {self.p99_s:.2f} s"


def sharing(quick: bool, say: Say) -> Report:
    """Both sides, shared first."""
    pace = _QUICK if quick else _FULL
    sides = {share: _run_side(share, pace, say) for share in (True, False)}
    return Report("sharing", tuple(cases(sides[True], sides[False])))


def cases(shared: Mapping[int, StageUse], unshared: Mapping[int, StageUse]) -> Iterator[BenchCase]:
    """Stages that both sides have come to, beside each other, and what each side sustains."""
    for queries in sorted(set(_COMPARED) & shared.keys() & unshared.keys()):
        ours, theirs = shared[queries], unshared[queries]
        named = f"{queries} quer{'y' if queries == 1 else 'ies'}, shared of unshared"
        yield compared(f"{named}: CPU", ours.cores, "cores", theirs.cores)
        yield compared(
            f"{named}: memory", ours.memory_bytes / 2**30, "GiB", theirs.memory_bytes / 2**30
        )
        yield compared(f"{named}: latency p50", ours.p50_s, "s", theirs.p50_s)
        yield compared(f"{named}: latency p99", ours.p99_s, "s", theirs.p99_s)
        per_cpu_s = (RATE_PER_S / ours.cores, RATE_PER_S / theirs.cores)
        yield compared(f"{named}: rows", per_cpu_s[0], "per CPU second", per_cpu_s[1])
        yield compared(f"{named}: operators run", ours.operators, "", theirs.operators)
    most = [
        max((use.queries for use in side.values() if use.is_within_limit), default=0)
        for side in (shared, unshared)
    ]
    yield compared(f"queries within {LIMIT_S:g} s on two cores", most[0], "queries", most[1])


def _run_side(share: bool, pace: StagePace, say: Say) -> dict[int, StageUse]:
    """The stages of one side, up to the first at which results are late."""
    found: dict[int, StageUse] = {}
    with (
        tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder,
        live_system(1, _MEMORY_BYTES, _CORES) as live,
    ):
        side = _Side(live, Path(folder), share)
        try:
            for queries in pace.stages:
                named = f"{queries} queries, {'shared' if share else 'unshared'}"
                say(named)
                found[queries] = side.measure(queries, pace)
                say(f"{named}: {found[queries].told}")
                if not found[queries].is_within_limit:
                    break
        finally:
            side.rows.stop()
    return found


class _Side:
    """A system that gets ever more queries."""

    def __init__(self, live: LiveSystem, folder: Path, share: bool) -> None:
        self._live = live
        self._share = share
        self._asked = 0
        self._watched: dict[str, Channel] = {}
        self.rows = SteadyRows(folder)
        live.client.submit("input", "yaml", stream(folder), str(folder))
        self.rows.start()

    def measure(self, queries: int, pace: StagePace) -> StageUse:
        """Adds queries until there are so many, and says what they use."""
        self._add(queries)
        self._await_results()
        time.sleep(pace.warm_up_s)
        self._latencies_s()
        pid = self._live.client.nodes()[0].pid
        before_s, began_s = total(pid, processor_s), time.monotonic()
        time.sleep(pace.measured_s)
        cores = (total(pid, processor_s) - before_s) / (time.monotonic() - began_s)
        latencies_s = sorted(self._latencies_s())
        self._live.check()
        if not latencies_s:
            raise RunError(f"{queries} queries gave no results while they were measured")
        return StageUse(
            queries,
            cores,
            total(pid, own_bytes),
            latencies_s[(len(latencies_s) - 1) // 2],
            latencies_s[round(0.99 * (len(latencies_s) - 1))],
            self._operators(),
        )

    def _add(self, queries: int) -> None:
        client, share = self._live.client, self._share
        while self._asked < min(queries, _SINGLY):
            name = name_of(self._asked)
            text = f'queries:\n  {name}: {{sql: "{sql(self._asked)}", max_latency: {LIMIT_S:g}s}}'
            client.submit(name, "yaml", text, ".", share=share, force=True)
            self._watch(name)
            client.await_running(name)
            self._asked += 1
        while self._asked < queries:
            more = range(self._asked, min(queries, self._asked + _A_FILE))
            client.submit(
                f"file{self._asked}", "yaml", deployment(more), ".", share=share, force=True
            )
            client.await_running(f"file{self._asked}")
            self._asked = more.stop

    def _watch(self, name: str) -> None:
        if len(self._watched) < _WATCHED:
            self._watched[name] = self._live.channel(name)

    def _await_results(self) -> None:
        """A query counts from its submission on: its first window takes a while to close."""
        self._latencies_s()
        waiting = dict(self._watched)

        def is_going() -> bool:
            for name, channel in list(waiting.items()):
                if any(manifest.rows for manifest in channel.newer(channel.oldest())):
                    del waiting[name]
            return not waiting

        await_that(lambda: is_going() or None, _PATIENCE_S, "some queries gave no results")

    def _latencies_s(self) -> list[float]:
        """How old the results were that have come out since the last call."""
        found = []
        for channel in self._watched.values():
            start = channel.oldest()
            for manifest in channel.newer(start):
                start = manifest.sequence + 1
                if manifest.rows and manifest.arrived_s is not None:
                    at_s = channel.entry(manifest.sequence).stat().st_mtime
                    found.append(at_s - manifest.arrived_s)
            channel.advance(READER, start)
        return found

    def _operators(self) -> int:
        return sum(1 for operator in self._live.client.operators())
