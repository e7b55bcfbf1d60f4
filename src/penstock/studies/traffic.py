"""Plans at work: aggregates over packet streams on real nodes, at rates that grow to overload.

The source ran 160 aggregates over ten substreams of a packet trace on five machines. Here are
twelve over three on two nodes of a core each, because every fragment costs a batch every few
seconds, whatever it aggregates; the aggregates are of the source's kinds. The substreams are
stretches of a recording: packets come as often as its records did.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from penstock.studies.figures import Figure
from penstock.studies.live_system import LiveSystem, Watched, live_system
from penstock.studies.recording import Stretch, replayed, write_packets
from penstock.studies.report import Row, Runner, Say, StudyReport, Table, Value
from penstock.studies.running import one_by_one

STRATEGIES = ("rod", "largest-load", "connected", "random", "max-rate")
NODES = 2
_SUBSTREAMS = (Stretch("dns", 0), Stretch("dns", 400), Stretch("dns", 800))
RATE_PER_S = 6_000
_MULTIPLIERS = (4.0, 8.0, 12.0)
_WARM_S, _MEASURED_S = 40.0, 40.0
_MAX_LATENCY_S = 20
_SPARE_S = 20
ROUND_S = _MAX_LATENCY_S / 4
_COLUMNS = (
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
AGGREGATES = {
    "second_by_source": ("src", "window(ts, '1 second')"),
    "minute_by_pair": ("src, dst", "window(ts, '1 minute')"),
    "last_10s_by_source": ("src", "window(ts, '10 seconds', '2 seconds')"),
    "last_minute_by_pair": ("src, dst", "window(ts, '1 minute', '15 seconds')"),
}
"""Keys and window of the aggregates over each substream; all count packets and their mean size."""


def write_substreams(folder: Path, multipliers: Iterable[float], seconds: float) -> None:
    """Writes what the workload reads at each of these multipliers."""
    for multiplier in multipliers:
        for number, stretch in enumerate(_SUBSTREAMS):
            counts = stretch.rates_per_s(int(seconds) + _SPARE_S, RATE_PER_S * multiplier)
            write_packets(_substream(folder, number, multiplier), counts, seed=number)


def _substream(folder: Path, number: int, multiplier: float) -> Path:
    return folder / f"packets-{number}-{multiplier:g}.parquet"


def deployment(
    folder: Path, strategy: str, multiplier: float, aggregates: Sequence[str] = tuple(AGGREGATES)
) -> str:
    """The workload as a deployment file that reads its substreams from a folder."""
    streams = "".join(
        replayed(f"packets_{number}", _substream(folder, number, multiplier))
        for number in range(len(_SUBSTREAMS))
    )
    queries = "".join(
        f"  {name}_{number}:\n"
        f'    sql: "SELECT {keys}, window.end AS at, count(*) AS packets, avg(bytes) AS size '
        f'FROM packets_{number} GROUP BY {keys}, {window}"\n'
        f"    max_latency: {_MAX_LATENCY_S}s\n"
        for number in range(len(_SUBSTREAMS))
        for name in aggregates
        for keys, window in [AGGREGATES[name]]
    )
    return f"streams:\n{streams}queries:\n{queries}placement: {strategy}\n"


def query_names(aggregates: Sequence[str] = tuple(AGGREGATES)) -> list[str]:
    return [f"{name}_{number}" for number in range(len(_SUBSTREAMS)) for name in aggregates]


def study(quick: bool, say: Say, run: Runner = one_by_one) -> StudyReport:
    """Runs every plan at every rate, one after the other: they share the machine."""
    strategies = STRATEGIES[:2] if quick else STRATEGIES
    multipliers = _MULTIPLIERS[:1] if quick else _MULTIPLIERS
    warm_s, measured_s = (4.0, 8.0) if quick else (_WARM_S, _MEASURED_S)
    rows: list[tuple[Value, ...]] = []
    with workload(multipliers, warm_s + measured_s) as (system, folder):
        say("warming up")
        watched(system, folder, strategies[0], multipliers[0], warm_s, say)
        for multiplier in multipliers:
            for strategy in strategies:
                say(f"{strategy} at {multiplier:g}")
                seen = watched(system, folder, strategy, multiplier, warm_s + measured_s, say)
                first_s = seen.looks[0].at_s
                rows.append((strategy, multiplier, *_figures(system, seen.since(first_s + warm_s))))
    table = Table("traffic", _COLUMNS, tuple(rows))
    return StudyReport(
        "traffic", tuple(_findings(table)), (table,), _drawn(), _setup(warm_s, measured_s)
    )


@contextmanager
def workload(multipliers: Iterable[float], seconds: float) -> Iterator[tuple[LiveSystem, Path]]:
    """A running system, and a folder with what the workload reads for so long."""
    with tempfile.TemporaryDirectory(prefix="penstock-study-") as name:
        folder = Path(name)
        write_substreams(folder, multipliers, seconds)
        with live_system(NODES) as system:
            yield system, folder


def watched(
    system: LiveSystem,
    folder: Path,
    strategy: str,
    multiplier: float,
    seconds: float,
    say: Say,
    aggregates: Sequence[str] = tuple(AGGREGATES),
) -> Watched:
    """The workload at work, placed by one strategy."""
    text = deployment(folder, strategy, multiplier, aggregates)
    return system.watch(strategy.replace("-", "_"), text, query_names(aggregates), seconds, say)


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


def _mean(values: list[float] | list[int]) -> float:
    return sum(values) / len(values) if values else 0.0


def _findings(table: Table) -> list[Row]:
    """The source's claims as far as a run shows them: who is overloaded first."""
    found = []
    rivals = [name for name in dict.fromkeys(table.column("strategy")) if name != "rod"]
    rod = _overload_point(table, "rod")
    for rival in rivals:
        other = _overload_point(table, str(rival))
        found.append(
            Row(
                f"rod takes at least the rate that {rival} takes (its last multiplier, ours)",
                None,
                rod,
                agrees=rod >= other,
                note=f"{rival}: {other:g}",
            )
        )
    return found


def _overload_point(table: Table, strategy: str) -> float:
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
            title="The busier node",
            x_label="rate multiplier",
            y_label="utilisation",
        ),
    )


def _setup(warm_s: float, measured_s: float) -> str:
    return (
        f"{NODES} nodes of one core on one machine, {len(_SUBSTREAMS)} packet streams that come "
        f"as a recorded DNS log did, scaled to {RATE_PER_S:,} packets a second times the "
        f"multiplier, {len(AGGREGATES)} aggregates over each, results within {_MAX_LATENCY_S} s "
        f"wanted (a batch every {ROUND_S:g} s). Measured for {measured_s:g} s after "
        f"{warm_s:g} s. Latency: from the entry of the oldest row of a batch until its results "
        "are out. A plan is overloaded when the mean latency is above what is wanted."
    )
