"""Plans at work: aggregates over packet streams on real nodes, at rates that grow to overload.

The source ran 160 aggregates over ten substreams of a packet trace on five machines, and so does
this: as light fragments on five nodes of a core each. The aggregates are of the source's kinds. The
substreams are stretches of recordings: packets come as often as records did. Every plan is run at
rates that grow until it is overloaded, several times, each time with other stretches. Nodes need a
core each and some to spare for what brings streams in; where there are fewer, they compete for
them, and what is overloaded first is the machine.
"""

from __future__ import annotations

import math
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import psutil
from scipy.stats import t as student

from penstock.studies.figures import Figure
from penstock.studies.live_system import LiveSystem, Watched, live_system
from penstock.studies.recording import Stretch, replayed, write_packets
from penstock.studies.report import ResultTable, Row, Runner, Say, StudyReport, Value
from penstock.studies.running import one_by_one

STRATEGIES = ("rod", "largest-load", "connected", "random", "max-rate")
_MULTIPLIERS = (1.0, 2.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0)
_RUNS = 3
_WARM_S, _MEASURED_S = 30.0, 40.0
_MAX_LATENCY_S = 20
_SPARE_S = 20
_STRETCH_S = 150
_SURE = 0.95
ROUND_S = _MAX_LATENCY_S / 4

_KEYS = {"source": "src", "target": "dst", "pair": "src, dst", "protocol": "protocol"}
_WINDOWS = {
    "second": "window(ts, '1 second')",
    "last_10s": "window(ts, '10 seconds', '2 seconds')",
    "minute": "window(ts, '1 minute')",
    "last_minute": "window(ts, '1 minute', '15 seconds')",
}
AGGREGATES = {
    f"{window}_by_{key}": (_KEYS[key], _WINDOWS[window]) for window, key in product(_WINDOWS, _KEYS)
}
"""Keys and window of aggregates by name; all count packets and their mean size."""


@dataclass(frozen=True)
class Traffic:
    """A workload: nodes, where its substreams were recorded, and the aggregates over each.

    ``rate_per_s`` are the packets of each substream at a multiplier of 1.
    """

    nodes: int
    substreams: tuple[Stretch, ...]
    aggregates: Mapping[str, tuple[str, str]]
    rate_per_s: int

    def query_names(self) -> list[str]:
        """The names of all its queries."""
        return [
            f"{name}_{number}" for number in range(len(self.substreams)) for name in self.aggregates
        ]

    def write(self, folder: Path, multiplier: float, seconds: float, run: int = 0) -> None:
        """Writes what it reads at a multiplier, unless it is there."""
        for number, stretch in enumerate(self.substreams):
            path = self.substream(folder, number, multiplier, run)
            if path.exists():
                continue
            moved = Stretch(stretch.log, stretch.start_s + run * _STRETCH_S)
            counts = moved.rates_per_s(int(seconds) + _SPARE_S, self.rate_per_s * multiplier)
            write_packets(path, counts, seed=number + run * len(self.substreams))

    def substream(self, folder: Path, number: int, multiplier: float, run: int) -> Path:
        """The file of a substream."""
        return folder / f"packets-{number}-{multiplier:g}-{run}.parquet"

    def deployment(self, folder: Path, strategy: str, multiplier: float, run: int = 0) -> str:
        """The workload as a deployment file that reads its substreams from a folder."""
        streams = "".join(
            replayed(f"packets_{number}", self.substream(folder, number, multiplier, run))
            for number in range(len(self.substreams))
        )
        queries = "".join(
            f"  {name}_{number}:\n"
            f'    sql: "SELECT {keys}, window.end AS at, count(*) AS packets, avg(bytes) AS size '
            f'FROM packets_{number} GROUP BY {keys}, {window}"\n'
            f"    max_latency: {_MAX_LATENCY_S}s\n"
            for number in range(len(self.substreams))
            for name, (keys, window) in self.aggregates.items()
        )
        return f"streams:\n{streams}queries:\n{queries}placement: {strategy}\n"


FULL = Traffic(
    nodes=5,
    substreams=tuple(
        Stretch(log, start_s) for log, start_s in product(("dns", "ssl"), (0, 200, 400, 600, 800))
    ),
    aggregates=AGGREGATES,
    rate_per_s=1_000,
)
SMALL = Traffic(
    nodes=2,
    substreams=(Stretch("dns", 0), Stretch("dns", 400), Stretch("dns", 800)),
    aggregates={
        name: AGGREGATES[name]
        for name in (
            "second_by_source",
            "minute_by_pair",
            "last_10s_by_source",
            "last_minute_by_pair",
        )
    },
    rate_per_s=6_000,
)
_COLUMNS = (
    "run",
    "strategy",
    "multiplier",
    "mean_utilisation",
    "max_utilisation",
    "mean_latency_s",
    "max_latency_s",
    "batches",
    "backlog_growth",
    "overloaded",
)


def study(quick: bool, say: Say, run: Runner = one_by_one) -> StudyReport:
    """Runs every plan at growing rates, one after the other: they share the machine."""
    traffic, runs = (SMALL, 1) if quick else (FULL, _RUNS)
    strategies = STRATEGIES[:2] if quick else STRATEGIES
    multipliers = _MULTIPLIERS[2:3] if quick else _MULTIPLIERS
    warm_s, measured_s = (4.0, 8.0) if quick else (_WARM_S, _MEASURED_S)
    rows: list[tuple[Value, ...]] = []
    with workload(traffic) as (system, folder):
        point = _Point(system, traffic, folder, warm_s, measured_s, say)
        say("warming up")
        point.measure(strategies[0], multipliers[0], 0)
        for number in range(runs):
            for strategy in strategies:
                for multiplier in multipliers:
                    found = point.measure(strategy, multiplier, number)
                    rows.append((number, strategy, multiplier, *found))
                    if found[-1]:
                        break
    table = ResultTable("traffic", _COLUMNS, tuple(rows))
    return StudyReport(
        "traffic",
        tuple(_findings(table)),
        (table,),
        _drawn(),
        _setup(traffic, runs, warm_s, measured_s),
    )


