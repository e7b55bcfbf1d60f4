"""Balancing at work: streams that burst on three real nodes, with and without it.

In the first scenario two streams burst in turn, to more than a node can take, and a third is steady
and light. A policy that looks at means finds two nodes alike; one that looks at correlation mixes
what bursts in turn. What reads a stream is put on a node of its own first, while hardly anything
comes; the policy is named when that is done. In the second the streams come as records of a
network's monitor did.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np

from penstock.studies.figures import Figure
from penstock.studies.file_results import digest_results
from penstock.studies.live_system import LiveSystem, Watched, live_system
from penstock.studies.recording import Stretch, replayed, write_packets
from penstock.studies.report import ResultTable, Row, Runner, Say, StudyReport, Value
from penstock.studies.running import one_by_one

POLICIES = ("off", "largest-load-first", "correlation")
SCENARIOS = ("in turn", "recorded")
_NODES = 3
_HIGH_PER_S, _LOW_PER_S, _STEADY_PER_S = 40_000, 1_000, 4_000
_STRETCHES = {
    "first": Stretch("ssl", 200),
    "second": Stretch("dns", 0),
    "third": Stretch("dns", 640),
}
_MEAN_PER_S = 12_000
_WARM_S = 30.0
_LEAD_S, _LEAD_PER_S = 60, 50
_PERIOD_S = 80
_MAX_LATENCY_S = 32
_ROUND_S = _MAX_LATENCY_S // 4
_EVERY_S, _COOLDOWN_S = 20, 40
_BUSY = 0.95
_KEYS = ("src", "dst")
_COLUMNS = (
    "scenario",
    "policy",
    "latency_p50_s",
    "latency_p99_s",
    "overload_s",
    "deviation",
    "moves",
    "rows",
    "digest",
)


def rates(scenario: str, seconds: int) -> dict[str, list[int]]:
    """How many rows come on each of the three streams, second by second."""
    if scenario == "recorded":
        return {
            name: stretch.rates_per_s(seconds, _MEAN_PER_S) for name, stretch in _STRETCHES.items()
        }
    high = [(at // (_PERIOD_S // 2)) % 2 == 0 for at in range(seconds)]
    first = [_HIGH_PER_S if is_high else _LOW_PER_S for is_high in high]
    second = [_LOW_PER_S if is_high else _HIGH_PER_S for is_high in high]
    return dict(zip(_STRETCHES, (first, second, [_STEADY_PER_S] * seconds), strict=True))


def query_names() -> list[str]:
    return [f"{stream}_{key}" for stream in _STRETCHES for key in _KEYS]


def nodes_at_first() -> dict[str, str]:
    """What reads a stream together on a node."""
    return {
        f"{stream}_{key}": f"n{number}"
        for number, stream in enumerate(_STRETCHES, 1)
        for key in _KEYS
    }


def deployment(folder: Path, out: Path) -> str:
    """The workload as a deployment file, with its results in files."""
    streams = "".join(replayed(name, folder / f"{name}.parquet") for name in _STRETCHES)
    queries = "".join(
        f"  {name}_{key}:\n"
        f'    sql: "SELECT {key}, window.end AS at, count(*) AS packets, sum(bytes) AS bytes '
        f"FROM {name} GROUP BY {key}, window(ts, '1 minute', '1 second')\"\n"
        f"    max_latency: {_MAX_LATENCY_S}s\n"
        f"    to: {{files: {out}/{name}_{key}, format: parquet}}\n"
        for name in _STRETCHES
        for key in _KEYS
    )
    return f"streams:\n{streams}queries:\n{queries}"


def balance_settings() -> dict[str, str | float | int | bool | None]:
    """How the system is balanced, whichever the policy."""
    return {
        "every": f"{_EVERY_S}s",
        "samples": _PERIOD_S // _ROUND_S,
        "sample": f"{_ROUND_S}s",
        "patience": 1,
        "cooldown": f"{_COOLDOWN_S}s",
    }


def study(quick: bool, say: Say, run: Runner = one_by_one) -> StudyReport:
    """The same input with one policy after the other: they share the machine."""
    lead_s, seconds = (0, 8) if quick else (_LEAD_S, 3 * _PERIOD_S)
    with tempfile.TemporaryDirectory(prefix="penstock-study-") as name, live_system(_NODES) as live:
        folders = {scenario: Path(name) / scenario.replace(" ", "-") for scenario in SCENARIOS}
        for scenario, folder in folders.items():
            folder.mkdir()
            for seed, (stream, known) in enumerate(rates(scenario, seconds).items()):
                counts = [_LEAD_PER_S] * lead_s + known
                write_packets(folder / f"{stream}.parquet", counts, seed)
        if not quick:
            say("warming up")
            _watched(live, folders["in turn"], "off", lead_s, _WARM_S, say)
        rows = [
            (scenario, *_row(live, folders[scenario], policy, lead_s, seconds, say))
            for scenario in (SCENARIOS[:1] if quick else SCENARIOS)
            for policy in POLICIES
        ]
    table = ResultTable("live-bursts", _COLUMNS, tuple(rows))
    setup = _setup(lead_s, seconds)
    return StudyReport("live-bursts", tuple(_findings(table)), (table,), _drawn(), setup)


def _watched(
    live: LiveSystem, folder: Path, policy: str, lead_s: int, seconds: float | None, say: Say
) -> Watched:
    out = _results_of(folder, policy)
    shutil.rmtree(out, ignore_errors=True)

    def arrange() -> None:
        if lead_s:
            live.put(nodes_at_first(), lead_s)
        live.client.set_balance(policy, balance_settings())

    name = policy.replace("-", "_")
    seen = live.watch(name, deployment(folder, out), query_names(), seconds, say, arrange)
    live.client.set_balance("off")
    return seen


def _results_of(folder: Path, policy: str) -> Path:
    return folder / f"out-{policy}"


def _row(
    live: LiveSystem, folder: Path, policy: str, lead_s: int, seconds: int, say: Say
) -> tuple[Value, ...]:
    say(policy)
    seen = _watched(live, folder, policy, lead_s, None, say)
    # The policies have had half of the time to find their plan.
    settled = seen.since(seen.submitted_s + lead_s + seconds / 2)
    latencies = settled.latencies_s()
    rows, digest = digest_results(_results_of(folder, policy), query_names())
    by_policy = [move for move in seen.moves if move.by == "balancer"]
    return (
        policy,
        _percentile(latencies, 0.5),
        _percentile(latencies, 0.99),
        round(_overload_s(live, settled), 1),
        round(_deviation(live, settled), 4),
        len(by_policy),
        rows,
        digest,
    )


def _percentile(values: list[float], share: float) -> float:
    return round(values[int(share * (len(values) - 1))], 2) if values else 0.0


def _overload_s(live: LiveSystem, seen: Watched) -> float:
    """Seconds of nodes with hardly anything left, all nodes together."""
    busy = [
        before.utilisation.get(node, 0.0) >= _BUSY for before in seen.looks for node in live.nodes
    ]
    span_s = seen.looks[-1].at_s - seen.looks[0].at_s if seen.looks else 0.0
    return span_s * sum(busy) / max(1, len(seen.looks))


def _deviation(live: LiveSystem, seen: Watched) -> float:
    """How much the utilisation of a node varies over time, on average over nodes."""
    found = [
        np.std([look.utilisation.get(node, 0.0) for look in seen.looks]) for node in live.nodes
    ]
    return float(np.mean(found))


def _findings(table: ResultTable) -> list[Row]:
    found = []
    for scenario in dict.fromkeys(table.column("scenario")):
        part = table.where(scenario=scenario)
        values = {row[1]: dict(zip(table.columns, row, strict=True)) for row in part.rows}
        off, load, correlation = (values[policy] for policy in POLICIES)
        digests = {str(value["digest"]) for value in values.values()}
        found += [
            Row(f"{scenario}: different results (digests)", None, len(digests), 1.0, 1.0,
                agrees=len(digests) == 1),
            _below(f"{scenario}: latency p99 of correlation over that of no balancing",
                   correlation, off),
            _below(f"{scenario}: latency p99 of correlation over that of largest load first",
                   correlation, load),
        ]  # fmt: skip
    return found


def _below(quantity: str, one: dict[str, Value], other: dict[str, Value]) -> Row:
    ratio = float(one["latency_p99_s"] or 0.0) / max(1e-9, float(other["latency_p99_s"] or 0.0))
    return Row(quantity, None, round(ratio, 3), high=1.0, agrees=ratio <= 1.0)


def _drawn() -> tuple[Figure, ...]:
    return (
        Figure(
            "live-bursts",
            "live-bursts",
            "deviation",
            "latency_p99_s",
            "policy",
            kind="scatter",
            title="Streams that burst, on three nodes",
            x_label="deviation of a node's utilisation",
            y_label="latency p99, s",
        ),
    )


def _setup(lead_s: int, seconds: int) -> str:
    return (
        f"{_NODES} nodes of one core on one machine; two packet streams of {_HIGH_PER_S:,} and "
        f"{_LOW_PER_S:,} rows a second in turn every {_PERIOD_S // 2} s, a third of "
        f"{_STEADY_PER_S:,}; or three that come as two recorded logs did, {_MEAN_PER_S:,} a second "
        f"on average. {len(_KEYS)} aggregates over each, of the last minute every second, every "
        f"stream's on a node of its own when the bursts begin, after {lead_s} s with "
        f"{_LEAD_PER_S} rows a second. Results "
        f"within {_MAX_LATENCY_S} s wanted. {seconds} s of bursts; latency, overload (a node at "
        "95 % and more) and deviation over their second half. Moves are those of the policy."
    )
