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
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from penstock.errors import RunError
from penstock.load.arrays import Ints
from penstock.model.measurements import FragmentStatus
from penstock.studies.file_results import digest_results
from penstock.studies.live_system import LiveSystem, Look, Watched, live_system
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


_SPEEDUP = 60
_SHARE_OF_NORTH = 0.1
"""The south has so many homes for each in the north."""
_WANTED = 0.95
"""How busy the node in the north is meant to be while its homes report often."""
_FIRST_HOMES, _LEAST_HOMES, _MOST_HOMES = 60_000, 20_000, 600_000
FULL_PHASES = (
    ReportingPhase(40, _SELDOM_MIN),
    ReportingPhase(60, _OFTEN_MIN),
    ReportingPhase(30, _SELDOM_MIN),
)
QUICK_PHASES = (
    ReportingPhase(25, _SELDOM_MIN),
    ReportingPhase(25, _OFTEN_MIN),
    ReportingPhase(5, _SELDOM_MIN),
)
_TRIAL_PHASES = (ReportingPhase(40, _SELDOM_MIN), ReportingPhase(25, _OFTEN_MIN))
_SMOOTHED = 5
_WITNESS = f"north_{_WINDOWS_MIN[0]}"
"""Reads every row that comes in in the north."""
DISTRICTS = ("north", "south")


def in_both(north: int, phases: tuple[ReportingPhase, ...]) -> MeteredTree:
    """A tree with so many homes in the north."""
    homes = {"north": north, "south": round(_SHARE_OF_NORTH * north)}
    return MeteredTree(homes, phases, _SPEEDUP)


def homes_for(rates: Sequence[float], used: Sequence[float], often_per_s: float) -> int:
    """How many homes make a node as busy as wanted, by how busy it was at which rates of rows.

    ``often_per_s`` are the rows a second of a home that reports often.

    >>> homes_for([1000, 6000], [0.2, 0.45], often_per_s=0.2)
    80000
    """
    slope, base = np.polyfit(rates, used, 1)
    if slope <= 0:
        return _MOST_HOMES
    homes = (_WANTED - base) / slope / often_per_s
    return int(np.clip(round(homes, -3), _LEAST_HOMES, _MOST_HOMES))


def query_names() -> list[str]:
    return [f"{district}_{minutes}" for district in DISTRICTS for minutes in _WINDOWS_MIN]


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
        for district in DISTRICTS
    )
    queries = "".join(
        f"  {district}_{minutes}:\n"
        '    sql: "SELECT pool, window.end AS at, count(*) AS n, sum(watts) AS watts FROM '
        f"(SELECT ts, substring(md5(concat(home, '{minutes}')), 1, 2) AS pool, watts "
        f"FROM {district}) AS pooled "
        f"GROUP BY pool, window(ts, '{minutes} minutes', '15 minutes')\"\n"
        f"    to: {{files: {out}/{district}_{minutes}, format: parquet}}\n"
        for district in DISTRICTS
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
    recording = os.environ.get(RECORDING)
    watts = recorded_watts(Path(recording)) if recording else generated_watts()
    with (
        tempfile.TemporaryDirectory(prefix="penstock-study-") as name,
        live_system(PARENTS) as live,
    ):
        folder = Path(name)
        homes = _bearable_homes(live, folder, watts, say)
        tree = in_both(homes, QUICK_PHASES if quick else FULL_PHASES)
        _write(folder, watts, tree)
        rows = [_row(live, folder, policy, say) for policy in POLICIES]
    table = ResultTable("live-tree", _COLUMNS, tuple(rows))
    setup = _setup(tree, is_recorded=recording is not None)
    return StudyReport("live-tree", tuple(_findings(table)), (table,), (), setup)


def _write(folder: Path, watts: Ints, tree: MeteredTree) -> None:
    for district, homes in tree.homes.items():
        write_readings(folder / f"{district}.parquet", watts, homes, tree.phases)


def _bearable_homes(live: LiveSystem, folder: Path, watts: Ints, say: Say) -> int:
    """A trial of what rows cost on this machine: so many homes are more than one node may bear."""
    tree = in_both(_FIRST_HOMES, _TRIAL_PHASES)
    _write(folder, watts, tree)
    seen = _watch(live, folder, "trial", "off", say)
    rates, used = _busy_at_rates(seen)
    homes = homes_for(rates, used, _SPEEDUP / (60 * _OFTEN_MIN))
    say(f"{homes:,} homes in the north")
    return homes


def _busy_at_rates(seen: Watched) -> tuple[list[float], list[float]]:
    """Rows a second that came in in the north, and how busy its node was, over some looks each."""
    looks = [look for look in seen.looks if _WITNESS in look.units]
    rates, used = [], []
    for first, last in zip(looks, looks[_SMOOTHED:], strict=False):
        span_s = last.at_s - first.at_s
        rates.append((_rows_in(last) - _rows_in(first)) / span_s)
        used.append(last.utilisation.get("north", 0.0))
    if len(rates) < _SMOOTHED:
        raise RunError("too little was seen of the trial to tell what rows cost")
    return rates, used


def _rows_in(look: Look) -> int:
    witness = look.units[_WITNESS]
    assert isinstance(witness, FragmentStatus)
    return witness.rows_in


def _watch(live: LiveSystem, folder: Path, name: str, policy: str, say: Say) -> Watched:
    """Lets the readings run with a policy, every query on its district's node at first."""
    out = folder / f"out-{name}"
    shutil.rmtree(out, ignore_errors=True)

    def arrange() -> None:
        live.put({query: query.partition("_")[0] for query in query_names()}, _LEAD_S)
        live.client.set_balance(policy, balance_settings() if policy != "off" else None)

    text = deployment(folder, out, _SPEEDUP)
    seen = live.watch(f"tree_{name}", text, query_names(), None, say, arrange)
    live.client.set_balance("off")
    return seen


def _row(live: LiveSystem, folder: Path, policy: str, say: Say) -> tuple[Value, ...]:
    say(policy)
    seen = _watch(live, folder, policy, policy, say)
    latencies = seen.latencies_s()
    rows, digest = digest_results(folder / f"out-{policy}", query_names())
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