@dataclass(frozen=True)
class _Point:
    """How a plan is run at a rate."""

    system: LiveSystem
    traffic: Traffic
    folder: Path
    warm_s: float
    measured_s: float
    say: Say

    def measure(self, strategy: str, multiplier: float, run: int) -> tuple[Value, ...]:
        """What came of it."""
        self.say(f"run {run + 1}, {strategy} at {multiplier:g}")
        seconds = self.warm_s + self.measured_s
        seen = watched(
            self.system, self.traffic, self.folder, strategy, multiplier, seconds, self.say, run
        )
        return _figures(self.system, seen.since(seen.looks[0].at_s + self.warm_s))


@contextmanager
def workload(traffic: Traffic) -> Iterator[tuple[LiveSystem, Path]]:
    """A running system, and a folder for what the workload reads."""
    with (
        tempfile.TemporaryDirectory(prefix="penstock-study-") as name,
        live_system(traffic.nodes) as system,
    ):
        yield system, Path(name)


def watched(
    system: LiveSystem,
    traffic: Traffic,
    folder: Path,
    strategy: str,
    multiplier: float,
    seconds: float,
    say: Say,
    run: int = 0,
) -> Watched:
    """The workload at work, placed by one strategy."""
    traffic.write(folder, multiplier, seconds, run)
    text = traffic.deployment(folder, strategy, multiplier, run)
    return system.watch(strategy.replace("-", "_"), text, traffic.query_names(), seconds, say)


def _figures(system: LiveSystem, seen: Watched) -> tuple[Value, ...]:
    used = [seen.mean_utilisation(node) for node in system.nodes]
    latencies = seen.latencies_s()
    backlog = seen.backlog_rows()
    half = len(backlog) // 2
    growth = _mean(backlog[half:]) / max(1.0, _mean(backlog[:half]))
    mean_s = _mean(latencies)
    return (
        round(_mean(used), 3),
        round(max(used), 3),
        round(mean_s, 2),
        round(max(latencies, default=0.0), 2),
        len(latencies),
        round(growth, 2),
        int(not latencies or mean_s > _MAX_LATENCY_S),
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _findings(table: ResultTable) -> list[Row]:
    """The source's claims as far as the runs show them: who is overloaded first."""
    found = []
    runs = list(dict.fromkeys(table.column("run")))
    rivals = [name for name in dict.fromkeys(table.column("strategy")) if name != "rod"]
    rod = [_overload_point(table.where(run=number), "rod") for number in runs]
    for rival in rivals:
        others = [_overload_point(table.where(run=number), str(rival)) for number in runs]
        more = [ours - theirs for ours, theirs in zip(rod, others, strict=True)]
        mean, margin = _mean(more), confidence_margin(more)
        found.append(
            Row(
                f"rod takes at least the rate that {rival} takes (its last multiplier, ours)",
                None,
                round(_mean(rod), 3),
                agrees=mean + margin >= 0,
                note=f"{rival}: {_mean(others):.3g}; rod takes {mean:.3g} ± {margin:.2g} more",
            )
        )
    return found


def confidence_margin(values: Sequence[float]) -> float:
    """By how much the mean of a sample may be off, at 95 %; 0 where there is only one.

    >>> round(confidence_margin([1.0, 2.0, 3.0]), 2)
    2.48
    """
    if len(values) < 2:
        return 0.0
    spread = statistics.stdev(values) / math.sqrt(len(values))
    return float(student.ppf((1 + _SURE) / 2, len(values) - 1)) * spread


def _overload_point(table: ResultTable, strategy: str) -> float:
    """The last multiplier at which a plan keeps up, going up from the first; 0 if at none."""
    reached = 0.0
    for row in table.where(strategy=strategy).rows:
        if row[table.columns.index("overloaded")]:
            break
        reached = float(row[table.columns.index("multiplier")] or 0.0)
    return reached


def _drawn() -> tuple[Figure, ...]:
    return (
        Figure(
            "traffic-latency",
            "traffic",
            "multiplier",
            "mean_latency_s",
            "strategy",
            title="Latency of results",
            x_label="rate multiplier",
            y_label="mean latency, s",
            log_y=True,
        ),
        Figure(
            "traffic-utilisation",
            "traffic",
            "multiplier",
            "max_utilisation",
            "strategy",
            title="The busiest node",
            x_label="rate multiplier",
            y_label="utilisation",
        ),
    )


def _setup(traffic: Traffic, runs: int, warm_s: float, measured_s: float) -> str:
    return (
        f"{traffic.nodes} nodes of one core on one machine of {psutil.cpu_count()}, "
        f"{len(traffic.substreams)} packet streams that come as recorded logs did, scaled to "
        f"{traffic.rate_per_s:,} packets a second times the multiplier, {len(traffic.aggregates)} "
        f"aggregates over each, results within {_MAX_LATENCY_S} s wanted (a round every "
        f"{ROUND_S:g} s). Each plan at growing rates until it is overloaded, {runs} times with "
        f"other stretches of the logs. Measured for {measured_s:g} s after {warm_s:g} s. Latency: "
        "from the entry of the oldest row of a batch until its results are out. A plan is "
        "overloaded when the mean latency is above what is wanted."
    )
