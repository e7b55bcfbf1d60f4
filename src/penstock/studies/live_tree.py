"""A real tree of three nodes under meters that report more often for an hour.

Two districts report to an office. Homes report every 30 minutes, and for an hour every five. The
district in the north has more homes than it can bear then; neighbours negotiate, or not.

``PENSTOCK_READINGS=FILE`` names a recording of houses by the minute that homes are stretches of
(:func:`~penstock.studies.meter_readings.recorded_watts`); without one they are made up.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from penstock.studies.file_results import digest_results
from penstock.studies.live_system import LiveSystem, Watched, live_system
from penstock.studies.meter_readings import (
    ReportingPhase,
    generated_watts,
    recorded_watts,
    write_readings,
)
from penstock.studies.report import ResultTable, Row, Runner, Say, StudyReport, Value
from penstock.studies.running import one_by_one

PARENTS = {"office": None, "north": "office", "south": "office"}
POLICIES = ("off", "hierarchy")
RECORDING = "PENSTOCK_READINGS"
_LOWER, _UPPER = 30, 60
_PERIOD_S = 5
_OFTEN_MIN, _SELDOM_MIN = 5, 30
_WINDOWS_MIN = (30, 45, 60, 90, 120, 150)
_LEAD_S = 60.0
_SCHEMA = "ts timestamp, home string, watts long"
_COLUMNS = (
    "policy", "latency_p50_s", "latency_p99_s", "above_upper_s", "transfers", "rows", "digest",
)  # fmt: skip


@dataclass(frozen=True)
class MeteredTree:
    """How many homes a district has, when they report how often, and how fast time runs."""

    homes: dict[str, int]
    phases: tuple[ReportingPhase, ...]
    speedup: int

    @property
    def minutes(self) -> int:
        return sum(phase.minutes for phase in self.phases)


FULL = MeteredTree(
    {"north": 200_000, "south": 20_000},
    (
        ReportingPhase(40, _SELDOM_MIN),
        ReportingPhase(60, _OFTEN_MIN),
        ReportingPhase(30, _SELDOM_MIN),
    ),
    speedup=60,
)
QUICK = MeteredTree(
    FULL.homes,
    (
        ReportingPhase(20, _SELDOM_MIN),
        ReportingPhase(25, _OFTEN_MIN),
        ReportingPhase(5, _SELDOM_MIN),
    ),
    speedup=60,
)


def query_names() -> list[str]:
    return [f"{district}_{minutes}" for district in FULL.homes for minutes in _WINDOWS_MIN]


def deployment(folder: Path, out: Path, speedup: int) -> str:
    """The workload as a deployment file, with its results in files.

    Every query is for somebody else, who may not know the homes: readings are pooled under the
    beginning of a pseudonym that only this query uses.
    """
    streams = "".join(
        f"  {district}:\n"
        f"    source: {{replay: {folder}/{district}.parquet, format: parquet, "
        f"speedup: {speedup}}}\n"
        f"    schema: {_SCHEMA}\n"
        "    event_time: ts\n"
        "    lateness: 1s\n"
        f"    on: {district}\n"
        for district in FULL.homes
    )
    queries = "".join(
        f"  {district}_{minutes}:\n"
        '    sql: "SELECT pool, window.end AS at, count(*) AS n, sum(watts) AS watts FROM '
        f"(SELECT ts, substring(md5(concat(home, '{minutes}')), 1, 2) AS pool, watts "
        f"FROM {district}) AS pooled "
        f"GROUP BY pool, window(ts, '{minutes} minutes', '15 minutes')\"\n"
        f"    to: {{files: {out}/{district}_{minutes}, format: parquet}}\n"
        for district in FULL.homes
        for minutes in _WINDOWS_MIN
    )
    return f"streams:\n{streams}queries:\n{queries}"


def balance_settings() -> dict[str, str | float | int | bool | None]:
    """How the tree is balanced."""
    return {
        "lower": _LOWER,
        "upper": _UPPER,
        "period": f"{_PERIOD_S}s",
        "utilisation": "cpu",
        "rule": "wide",
    }


def study(quick: bool, say: Say, run: Runner = one_by_one) -> StudyReport:
    """The same readings with and without negotiations: they share the machine."""
    tree = QUICK if quick else FULL
    recording = os.environ.get(RECORDING)
    watts = recorded_watts(Path(recording)) if recording else generated_watts()
    with (
        tempfile.TemporaryDirectory(prefix="penstock-study-") as name,
        live_system(PARENTS) as live,
    ):
        folder = Path(name)
        for district, homes in tree.homes.items():
            write_readings(folder / f"{district}.parquet", watts, homes, tree.phases)
        rows = [_row(live, folder, policy, tree.speedup, say) for policy in POLICIES]
    table = ResultTable("live-tree", _COLUMNS, tuple(rows))
    setup = _setup(tree, is_recorded=recording is not None)
    return StudyReport("live-tree", tuple(_findings(table)), (table,), (), setup)


def _row(live: LiveSystem, folder: Path, policy: str, speedup: int, say: Say) -> tuple[Value, ...]:
    say(policy)
    out = folder / f"out-{policy}"
    shutil.rmtree(out, ignore_errors=True)

    def arrange() -> None:
        live.put({name: name.partition("_")[0] for name in query_names()}, _LEAD_S)
        given = balance_settings() if policy != "off" else None
        live.client.set_balance(policy, given)

    text = deployment(folder, out, speedup)
    seen = live.watch(f"tree_{policy}", text, query_names(), None, say, arrange)
    live.client.set_balance("off")
    latencies = seen.latencies_s()
    rows, digest = digest_results(out, query_names())
    transfers = [move for move in seen.moves if move.by == "neighbours" and move.state == "done"]
    return (
        policy,
        _percentile(latencies, 50),
        _percentile(latencies, 99),
        round(_above_upper_s(live, seen), 1),
        len(transfers),
        rows,
        digest,
    )


def _percentile(values: list[float], share: float) -> float:
    return round(float(np.percentile(values, share)), 2) if values else 0.0


def _above_upper_s(live: LiveSystem, seen: Watched) -> float:
    """Seconds of nodes above the upper threshold, all nodes together."""
    above = [
        look.utilisation.get(node, 0.0) > _UPPER / 100 for look in seen.looks for node in live.nodes
    ]
    span_s = seen.looks[-1].at_s - seen.looks[0].at_s if seen.looks else 0.0
    return span_s * sum(above) / max(1, len(seen.looks))


def _findings(table: ResultTable) -> list[Row]:
    values = {str(row[0]): dict(zip(table.columns, row, strict=True)) for row in table.rows}
    off, tree = (values[policy] for policy in POLICIES)
    digests = {str(value["digest"]) for value in values.values()}
    above = float(tree["above_upper_s"] or 0) / max(1e-9, float(off["above_upper_s"] or 0))
    return [
        Row("different results (digests)", None, len(digests), 1.0, 1.0, agrees=len(digests) == 1),
        Row("seconds above the upper threshold, over those without negotiations", None,
            round(above, 3), high=1.0, agrees=above <= 1.0),
        Row("fragments that changed hands by negotiation", None, int(tree["transfers"] or 0)),
    ]  # fmt: skip


def _setup(tree: MeteredTree, is_recorded: bool) -> str:
    each = ", ".join(f"{count:,} homes in the {name}" for name, count in tree.homes.items())
    source = "stretches of a recording of houses" if is_recorded else "made up"
    often_min = sum(phase.minutes for phase in tree.phases if phase.every_min == _OFTEN_MIN)
    return (
        f"A tree of three nodes of one core on one machine; {each}, {source}; {tree.minutes} "
        f"minutes, {tree.speedup} times as fast, readings every {_SELDOM_MIN} minutes and for "
        f"{often_min} minutes every {_OFTEN_MIN}; {len(_WINDOWS_MIN)} aggregates a district, each "
        f"on its district at first. Thresholds {_LOWER} and {_UPPER} % of the processor, checked "
        f"every {_PERIOD_S} s."
    )
