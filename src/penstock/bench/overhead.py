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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.bench.flagship import flagship_cases
from penstock.bench.peers.workload import Workload
from penstock.bench.report import BenchCase, Report, compared, equal
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


def overhead(quick: bool, say: Say) -> Report:
    """Throughput and batch overhead against hand-written PySpark, and what the flagship needs."""
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as name:
        folder = Path(name)
        rounds = 1 if quick else 5
        events, files = (300_000, 5) if quick else (1_600_000, 16)
        big = workload(folder / "big", events, files)
        batches = 8 if quick else 20
        small = workload(folder / "small", 200 * batches, batches)
        with _sides(folder) as (ours, stock):
            cases = [
                *_throughput(ours, stock, big, events, files, rounds, quick, say),
                *_small_batches(ours, stock, small, batches, rounds, quick, say),
            ]
    return Report("overhead", (*cases, *([] if quick else flagship_cases(say))))


def _throughput(
    ours: Side, stock: Side, path: Path, events: int, files: int, rounds: int, quick: bool, say: Say
) -> Iterator[BenchCase]:
    for pipeline in PIPELINES[:1] if quick else PIPELINES:
        answers: dict[str, list[Answer]] = {"ours": [], "stock": []}
        for number in range(rounds + 1):
            for side in (ours, stock) if number % 2 else (stock, ours):
                say(f"{pipeline}, round {number} of {rounds}, {side.name}")
                answers[side.name].append(side.run(pipeline, path, events, files))
        # The first round warms both sides up.
        mine, theirs = (_middle(answers[name][1:]) for name in ("ours", "stock"))
        yield from throughput_cases(pipeline, mine, theirs, Workload(path, events, files))


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


def _small_batches(
    ours: Side, stock: Side, path: Path, batches: int, rounds: int, quick: bool, say: Say
) -> Iterator[BenchCase]:
    for pipeline, case in list(_SMALL.items())[-1 if quick else 0 :]:
        measured: dict[str, list[Answer]] = {"ours": [], "stock": []}
        for number in range(rounds + 1):
            for side in (ours, stock) if number % 2 else (stock, ours):
                say(f"{case}, round {number} of {rounds}, {side.name}")
                measured[side.name].append(side.run(pipeline, path, 200 * batches, batches))
        mine, theirs = (
            statistics.median(run["batch_ms"] for run in measured[name][1:])
            for name in ("ours", "stock")
        )
        yield compared(f"overhead, {case}", mine, "ms", theirs, at_most=0.5)
        counts = [measured[name][-1]["batches"] for name in ("ours", "stock")]
        yield equal(f"batches, {case}", counts[0], "batches", counts[1])
