"""What a round reads: the new batches of each channel, and what members keep of their rows."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.channels.channel import Channel
from penstock.channels.manifest import Manifest
from penstock.kernels.state_shape import StateShape
from penstock.kernels.window_plan import WindowPlan
from penstock.spark.bundles.job import RoundJob
from penstock.spark.bundles.running import Running
from penstock.spark.sources.channel_reader import check_file

_MEMBERS_OF_A_JOB = 1_500
# Starting a Spark job takes longer than aggregating so many rows here.
_ROWS_WITHOUT_A_JOB = 5_000
OnStep = Callable[[str], None]
Partials = dict[StateShape, list[pa.Table]]
Where = tuple[str, int]
"""A channel, and the number of a batch in it."""


@dataclass
class Round:
    """What a round has done: batches and rows read.

    ``arrived_s`` is when the oldest of the rows it read entered the system, None if it read none.
    ``busy_ms`` is the part of its time that each member has had.
    """

    batches: int = 0
    rows: int = 0
    arrived_s: float | None = None
    busy_ms: dict[str, float] = field(default_factory=dict)


@dataclass
class RoundWork:
    """A round under way: how far members have come by it, and what they keep of its rows.

    ``given`` are the rows that members give by it which keep no partial aggregates.
    """

    reached: dict[int, Running]
    report: Round = field(default_factory=Round)
    partials: Partials = field(default_factory=lambda: defaultdict(list))
    given: dict[int, pa.Table] = field(default_factory=dict)
    job_ms: dict[int, float] = field(default_factory=lambda: defaultdict(float))

    def note(self, manifests: Iterable[Manifest]) -> None:
        """Takes note of batches that the round has read."""
        _report(self.report, list(manifests))


class NewRows:
    """The rows of some batches of a channel, as files for Spark or as a table."""

    def __init__(self, log: Channel, manifests: Sequence[Manifest], is_given_here: bool) -> None:
        self._log = log
        self._files = [file for manifest in manifests for file in manifest.files if file.rows]
        self.count = sum(file.rows for file in self._files)
        self.is_small = is_given_here and self.count <= _ROWS_WITHOUT_A_JOB

    def check(self) -> None:
        """Raises if a file is missing or damaged."""
        for file in self._files:
            if file.inside is None:
                check_file(self._log, file)

    def paths(self) -> list[Path]:
        """The files, as Parquet."""
        return [self._log.path_of(file) for file in self._files]

    def rows(self, columns: Sequence[str]) -> pa.Table:
        """These columns of all rows."""
        return pa.concat_tables([self._log.rows_of(file, list(columns)) for file in self._files])


class RoundReader:
    """Reads for groups of members that stand at the same place, one Spark job a group.

    Large groups have several.
    """

    def __init__(
        self,
        session: SparkSession,
        channel_of: Callable[[str], Channel],
        max_rows: int,
        on_step: OnStep,
    ) -> None:
        self._session = session
        self._channel_of = channel_of
        self._max_rows = max_rows
        self._on_step = on_step
        self._jobs: dict[frozenset[int], RoundJob] = {}
        self._cores = session.sparkContext.defaultParallelism
        self._pool = ThreadPoolExecutor(self._cores, thread_name_prefix="job")

    def read(
        self, work: RoundWork, channel: str, start: int, numbers: list[int], is_given_here: bool
    ) -> dict[int, BaseException]:
        """Adds what is new from a batch on to the work; what went wrong, by member.

        A few rows that this bundle has given itself are aggregated here, without a Spark job.
        """
        began_s = time.perf_counter()
        try:
            log = self._channel_of(channel)
            manifests = take_new(log, start, self._max_rows)
            new = NewRows(log, manifests, is_given_here)
            new.check()
        except Exception as error:
            return dict.fromkeys(numbers, error)
        if not manifests:
            return {}
        failed = self._compute(work, new, numbers) if new.count else {}
        self._on_step("computed")
        work.note(manifests)
        spent_ms = 1_000 * (time.perf_counter() - began_s)
        for number in numbers:
            work.job_ms[number] += spent_ms / len(numbers)
            if number not in failed:
                work.reached[number] = work.reached[number].after(manifests)
        return failed

    def _compute(
        self, work: RoundWork, new: NewRows, numbers: list[int]
    ) -> dict[int, BaseException]:
        """Computes what members keep of the rows in some files; what went wrong, by member.

        Hundreds of members are shared out to as many jobs as there are cores: what a job costs
        however small it is, is then little beside its members' work.
        """
        count = min(self._cores, 1 + len(numbers) // _MEMBERS_OF_A_JOB)
        parts = [numbers[at::count] for at in range(count)]
        jobs = [self._job(work.reached, part) for part in parts]
        failed: list[int] = []
        errors: dict[int, BaseException] = {}
        for part, found in zip(parts, self._run(jobs, new), strict=True):
            if isinstance(found, dict):
                _add(work.partials, found)
            elif len(part) == 1:
                errors[part[0]] = found
            else:
                failed += part
        return {**errors, **self._compute_halves(work, new, failed)}

    def _compute_halves(
        self, work: RoundWork, new: NewRows, numbers: list[int]
    ) -> dict[int, BaseException]:
        """Tries halves of members apart, until those are found that cannot be computed."""
        half = len(numbers) // 2
        parts = [part for part in (numbers[:half], numbers[half:]) if part]
        found = [self._compute(work, new, part) for part in parts]
        return {number: error for errors in found for number, error in errors.items()}

    def _run(self, jobs: list[RoundJob], new: NewRows) -> list[Partials | BaseException]:
        if len(jobs) == 1:
            return [_attempt(jobs[0], new)]
        return list(self._pool.map(lambda job: _attempt(job, new), jobs))

    def _job(self, running: Mapping[int, Running], numbers: Iterable[int]) -> RoundJob:
        members = frozenset(numbers)
        if members not in self._jobs:
            for outdated in [other for other in self._jobs if other & members]:
                self._jobs.pop(outdated).close()
            planned = ((number, running[number].plan) for number in sorted(members))
            plans = {number: plan for number, plan in planned if isinstance(plan, WindowPlan)}
            self._jobs[members] = RoundJob(self._session, plans)
        return self._jobs[members]

    def close(self) -> None:
        """Lets go of what the tasks know."""
        self._pool.shutdown()
        for job in self._jobs.values():
            job.close()
        self._jobs.clear()


def take_new(log: Channel, start: int, max_rows: int) -> list[Manifest]:
    """The batches from ``start`` on, one at least, that together have so many rows at most."""
    found: list[Manifest] = []
    rows = 0
    for manifest in log.newer(start):
        rows += manifest.rows
        if found and rows > max_rows:
            break
        found.append(manifest)
    return found


def _attempt(job: RoundJob, new: NewRows) -> Partials | BaseException:
    try:
        if new.is_small and not job.needs_spark:
            return job.run_here(new.rows(job.columns))
        return job.run(new.paths(), new.count)
    except Exception as error:
        return error


def _add(partials: Partials, more: Partials) -> None:
    for shape, tables in more.items():
        partials[shape] += tables


def _report(report: Round, manifests: list[Manifest]) -> None:
    report.batches += len(manifests)
    report.rows += sum(manifest.rows for manifest in manifests)
    told = (manifest.arrived_s for manifest in manifests if manifest.rows)
    arrived = [arrived_s for arrived_s in told if arrived_s is not None]
    known = [] if report.arrived_s is None else [report.arrived_s]
    report.arrived_s = min([*known, *arrived], default=None)
