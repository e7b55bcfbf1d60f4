"""How many windowed aggregates a node of two cores carries: light, native, and stock Spark.

Every case is a process of its own over the same rows, 2,000 a second, with rounds of 2.5 s. Light
ones are members of a bundle. Results of light and native ones are kept for readers, those of stock
Spark go to Parquet files, those of Flink to CSV files.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.bench.density_load import LIMIT_S
from penstock.bench.peers.flink_density import flink_python
from penstock.bench.report import BenchCase, Report, chosen_cases, compared, limited
from penstock.bench.sub_process import run_module
from penstock.errors import RunError

Say = Callable[[str], None]
_GIBIBYTE = 1 << 30
PEERS = ("flink",)
"""Beside whom it can be measured as well, where they are installed."""
CHAIN = "chain of three windows"
_CORES_AT_MOST = {24: 0.2, 200: 0.35, 1_000: 1.2}
_MEMORY_AT_MOST_GIB = {1_000: 2.0}


@dataclass(frozen=True)
class Used:
    """What a side used with so many queries; latencies are None where it gave no result."""

    cores: float
    memory_bytes: float
    p50_s: float | None
    p99_s: float | None
    results: int


def density(quick: bool, say: Say, only: str = "", peers: Sequence[str] = ()) -> Report:
    """CPU, memory and latency of many aggregates, beside the same as queries of their own."""
    if "flink" in peers:
        flink_python()
    warm_up_s, measured_s = (20.0, 10.0) if quick else (60.0, 60.0)
    counts: tuple[int | str, ...] = (24, CHAIN) if quick else (1, 24, 200, 1_000, CHAIN)
    named = {CHAIN if queries == CHAIN else f"{queries:,} queries": queries for queries in counts}
    cases: list[BenchCase] = []
    for queries in chosen_cases(named, only):
        if isinstance(queries, str):
            cases += _chain_cases(warm_up_s, measured_s, say)
            continue
        light = _measure("light", queries, warm_up_s, measured_s, say)
        cases += _light_cases(queries, light)
        # One query a stream is where both others fit; beyond 24 neither does.
        own = () if quick or queries > 24 else ("native", "stock")
        for side in (*own, *peers):
            other = _measure(side, queries, warm_up_s, measured_s, say)
            cases += _beside(queries, light, side, other)
    return Report("density", tuple(cases))


def _beside(queries: int, light: Used, side: str, other: Used) -> Iterator[BenchCase]:
    named = f"{queries:,} queries, light of {side}"
    yield compared(f"{named}, processor", light.cores, "cores", other.cores)
    ours, theirs = (used.memory_bytes / _GIBIBYTE for used in (light, other))
    yield compared(f"{named}, memory", ours, "GiB", theirs)


def _chain_cases(warm_up_s: float, measured_s: float, say: Say) -> Iterator[BenchCase]:
    """Three windows in a row: how old rows are when the last one gives its results."""
    light, native = (
        _measure(side, "chain", warm_up_s, measured_s, say) for side in ("light", "native")
    )
    for name, ours, theirs in (
        ("p50", light.p50_s, native.p50_s),
        ("p99", light.p99_s, native.p99_s),
    ):
        if ours is None or theirs is None:
            raise RunError("a chain of three windows gave no result while it was measured")
        named = f"{CHAIN}, latency {name}, light of native"
        yield compared(named, ours, "s", theirs, at_most=0.5)


def _light_cases(queries: int, used: Used) -> list[BenchCase]:
    if used.p99_s is None:
        raise RunError(f"{queries} light queries gave no result while they were measured")
    named = f"{queries:,} queries"
    gibibytes = used.memory_bytes / _GIBIBYTE
    return [
        limited(f"{named}, light", used.cores, "cores", _CORES_AT_MOST.get(queries)),
        limited(f"{named}, memory", gibibytes, "GiB", _MEMORY_AT_MOST_GIB.get(queries)),
        limited(f"{named}, latency p50", used.p50_s or 0.0, "s"),
        limited(f"{named}, latency p99", used.p99_s, "s", LIMIT_S),
    ]


def _measure(side: str, queries: int | str, warm_up_s: float, measured_s: float, say: Say) -> Used:
    say(f"{queries} queries, {side}" if isinstance(queries, int) else f"{queries}, {side}")
    given = (side, str(queries), str(warm_up_s), str(measured_s))
    return Used(**_run_side("penstock.bench.density_side", *given))


def _run_side(module: str, *arguments: str) -> Any:
    """What a module prints when it is run as a process in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        return run_module(module, *arguments, folder)
