"""What a hop costs: a chain as one fragment, as two on one node, and as two on two nodes."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from penstock.bench.report import Case, Report, compared, limited
from penstock.spark.peers.compiled import deployment_text
from penstock.spark.peers.workload import Workload
from penstock.studies.live_system import LiveSystem, Watched, live_system

Say = Callable[[str], None]

_STEP = "SELECT auction, bidder, price, ts FROM bids WHERE price % 10 < 9"
_SUMS = (
    "SELECT bidder, window.end AS at, count(*) AS bids, sum(price) AS spent FROM {0} "
    "GROUP BY bidder, window(ts, '10 seconds')"
)
LAYOUTS: Mapping[str, tuple[str, str]] = {
    "one fragment": ("", "n1"),
    "two fragments of one node": ("n1", "n1"),
    "two nodes": ("n1", "n2"),
}
"""Where the filter runs on its own, if it does, and where the aggregate."""

_PACED = 2_000


def hop(quick: bool, say: Say) -> Report:
    """Throughput, processor time and latency of the three, in one run."""
    events, files, seconds = (600_000, 6, 20.0) if quick else (6_000_000, 30, 60.0)
    cases: list[Case] = []
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as name, live_system(2) as live:
        workload = Workload(Path(name) / "events", events, files)
        workload.write()
        whole = {
            layout: _whole(live, workload, *nodes, _said(layout, say))
            for layout, nodes in LAYOUTS.items()
        }
        paced = {
            layout: _paced(live, *nodes, seconds, _said(layout, say))
            for layout, nodes in LAYOUTS.items()
        }
    cases += _compared("throughput", "rows/s", {one: made[0] for one, made in whole.items()})
    cases += _compared("processor time", "us/row", {one: made[1] for one, made in whole.items()})
    cases += _compared("latency p50", "s", paced)
    first, second, third = (whole[layout][1] for layout in LAYOUTS)
    cases.append(limited("a hop, processor time", max(0.0, second - first), "us/row"))
    cases.append(limited("a hop to another node, beyond that", max(0.0, third - second), "us/row"))
    return Report("hop", tuple(cases))


def _said(layout: str, say: Say) -> Say:
    return lambda text: say(f"{layout}: {text}")


def _compared(what: str, unit: str, found: Mapping[str, float]) -> Iterator[Case]:
    base = found["one fragment"]
    for layout, value in found.items():
        if layout == "one fragment":
            yield limited(f"{what}, {layout}", value, unit)
        else:
            yield compared(f"{what}, {layout}", value, unit, base)


def _queries(first: str, second: str) -> str:
    if not first:
        inner = f"({_STEP}) step"
        return f'queries:\n  result: {{sql: "{_SUMS.format(inner)}", on: {second}}}\n'
    return (
        f'queries:\n  step: {{sql: "{_STEP}", on: {first}}}\n'
        f'  result: {{sql: "{_SUMS.format("step")}", on: {second}}}\n'
    )


def _whole(
    live: LiveSystem, workload: Workload, first: str, second: str, say: Say
) -> tuple[float, float]:
    """Rows in a second and processor time of a row, over input that is all there."""
    text = deployment_text(_queries(first, second), workload)
    # Once to warm up: the first run of a plan in a node compiles it.
    for _ in range(2):
        seen = live.watch("hop", text, _names(first), None, say)
    took_s = seen.delivered[-1].at_s - seen.submitted_s
    rows = workload.rows("bids")
    spent_ms = sum(float(one.get("cpu_ms", 0.0)) for one in seen.looks[-1].fragments.values())
    return rows / took_s, 1_000 * spent_ms / rows


def _names(first: str) -> list[str]:
    return ["result", *(["step"] if first else [])]


def _paced(live: LiveSystem, first: str, second: str, seconds: float, say: Say) -> float:
    """The median latency of results of input that comes bit by bit."""
    text = (
        "streams:\n  bids:\n"
        f"    source: {{generate: nexmark.bids, rate: {_PACED}, speedup: 1}}\n    lateness: 1s\n"
        + _queries(first, second)
    )
    seen: Watched = live.watch("hop", text, _names(first), seconds, say)
    settled = seen.since(seen.looks[0].at_s + seconds / 2)
    known = [one.latency_s for one in settled.delivered if one.query == "result"]
    return statistics.median(known) if known else float("nan")
