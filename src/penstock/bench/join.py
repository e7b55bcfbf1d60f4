"""The window join against Spark's own, with both of its state stores, in turn, in one run.

All sides read the same Parquet files, one of each stream in a batch, on as many cores and with as
much memory, and write Parquet. Short runs are repeated, and the median counts. Rows counted are
input rows joined, of both streams. Ours first takes the streams into their channels, whose time
counts, and then joins. The report says how many batches there were and what came out, and is not
ok where that differs.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pyarrow.parquet as pq

from penstock.bench.join_kernel import JoinCase
from penstock.bench.report import BenchCase, Report, chosen_cases, compared, equal, limited
from penstock.bench.side import Answer, Side

Say = Callable[[str], None]
_WORKER = "penstock.bench.peers.join_worker"
_GOALS = {"memory": 6.0, "rocksdb": 12.0}
_STORES = {"memory": "Spark in memory", "rocksdb": "Spark with RocksDB"}
_ROWS = {100_000: 2_000_000, 10_000: 1_000_000}
"""By the rows of a batch: Spark takes five times as long for the same rows in small batches."""
_TURNS, _ENOUGH_S = 3, 15.0
"""A side has another turn while its runs have taken less than that together: a neighbour on the
machine, or code that is not warm yet, counts for more in a short run."""


def cases(quick: bool) -> tuple[JoinCase, ...]:
    """What is joined: windows, skews and sizes of batches."""
    if quick:
        return (JoinCase(5_000, 6, 0.7, 20_000, 120_000),)
    return tuple(
        JoinCase(rate, window_s, b, batch_rows, rows)
        for rate, window_s, b in (
            (5_000, 60, 0.5),
            (5_000, 60, 0.6),
            (5_000, 60, 0.7),
            (5_000, 6, 0.8),
            (1_000, 600, 0.7),
        )
        for batch_rows, rows in _ROWS.items()
    )


def join(quick: bool, say: Say, only: str = "") -> Report:
    """Rows a second, what is held, and how batch times develop, beside Spark's own join."""
    chosen = chosen_cases({case.name: case for case in cases(quick)}, only)
    found: list[BenchCase] = []
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as name, ExitStack() as stack:
        folder = Path(name)
        sides = {
            side: stack.enter_context(closing(Side(side, folder / f"{side}.log", _WORKER)))
            for side in ("ours", *_GOALS)
        }
        for side in sides.values():
            say(f"warming up {side.name}")
            _ask(side, JoinCase(5_000, 2, 0.6, 10_000, 40_000), folder)
        for case in chosen:
            found += _measured(sides, case, folder, say)
    return Report("join", tuple(found))


def _measured(
    sides: dict[str, Side], case: JoinCase, folder: Path, say: Say
) -> Iterator[BenchCase]:
    answers: dict[str, list[Answer]] = {name: [] for name in sides}
    for turn in range(_TURNS):
        for name, side in sides.items():
            if not turn or sum(answer["seconds"] for answer in answers[name]) < _ENOUGH_S:
                say(f"{case.name}: {name}")
                answers[name].append(_ask(side, case, folder))
    yield from compared_cases(case, {name: median_run(runs) for name, runs in answers.items()})


def median_run(answers: list[Answer]) -> Answer:
    """The run of median length; of two the longer one.

    >>> median_run([{"seconds": 3}, {"seconds": 9}, {"seconds": 4}])
    {'seconds': 4}
    """
    return sorted(answers, key=lambda answer: float(answer["seconds"]))[len(answers) // 2]


def _ask(side: Side, case: JoinCase, folder: Path) -> Answer:
    path = folder / case.name.replace(" ", "").replace("/", "").replace(",", "_")
    if not path.exists():
        for name, tables in zip(("l", "r"), case.sides(), strict=True):
            (path / name).mkdir(parents=True)
            for number, table in enumerate(tables):
                pq.write_table(table, path / name / f"{number:05d}.parquet")
    return side.ask({"path": str(path), "window_s": case.window_s, "batch_rows": case.batch_rows})


def compared_cases(case: JoinCase, answers: dict[str, Answer]) -> Iterator[BenchCase]:
    """The figures of a case, from what each side says."""
    ours = answers["ours"]
    for name, goal in _GOALS.items():
        theirs, label = answers[name], f"{case.name}: over {_STORES[name]}"
        yield compared(
            label, case.rows / ours["seconds"], "rows/s", case.rows / theirs["seconds"],
            at_least=goal,
        )  # fmt: skip
        yield equal(f"{label}, batches", ours["batches"], "batches", theirs["batches"])
        yield equal(f"{label}, pairs", ours["pairs"], "rows", theirs["pairs"])
        yield equal(f"{label}, digest", ours["digest"], "", theirs["digest"])
        yield compared(f"{label}, held", _held(ours), "bytes a row of the windows", _held(theirs))
        peaks = (side["peak_bytes"] / (1 << 30) for side in (ours, theirs))
        yield compared(f"{label}, peak memory", next(peaks), "GiB", next(peaks))
    yield limited(f"{case.name}: batches, median", _median(ours["batch_ms"]), "ms")
    yield limited(f"{case.name}: batches, last third over second", _growth(ours["batch_ms"]), "")


def _held(answer: Answer) -> float:
    return answer["held_bytes"] / answer["held_rows"] if answer["held_rows"] else 0.0


def _median(times_ms: list[float]) -> float:
    return statistics.median(times_ms) if times_ms else 0.0


def _growth(times_ms: list[float]) -> float:
    """How much longer batches take at the end than in the middle: 1 where they stay the same."""
    third = len(times_ms) // 3
    if not third:
        return 1.0
    return _median(times_ms[2 * third :]) / max(1e-9, _median(times_ms[third : 2 * third]))
