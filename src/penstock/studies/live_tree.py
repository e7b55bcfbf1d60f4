"""A real tree of three nodes under meters that report more often for an hour.

Two districts report to an office. Homes report every 30 minutes, and for one of three hours every
five. The district in the north has more homes than it can bear then; neighbours negotiate, or not.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.feeds.generators import generator
from penstock.studies.file_results import digest_results
from penstock.studies.live_system import LiveSystem, Watched, live_system
from penstock.studies.report import ResultTable, Row, Runner, Say, StudyReport, Value
from penstock.studies.running import one_by_one

PARENTS = {"office": None, "north": "office", "south": "office"}
POLICIES = ("off", "hierarchy")
_LOWER, _UPPER = 30, 60
_PERIOD_S = 5
_HOURS, _OFTEN_HOUR = 3, 1
_EVERY_MIN, _OFTEN_MIN = 30, 5
_HOMES = {"north": 30_000, "south": 3_000}
_SPEEDUP = 30
_QUICK_HOMES = {"north": 600, "south": 60}
_QUICK_SPEEDUP = 720
_WINDOWS_MIN = (60, 90, 120, 150, 180, 240)
_LEAD_S = 60.0
_SCHEMA = "ts timestamp, home string, kwh double"
_COLUMNS = (
    "policy", "latency_p50_s", "latency_p99_s", "above_upper_s", "transfers", "rows", "digest",
)  # fmt: skip


def query_names() -> list[str]:
    return [f"{district}_{minutes}" for district in _HOMES for minutes in _WINDOWS_MIN]


def write_readings(path: Path, homes: int) -> int:
    """Writes three hours of readings, every 30 minutes and in one hour every five; how many."""
    options = {"homes": homes, "every": f"{_OFTEN_MIN}min", "days": _HOURS / 24}
    feed = generator("meters", options)
    assert feed.size is not None
    rows = feed.read(0, feed.size)
    at_us = pc.cast(rows["ts"], pa.int64()).to_numpy()
    minutes = (at_us - at_us[0]) // 60_000_000
    period = minutes // _OFTEN_MIN
    is_often = minutes // 60 == _OFTEN_HOUR
    kept = rows.filter(pa.array(is_often | (period % (_EVERY_MIN // _OFTEN_MIN) == 0)))
    kept = kept.sort_by("ts").select(["ts", "home", "kwh"])
    pq.write_table(kept, path, row_group_size=10_000)
    return int(kept.num_rows)


def deployment(folder: Path, out: Path, speedup: int) -> str:
    """The workload as a deployment file, with its results in files."""
    streams = "".join(
        f"  {district}:\n"
        f"    source: {{replay: {folder}/{district}.parquet, format: parquet, "
        f"speedup: {speedup}}}\n"
        f"    schema: {_SCHEMA}\n"
        "    event_time: ts\n"
        "    lateness: 1s\n"
        f"    on: {district}\n"
        for district in _HOMES
    )
    queries = "".join(
        f"  {district}_{minutes}:\n"
        '    sql: "SELECT home, window.end AS at, count(*) AS n, max(kwh) AS kwh '
        f"FROM {district} GROUP BY home, window(ts, '{minutes} minutes', '15 minutes')\"\n"
        f"    to: {{files: {out}/{district}_{minutes}, format: parquet}}\n"
        for district in _HOMES
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
    homes, speedup = (_QUICK_HOMES, _QUICK_SPEEDUP) if quick else (_HOMES, _SPEEDUP)
    with (
        tempfile.TemporaryDirectory(prefix="penstock-study-") as name,
        live_system(PARENTS) as live,
    ):
        folder = Path(name)
        for district, count in homes.items():
            write_readings(folder / f"{district}.parquet", count)
        rows = [_row(live, folder, policy, speedup, say) for policy in POLICIES]
    table = ResultTable("live-tree", _COLUMNS, tuple(rows))
    setup = _setup(homes, speedup)
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


def _setup(homes: dict[str, int], speedup: int) -> str:
    each = ", ".join(f"{count:,} homes in the {name}" for name, count in homes.items())
    return (
        f"A tree of three nodes of one core on one machine; {each}, by the generator of meters; "
        f"{_HOURS} hours, {speedup} times as fast, readings every {_EVERY_MIN} minutes and in one "
        f"hour every {_OFTEN_MIN}; {len(_WINDOWS_MIN)} aggregates a district, each on its district "
        f"at first. Thresholds {_LOWER} and {_UPPER} % of the processor, checked every "
        f"{_PERIOD_S} s."
    )
