"""What a row costs each kind of operator: the processor time of a pipeline with it, less without.

Every pipeline ends in a filter that lets nothing through, so that sinks cost nothing. The figures
go into ``penstock/load/costs.json``, which ``penstock explain`` reads.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

from penstock.bench.report import Case, Report, limited, machine
from penstock.bench.side import Side, workload
from penstock.load.costs import READING, measured_costs

_BASE = "SELECT auction, price, ts FROM bids WHERE price < 0"
_BASE_JOIN = (
    "SELECT id, ts FROM persons WHERE id < 0 UNION ALL SELECT seller, ts FROM auctions WHERE id < 0"
)
_CONJUNCTS = " AND ".join(f"price % {number} >= 0" for number in range(3, 12))
_COLUMNS = ", ".join(f"price * {number} AS c{number}" for number in range(2, 7))

QUERIES = {
    "filter": f"SELECT auction, price, ts FROM bids WHERE {_CONJUNCTS} AND price < 0",
    "map": f"SELECT c2 FROM (SELECT {_COLUMNS} FROM bids) b WHERE c2 + c3 + c4 + c5 + c6 < 0",
    "aggregate": "SELECT bidder, count(*) AS n FROM bids GROUP BY bidder, window(ts, '10 seconds') "
    "HAVING count(*) < 0",
    "join": "SELECT p.id FROM persons p JOIN auctions a ON p.id = a.seller "
    "AND a.ts BETWEEN p.ts AND p.ts + INTERVAL 10 SECONDS WHERE p.id + a.id < 0",
    "table_join": "SELECT b.auction, c.label FROM bids b JOIN channels c ON b.channel = c.channel "
    "WHERE b.price + length(c.label) < 0",
    "python": "SELECT auction FROM touched WHERE price < 0",
}


def costs(quick: bool, say: Callable[[str], None]) -> Report:
    """Microseconds of processor time per row and kind of operator."""
    events, files_, rounds = (200_000, 4, 1) if quick else (1_000_000, 10, 3)
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as name:
        folder = Path(name)
        path = workload(folder / "events", events, files_)
        (folder / "channels.csv").write_text("channel,label\nApple,a\nGoogle,g\nFacebook,f\n")
        side = Side("ours", folder / "ours.log")
        try:
            measure = _Measure(side, path, events, files_, rounds, folder, say)
            cases = tuple(_cases(measure, events))
        finally:
            side.close()
    return Report("costs", cases)


class _Measure:
    def __init__(
        self,
        side: Side,
        path: Path,
        events: int,
        files_: int,
        rounds: int,
        folder: Path,
        say: Callable[[str], None],
    ) -> None:
        self._side, self._path, self._events, self._files = side, path, events, files_
        self._rounds, self._folder, self._say = rounds, folder, say

    def __call__(self, name: str, sql: str) -> float:
        """Median processor seconds of a query; the first run warms it up."""
        taken = []
        for number in range(self._rounds + 1):
            self._say(f"{name}, round {number} of {self._rounds}")
            request = {
                "parts": self._parts(sql),
                "path": str(self._path),
                "events": self._events,
                "files": self._files,
            }
            taken.append(self._side.ask(request)["processor_seconds"])
        return statistics.median(taken[1:])

    def _parts(self, sql: str) -> str:
        bids = (
            "auction bigint, bidder bigint, price bigint, channel string, url string, ts timestamp"
        )
        return (
            "  touched: {from: bids, python: 'penstock.spark.peers.identity:identity', "
            f"schema: '{bids}'}}\n"
            f"tables:\n  channels: {{file: {self._folder}/channels.csv, "
            "schema: 'channel string, label string'}\n"
            f'queries:\n  result: {{sql: "{sql}", to: memory}}\n'
        )


def _cases(measure: _Measure, events: int) -> Iterator[Case]:
    bids, joined = events * 46 // 50, events * 4 // 50
    base = measure("reading", _BASE)
    base_join = measure("reading both sides", _BASE_JOIN)
    yield limited(READING, 1e6 * base / bids, "us/row")
    for kind, sql in QUERIES.items():
        rows, less = (joined, base_join) if kind == "join" else (bids, base)
        # The filter's query has ten conditions, one of them the base's.
        repeated = 9 if kind == "filter" else 1
        cost = 1e6 * (measure(kind, sql) - less) / rows / repeated
        yield limited(kind, max(cost, 0.0), "us/row")


def write_table(report: Report) -> None:
    """Keeps the figures where ``penstock explain`` finds them."""
    measured = {case.case: case.value for case in report.cases}
    if "filter" in measured:
        measured["switch"] = measured["filter"]
    keep_costs(measured, (READING, *QUERIES, "switch"))


def keep_costs(measured: Mapping[str, float], kinds: Sequence[str]) -> None:
    """Replaces the costs of these kinds in the table that comes with Penstock.

    A kind whose cost is too small to be told apart from nothing is left out, not called free.
    """
    measured_costs.cache_clear()
    known = {kind: cost for kind, cost in measured_costs().cost_us.items() if kind not in kinds}
    news = {kind: round(measured[kind], 3) for kind in kinds if measured.get(kind, 0.0) > 0}
    date = f"{datetime.now(UTC):%Y-%m-%d}"
    table = {"cost_us": known | news, "machine": machine(), "date": date}
    target = Path(str(files("penstock.load") / "costs.json"))
    target.write_text(json.dumps(table, indent=2) + "\n", encoding="utf-8")
    measured_costs.cache_clear()
