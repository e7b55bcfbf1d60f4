"""A join in parts on real nodes, one of them slowed and one group hot: who moves groups, and how.

Both streams have keys of which a part are of one group. A node is braked: stopped and let go on
many times a second, so that it has less of its core. The same input runs with groups that never
move (hash partitioning), with groups chosen at random, and with those chosen by their load.
"""

from __future__ import annotations

import hashlib
import tempfile
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from penstock.studies.figures import Figure
from penstock.studies.live_system import LiveSystem, Watched, live_system
from penstock.studies.report import Row, Runner, Say, StudyReport, Table, Value
from penstock.studies.running import one_by_one

RULES = ("off", "random", "load")
"""How groups are chosen to move, as ``moves:`` has it."""
GROUPS = 60
HOT_GROUP = 0
QUERY = "pairs"
_NODES = 3
_KEYS, _RATE_PER_S, _HOT_SHARE = 40_000, 6_000, 0.25
_WINDOW_S = 10
_SECONDS = 240
_BEGIN_US = 1_767_225_600_000_000
_BRAKED_SHARE, _BRAKE_PERIOD_S = 0.6, 0.1
_COLUMNS = (
    "rule",
    "latency_p50_s",
    "latency_p99_s",
    "rows_per_s",
    "unread_at_end",
    "groups_moved",
    "pause_p50_s",
    "rows",
    "digest",
)


def keys_of_group(group: int) -> list[str]:
    """The keys that are in a group."""
    keys = (f"k{number}" for number in range(_KEYS))
    return [key for key in keys if zlib.crc32(key.encode()) % GROUPS == group]


def write_side(path: Path, time_column: str, seconds: int, rate_per_s: int, seed: int) -> int:
    """Writes rows evenly spread over time, a part of them of the hot group; how many there are."""
    rng, count = np.random.default_rng(seed), seconds * rate_per_s
    hot = np.array(keys_of_group(HOT_GROUP))
    keys = np.char.add("k", rng.integers(0, _KEYS, count).astype(str)).astype(object)
    is_hot = rng.random(count) < _HOT_SHARE
    keys[is_hot] = hot[rng.integers(0, len(hot), int(is_hot.sum()))]
    times = _BEGIN_US + np.arange(count, dtype=np.int64) * 1_000_000 // rate_per_s
    table = pa.table(
        {
            time_column: pa.array(times, pa.timestamp("us")),
            "k": pa.array(keys, pa.string()),
            "n": pa.array(np.arange(count), pa.int64()),
        }
    )
    pq.write_table(table, path, row_group_size=50_000)
    return count


def deployment(folder: Path, rule: str) -> str:
    """The join as a deployment file, with its results in files."""
    sides = "".join(
        f"  {name}:\n"
        f"    source: {{replay: {folder / name}.parquet, format: parquet, speedup: 1}}\n"
        f"    schema: {at} timestamp, k string, n bigint\n"
        f"    event_time: {at}\n"
        "    lateness: 1s\n"
        for name, at in (("calls", "ts"), ("taps", "at"))
    )
    return (
        f"streams:\n{sides}queries:\n"
        f"  {QUERY}:\n"
        "    sql: SELECT l.ts, l.n AS l, r.n AS r FROM calls l JOIN taps r ON l.k = r.k AND r.at "
        f"BETWEEN l.ts - INTERVAL {_WINDOW_S} SECONDS AND l.ts + INTERVAL {_WINDOW_S} SECONDS\n"
        f"    to: {{files: {results_of(folder, rule)}, format: parquet}}\n"
        f"    join: {{spread: {_NODES}, groups: {GROUPS}, moves: '{rule}'}}\n"
    )


def results_of(folder: Path, rule: str) -> Path:
    """Where the results of a run lie."""
    return folder / f"out-{rule}"


@contextmanager
def braked(pid: int, share: float = _BRAKED_SHARE) -> Iterator[None]:
    """Keeps a process and its children stopped for this share of the time."""
    over = threading.Event()

    def brake() -> None:
        while not over.is_set():
            with suppress(psutil.Error):
                process = psutil.Process(pid)
                stopped = [process, *process.children(recursive=True)]
                _tell_all(stopped, "suspend")
                time.sleep(share * _BRAKE_PERIOD_S)
                _tell_all(stopped, "resume")
            over.wait((1 - share) * _BRAKE_PERIOD_S)

    thread = threading.Thread(target=brake, daemon=True, name="brake")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _tell_all(processes: list[psutil.Process], what: str) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            getattr(process, what)()


