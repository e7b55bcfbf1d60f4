"""What Penstock costs over Spark by hand: the same pipelines on both sides, in turn, in one run."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.bench.flagship import flagship_cases
from penstock.bench.report import Case, Report, compared
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
) -> Iterator[Case]:
    for pipeline in PIPELINES[:1] if quick else PIPELINES:
        answers: dict[str, list[Answer]] = {"ours": [], "stock": []}
        for number in range(rounds + 1):
            for side in (ours, stock) if number % 2 else (stock, ours):
                say(f"{pipeline}, round {number} of {rounds}, {side.name}")
                answers[side.name].append(side.run(pipeline, path, events, files))
        # The first round warms both sides up.
        mine, theirs = (_best(answers[name][1:]) for name in ("ours", "stock"))
        yield compared(
            f"throughput, {pipeline}", events / mine, "events/s", events / theirs, at_least=0.95
        )


def _best(answers: list[Answer]) -> float:
    return statistics.median(answer["seconds"] for answer in answers)


def _small_batches(
    ours: Side, stock: Side, path: Path, batches: int, rounds: int, quick: bool, say: Say
) -> Iterator[Case]:
    for pipeline, case in list(_SMALL.items())[-1 if quick else 0 :]:
        measured: dict[str, list[float]] = {"ours": [], "stock": []}
        for number in range(rounds + 1):
            for side in (ours, stock) if number % 2 else (stock, ours):
                say(f"{case}, round {number} of {rounds}, {side.name}")
                measured[side.name].append(
                    side.run(pipeline, path, 200 * batches, batches)["batch_ms"]
                )
        mine, theirs = (statistics.median(measured[name][1:]) for name in ("ours", "stock"))
        yield compared(f"overhead, {case}", mine, "ms", theirs, at_most=0.5)
