"""What a row costs each kind of operator, and what a batch costs however few rows it has.

A row: the processor time of a pipeline with the operator, less that of one without. A batch: the
processor time of many small batches less that of few, over how many more there were. Every pipeline
ends in a filter that lets nothing through, so that sinks cost nothing. Those are queries of their
own; what rounds of light fragments cost is measured apart (:mod:`penstock.bench.light_costs`), and
so are rows and pairs of light joins (:mod:`penstock.bench.join_costs`). The figures are kept in the
user's cache, for ``plan``, ``simulate`` and ``explain`` (:mod:`penstock.load.costs`).
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from penstock.bench.join_costs import measure_join
from penstock.bench.light_costs import measure_light
from penstock.bench.report import BenchCase, Report, limited, machine
from penstock.bench.side import Side, workload
from penstock.errors import RunError
from penstock.load.costs import (
    COSTS,
    LIGHT,
    LIGHT_JOIN,
    LIGHT_READING,
    LIGHT_ROUND,
    PAIR,
    READING,
    STATELESS,
    kept_costs_path,
    measured_costs,
)

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


BATCHES = {STATELESS: _BASE, "aggregate": QUERIES["aggregate"], "join": QUERIES["join"]}
_BATCH = " batch"
_SMALL_EVENTS = 200


def costs(quick: bool, say: Callable[[str], None]) -> Report:
    """Processor time per row and kind of operator, and per batch."""
    events, files_, rounds = (200_000, 4, 1) if quick else (1_000_000, 10, 3)
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as name:
        folder = Path(name)
        path = workload(folder / "events", events, files_)
        (folder / "channels.csv").write_text("channel,label\nApple,a\nGoogle,g\nFacebook,f\n")
        side = Side("ours", folder / "ours.log")
        try:
            measure = _Measure(side, path, events, files_, rounds, folder, say)
            cases = (*_cases(measure, events), *_batch_cases(measure, folder, quick))
        finally:
            side.close()
    return Report("costs", (*cases, *_light_cases(quick, say)))


def _light_cases(quick: bool, say: Callable[[str], None]) -> Iterator[BenchCase]:
    found = measure_light(quick, say)
    for kind, cost_us in found.cost_us.items():
        yield limited(kind, cost_us, "us/row")
    for kind, ms in found.batch_ms.items():
        yield limited(f"{kind}{_BATCH}", ms, "ms")
    for kind, cost_us in measure_join(quick, say).cost_us.items():
        yield limited(kind, cost_us, "us/row")


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
            answer = self._side.ask(self._request(sql, self._path, self._events, self._files))
            taken.append(answer["processor_seconds"])
        return statistics.median(taken[1:])

    def batches(self, name: str, sql: str, path: Path, files_: int) -> tuple[float, float]:
        """Batches of a query over small files, and processor seconds; medians as above.

        All processes of the side count: what plans batches is one of them.
        """
        found = []
        for number in range(self._rounds + 1):
            self._say(f"{name}, {files_} small files, round {number} of {self._rounds}")
            before_s = self._side.processor_seconds()
            answer = self._side.ask(self._request(sql, path, _SMALL_EVENTS * files_, files_))
            found.append((answer["batches"], self._side.processor_seconds() - before_s))
        counts, seconds = zip(*found[1:], strict=True)
        return statistics.median(counts), statistics.median(seconds)

    def _request(self, sql: str, path: Path, events: int, files_: int) -> dict[str, object]:
        return {"parts": self._parts(sql), "path": str(path), "events": events, "files": files_}

    def _parts(self, sql: str) -> str:
        bids = (
            "auction bigint, bidder bigint, price bigint, channel string, url string, ts timestamp"
        )
        return (
            "  touched: {from: bids, python: 'penstock.bench.peers.identity:identity', "
            f"schema: '{bids}'}}\n"
            f"tables:\n  channels: {{file: {self._folder}/channels.csv, "
            "schema: 'channel string, label string'}\n"
            f'queries:\n  result: {{sql: "{sql}", to: memory}}\n'
        )


def _cases(measure: _Measure, events: int) -> Iterator[BenchCase]:
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


def _batch_cases(measure: _Measure, folder: Path, quick: bool) -> Iterator[BenchCase]:
    few, many = (5, 20) if quick else (10, 60)
    small = {count: workload(folder / f"small-{count}", _SMALL_EVENTS * count, count)
             for count in (few, many)}  # fmt: skip
    for kind, sql in BATCHES.items():
        found = [measure.batches(f"{kind}{_BATCH}", sql, small[rows], rows) for rows in (few, many)]
        yield limited(f"{kind}{_BATCH}", batch_cost_ms(*found), "ms")


def batch_cost_ms(few: tuple[float, float], many: tuple[float, float]) -> float:
    """Milliseconds a batch, from batches and processor seconds of two runs; 0 where unclear.

    >>> batch_cost_ms((10, 2.0), (60, 7.0))
    100.0
    """
    more, spent_s = many[0] - few[0], many[1] - few[1]
    return max(0.0, 1e3 * spent_s / more) if more > 0 else 0.0


def write_table(report: Report) -> Path:
    """Keeps the figures where plans find them; where that is."""
    measured = {case.case: case.value for case in report.cases}
    if "filter" in measured:
        measured["switch"] = measured["filter"]
    batches = {
        kind: measured.get(f"{kind}{_BATCH}", 0.0) for kind in (*BATCHES, LIGHT, LIGHT_ROUND)
    }
    kinds = (READING, *QUERIES, "switch", LIGHT, LIGHT_READING, LIGHT_JOIN, PAIR)
    return keep_costs(measured, kinds, batches)


def keep_costs(
    measured: Mapping[str, float],
    kinds: Sequence[str],
    batches_ms: Mapping[str, float] | None = None,
) -> Path:
    """Replaces the costs of these kinds in the user's cache; the file they are in.

    A kind whose cost is too small to be told apart from nothing is left out, not called free.
    """
    measured_costs.cache_clear()
    known = measured_costs()
    old = {kind: cost for kind, cost in known.cost_us.items() if kind not in kinds}
    news = {kind: round(measured[kind], 3) for kind in kinds if measured.get(kind, 0.0) > 0}
    batches = {kind: round(ms, 2) for kind, ms in (batches_ms or {}).items() if ms > 0}
    table = {
        "cost_us": old | news,
        "batch_ms": {**known.batch_ms, **batches},
        "machine": machine(),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
    }
    target = kept_costs_path(os.environ)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_suffix(".new")
        temporary.write_text(json.dumps(table, indent=2) + "\n", encoding="utf-8")
        temporary.replace(target)
    except OSError as error:
        raise RunError(
            f"the costs cannot be kept in {target}: {error.strerror}",
            hint=f"Name another file with {COSTS}.",
        ) from None
    measured_costs.cache_clear()
    return target