def study(quick: bool, say: Say, run: Runner = one_by_one) -> StudyReport:
    """The same input with one rule after the other: they share the machine."""
    seconds, rate_per_s = (10, 500) if quick else (_SECONDS, _RATE_PER_S)
    with tempfile.TemporaryDirectory(prefix="penstock-study-") as name, live_system(_NODES) as live:
        folder = Path(name)
        for seed, (stream, at) in enumerate((("calls", "ts"), ("taps", "at"))):
            write_side(folder / f"{stream}.parquet", at, seconds, rate_per_s, seed)
        rows = [_row(live, folder, rule, seconds, say) for rule in RULES]
    table = Table("live-join", _COLUMNS, tuple(rows))
    return StudyReport("live-join", _findings(table), (table,), _drawn(), _setup(seconds))


def _row(live: LiveSystem, folder: Path, rule: str, seconds: int, say: Say) -> tuple[Value, ...]:
    say(rule)
    slow = next(node for node in live.client.nodes() if node.name == live.nodes[0])
    with braked(slow.pid):
        seen = live.watch(f"join_{rule}", deployment(folder, rule), [QUERY], None, say)
    moves = [move for move in seen.moves if "groups" in move.numbers and move.state == "done"]
    pauses = sorted(move.pause_s for move in moves if move.pause_s is not None)
    # What has been found out by then shows in the second half.
    settled = seen.since(seen.submitted_s + seconds / 2)
    latencies = settled.latencies_s()
    rows, digest = _results(results_of(folder, rule))
    return (
        rule,
        _percentile(latencies, 0.5),
        _percentile(latencies, 0.99),
        round(_rows_per_s(seen), 1),
        _unread_at(seen, seconds),
        sum(len(move.numbers["groups"]) for move in moves),
        _percentile(pauses, 0.5),
        rows,
        digest,
    )


def _rows_per_s(seen: Watched) -> float:
    """Rows out a second, from the first batch of results to the last."""
    if len(seen.delivered) < 2:
        return 0.0
    times = [batch.at_s for batch in seen.delivered]
    return sum(batch.rows for batch in seen.delivered) / max(1e-9, max(times) - min(times))


def _unread_at(seen: Watched, seconds: int) -> int:
    """What lay unread when the last rows had come in."""
    looks = [look for look in seen.looks if look.at_s <= seen.submitted_s + seconds]
    return looks[-1].backlog_rows if looks else 0


def _percentile(values: list[float], share: float) -> float:
    return round(values[int(share * (len(values) - 1))], 3) if values else 0.0


def _results(out: Path) -> tuple[int, str]:
    """How many rows came out, and a digest of all of them in any order."""
    rows = ds.dataset(out, format="parquet", exclude_invalid_files=True).to_table(["l", "r"])
    ordered = rows.sort_by([("l", "ascending"), ("r", "ascending")])
    whole = hashlib.sha256()
    for column in ordered.columns:
        whole.update(np.ascontiguousarray(column.to_numpy()).tobytes())
    return ordered.num_rows, whole.hexdigest()[:16]


def _findings(table: Table) -> tuple[Row, ...]:
    values = {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}
    off, random, load = (values[rule] for rule in RULES)
    digests = {str(value["digest"]) for value in values.values()}
    return (
        Row("different results (digests)", None, len(digests), 1.0, 1.0, agrees=len(digests) == 1),
        _below("latency p99, by load over groups that never move", load, off),
        _below("latency p99, by load over at random", load, random),
    )


def _below(quantity: str, one: dict[str, Value], other: dict[str, Value]) -> Row:
    ratio = float(one["latency_p99_s"] or 0.0) / max(1e-9, float(other["latency_p99_s"] or 0.0))
    return Row(quantity, None, round(ratio, 3), high=1.0, agrees=ratio <= 1.0)


def _drawn() -> tuple[Figure, ...]:
    return (
        Figure(
            "live-join",
            "live-join",
            "groups_moved",
            "latency_p99_s",
            "rule",
            kind="scatter",
            title="A join in parts, one node slowed, one group hot",
            x_label="groups moved",
            y_label="latency p99, s",
        ),
    )


def _setup(seconds: int) -> str:
    return (
        f"{_NODES} nodes of one core on one machine, one of them stopped for {_BRAKED_SHARE:.0%} "
        f"of every {_BRAKE_PERIOD_S:g} s. Two streams of {_RATE_PER_S:,} rows a second with "
        f"{_KEYS:,} keys, {_HOT_SHARE:.0%} of the rows of one group of {GROUPS}, joined within "
        f"{_WINDOW_S} s for {seconds} s. Latency over the second half."
    )
