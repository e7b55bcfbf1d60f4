"""What it costs to hand rows from one fragment to the next, on one node and between two."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass

from penstock.bench.costs import keep_costs
from penstock.bench.report import BenchCase, Report, compared, limited, machine
from penstock.load.costs import TRANSFER, measured_costs
from penstock.studies.live_system import LiveSystem, Watched, live_system

Say = Callable[[str], None]

_ALONE, _TOGETHER, _APART = LAYOUTS = ("one fragment", "two fragments of a node", "two nodes")
_RATE_PER_S = 20_000
_PACED_PER_S = 1_000
_CHAIN = {
    "large": "SELECT ts, src, dst, bytes FROM packets WHERE bytes > 50",
    "counted": "SELECT ts, src, dst, bytes * 8 AS bits FROM large WHERE bytes > 60",
}
_FIRST, _SECOND = _CHAIN


@dataclass(frozen=True)
class Run:
    """A layout at work on an input that ends: rows in a second, microseconds of work a row."""

    rows_per_s: float
    cost_us: float


def hop(quick: bool, say: Say) -> Report:
    """Throughput, latency and work of a chain of two steps, laid out in three ways."""
    rounds, rows, seconds = (1, 300_000, 5) if quick else (5, 2_000_000, 30)
    runs: dict[str, list[Run]] = {layout: [] for layout in LAYOUTS}
    with live_system(2) as live:
        for number in range(rounds + 1):
            for layout in LAYOUTS:
                say(f"throughput, {layout}, round {number} of {rounds}")
                runs[layout].append(_run(live, layout, rows, say))
        latencies_s = {layout: _latency_s(live, layout, seconds, say) for layout in LAYOUTS}
    # The first round warms the nodes up.
    known = {layout: found[1:] for layout, found in runs.items()}
    report = Report("hop", (*_throughput(known), *_latency(latencies_s), *_work(known)))
    if not quick and machine() == measured_costs().machine:
        keep_costs({case.case: case.value for case in report.cases}, (TRANSFER,))
    return report


def _throughput(runs: dict[str, list[Run]]) -> list[BenchCase]:
    found = {name: statistics.median(run.rows_per_s for run in of) for name, of in runs.items()}
    return _beside("throughput", found, "rows/s")


def _latency(latencies_s: dict[str, float]) -> list[BenchCase]:
    return _beside("latency p50", latencies_s, "s")


def _beside(what: str, found: dict[str, float], unit: str) -> list[BenchCase]:
    alone = found[_ALONE]
    rest = [compared(f"{what}, {layout}", found[layout], unit, alone) for layout in LAYOUTS[1:]]
    return [limited(f"{what}, {_ALONE}", alone, unit), *rest]


def _work(runs: dict[str, list[Run]]) -> list[BenchCase]:
    cost_us = {name: statistics.median(run.cost_us for run in of) for name, of in runs.items()}
    return [
        limited("hop", max(0.0, cost_us[_TOGETHER] - cost_us[_ALONE]), "us/row"),
        limited(TRANSFER, max(0.0, cost_us[_APART] - cost_us[_TOGETHER]), "us/row"),
    ]


def deployments(layout: str, source: str) -> tuple[str, ...]:
    """What to submit for a layout: one file for a chain in one fragment, one for each step else."""
    streams = f"streams:\n  packets:\n    source: {{{source}}}\n    lateness: 1s\n"
    nodes = dict.fromkeys(_CHAIN, "n1") | ({_SECOND: "n2"} if layout == _APART else {})
    queries = {
        name: f"  {name}: {{sql: '{sql}', on: {nodes[name]}}}\n" for name, sql in _CHAIN.items()
    }
    if layout == _ALONE:
        inner = queries[_FIRST].replace("}\n", ", to: none}\n")
        return (f"{streams}queries:\n{inner}{queries[_SECOND]}",)
    return (f"{streams}queries:\n{queries[_FIRST]}", f"queries:\n{queries[_SECOND]}")


def _watched(
    live: LiveSystem, layout: str, source: str, seconds: float | None, say: Say
) -> Watched:
    *before, last = deployments(layout, source)
    live.channel("packets")
    for text in before:
        live.client.submit("first", "yaml", text, ".")
    seen = live.watch("last", last, ["packets", _SECOND], seconds, say)
    if before:
        live.client.drop("first")
    return seen


def _run(live: LiveSystem, layout: str, rows: int, say: Say) -> Run:
    source = f"generate: packets, rate: {_RATE_PER_S}, hosts: 200, seconds: {rows // _RATE_PER_S}"
    seen = _watched(live, layout, source, None, say)
    start_s = min(row.at_s for row in seen.delivered if row.query == "packets")
    end_s = max(row.at_s for row in seen.delivered if row.query == _SECOND)
    spent_ms = sum(
        max((look.units[unit].cpu_ms for look in seen.looks if unit in look.units), default=0.0)
        for unit in ("packets", *_CHAIN)
    )
    return Run(rows / (end_s - start_s), 1_000 * spent_ms / rows)


def _latency_s(live: LiveSystem, layout: str, seconds: float, say: Say) -> float:
    say(f"latency, {layout}")
    source = f"generate: packets, rate: {_PACED_PER_S}, hosts: 200, speedup: 1"
    seen = _watched(live, layout, source, 2 * seconds, say)
    # Queries have started by then.
    late = seen.since(seen.looks[0].at_s + seconds)
    return statistics.median(row.latency_s for row in late.delivered if row.query == _SECOND)
