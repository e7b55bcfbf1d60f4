"""What Penstock costs over Spark by hand: the same pipelines on both sides, in turn, in one run.

Both sides read the same Parquet files, one of every input in a batch, on as many cores and with as
much memory, write Parquet, and keep checkpoints on the same disk. Ours are native queries, not
light ones. The report says how many batches and rows out there were, and is not ok where they
differ. Only aggregates may give more rows here: stock Spark leaves the last windows of an input
that has ended open. To close them takes ours one more batch, without rows, whose time counts.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path

from penstock.bench.flagship import flagship_cases
from penstock.bench.peers.workload import Workload
from penstock.bench.report import BenchCase, Report, chosen_cases, compared, equal
from penstock.bench.side import Answer, Side, workload

PIPELINES = (
    "filter and map",
    "strings",
    "tumbling aggregate",
    "sliding aggregate",
    "stream join",
)
_SMALL = {"filter and map": "stateless batch", "tumbling aggregate": "aggregate batch"}

Say = Callable[[str], None]


@contextmanager
def _sides(folder: Path) -> Iterator[tuple[Side, Side]]:
    ours = Side("ours", folder / "ours.log")
    stock = Side("stock", folder / "stock.log")
    try:
        yield ours, stock
    finally:
        ours.close()
        stock.close()


def overhead(quick: bool, say: Say, only: str = "") -> Report:
    """Throughput and batch overhead against hand-written PySpark, and what the flagship needs."""
    chosen = chosen_cases(_cases(quick), only)
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as name:
        folder = Path(name)
        bench = _Overhead(folder, quick, say)
        with _sides(folder) as (ours, stock):
            cases = [found for case in chosen for found in case(bench, ours, stock)]
    return Report("overhead", tuple(cases))


def _cases(quick: bool) -> dict[str, Case]:
    """What can be measured, by name; a quick run shows one of each kind that needs few seconds."""
    pipelines = PIPELINES[:1] if quick else PIPELINES
    found: dict[str, Case] = {
        f"throughput, {pipeline}": partial(_Overhead.throughput, pipeline=pipeline)
        for pipeline in pipelines
    }
    for pipeline, case in list(_SMALL.items())[-1 if quick else 0 :]:
        found[f"overhead, {case}"] = partial(_Overhead.small_batches, pipeline=pipeline, case=case)
    if not quick:
        found["flagship"] = lambda bench, ours, stock: flagship_cases(bench.say)
    return found


class _Overhead:
    """The workloads of a run, made when they are first needed, and how each case measures."""

    def __init__(self, folder: Path, quick: bool, say: Say) -> None:
        self.say = say
        self._folder = folder
        self._rounds = 1 if quick else 5
        self._events, self._files = (300_000, 5) if quick else (1_600_000, 16)
        self._batches = 8 if quick else 20

    @cached_property
    def _big(self) -> Path:
        return workload(self._folder / "big", self._events, self._files)

    @cached_property
    def _small(self) -> Path:
        return workload(self._folder / "small", 200 * self._batches, self._batches)

    def throughput(self, ours: Side, stock: Side, pipeline: str) -> Iterator[BenchCase]:
        """One pipeline on both sides, in turn; the first round warms both up."""
        load = Workload(self._big, self._events, self._files)
        answers = self._rounds_of(ours, stock, pipeline, load)
        mine, theirs = (_middle(answers[name][1:]) for name in ("ours", "stock"))
        yield from throughput_cases(pipeline, mine, theirs, load)

    def small_batches(
        self, ours: Side, stock: Side, pipeline: str, case: str
    ) -> Iterator[BenchCase]:
        """What a batch of a few rows takes."""
        load = Workload(self._small, 200 * self._batches, self._batches)
        answers = self._rounds_of(ours, stock, pipeline, load)
        mine, theirs = (
            statistics.median(run["batch_ms"] for run in answers[name][1:])
            for name in ("ours", "stock")
        )
        yield compared(f"overhead, {case}", mine, "ms", theirs, at_most=0.5)
        counts = [answers[name][-1]["batches"] for name in ("ours", "stock")]
        yield equal(f"batches, {case}", counts[0], "batches", counts[1])

    def _rounds_of(
        self, ours: Side, stock: Side, pipeline: str, load: Workload
    ) -> dict[str, list[Answer]]:
        """The answers of all rounds by side, the round that warms both up first."""
        answers: dict[str, list[Answer]] = {"ours": [], "stock": []}
        for number in range(self._rounds + 1):
            for side in (ours, stock) if number % 2 else (stock, ours):
                self.say(f"{pipeline}, round {number} of {self._rounds}, {side.name}")
                answers[side.name].append(side.run(pipeline, load.path, load.events, load.files))
        return answers


Case = Callable[[_Overhead, Side, Side], Iterable[BenchCase]]


def throughput_cases(
    pipeline: str, mine: Answer, theirs: Answer, load: Workload
) -> Iterator[BenchCase]:
    """Rows a second, and whether both sides have done the same: as many batches, as many rows.

    A join is counted by the rows it gives, everything else by those it reads.
    """
    is_join = pipeline == "stream join"
    unit = "joined rows/s" if is_join else "rows/s"
    ours, stock = (
        (side["rows_out"] if is_join else load.rows("bids")) / side["seconds"]
        for side in (mine, theirs)
    )
    yield compared(f"throughput, {pipeline}", ours, unit, stock, at_least=0.95)
    yield equal(f"batches, {pipeline}", mine["batches"], "batches", theirs["batches"])
    rows = f"rows out, {pipeline}"
    if "aggregate" in pipeline:
        yield compared(rows, mine["rows_out"], "rows", theirs["rows_out"], at_least=1.0)
    else:
        yield equal(rows, mine["rows_out"], "rows", theirs["rows_out"])


def _middle(answers: list[Answer]) -> Answer:
    """The answer of median time."""
    return sorted(answers, key=lambda answer: float(answer["seconds"]))[len(answers) // 2]
