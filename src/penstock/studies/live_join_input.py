"""What the join of ``live_join`` reads: two streams at rates that change, a part of one group.

What a join costs follows from its pairs, and their number from how many rows share a key. So the
number of keys is chosen by what a pair costs on this machine, which is measured first: the load
is then as many cores as is asked for.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.kernels.join_plan import JoinPlan, PlannedSide
from penstock.kernels.planning import plan_fragment
from penstock.kernels.window_join import JoinOffset, RunCache, SideOffset, join_batch
from penstock.kernels.window_join.memory_batches import MemoryBatches
from penstock.lang.deployment import parse_deployment
from penstock.place.fuse import fuse

GROUPS, HOT_GROUP, HOT_SHARE = 60, 0, 0.25
QUERY = "pairs"
WINDOW_S = 10
EVERY_S = 5
_SIDES = (("calls", "ts"), ("taps", "at"))
_BEGIN_US = 1_767_225_600_000_000
_TRIED_ROWS, _TRIED_KEYS = 40_000, 200


@dataclass(frozen=True)
class JoinInput:
    """Two streams with so many rows in each second, whose keys are the first so many.

    The hot group's share of the rows is also its share of the pairs: as many of a row of its keys
    meet as of any other.
    """

    rates_per_s: tuple[int, ...]
    hot_keys: int

    @classmethod
    def of_load(cls, rates_per_s: Sequence[int], load: float, pair_us: float) -> JoinInput:
        """Streams whose pairs take so many cores at the highest of their rates.

        >>> JoinInput.of_load([1_000, 10_000], 0.5, pair_us=0.1).hot_keys
        100
        """
        # Each row meets what the other side has within the window, before it and after it.
        meetings_per_s = 2.0 * WINDOW_S * max(rates_per_s) ** 2
        keys = meetings_per_s * pair_us / 1e6 / load
        return cls(tuple(rates_per_s), max(1, round(HOT_SHARE * keys)))

    @property
    def seconds(self) -> int:
        """How long the streams go on."""
        return len(self.rates_per_s)

    def keys(self) -> tuple[np.ndarray, np.ndarray]:
        """Those of the hot group, and the others."""
        cold_keys = round(self.hot_keys * (1 - HOT_SHARE) / HOT_SHARE)
        numbered = ((f"k{number}", group_of(f"k{number}")) for number in count())
        hot = islice((key for key, group in numbered if group == HOT_GROUP), self.hot_keys)
        found = np.array(list(hot), object)
        again = ((f"k{number}", group_of(f"k{number}")) for number in count())
        cold = islice((key for key, group in again if group != HOT_GROUP), cold_keys)
        return found, np.array(list(cold), object)

    def write(self, folder: Path) -> None:
        """Writes both streams as files."""
        for seed, (stream, time_column) in enumerate(_SIDES):
            table = self.rows(time_column, seed)
            pq.write_table(table, folder / f"{stream}.parquet", row_group_size=50_000)

    def rows(self, time_column: str, seed: int) -> pa.Table:
        """One stream: rows evenly spread over each second."""
        random, (hot, cold) = np.random.default_rng(seed), self.keys()
        rates = np.array(self.rates_per_s)
        total = int(rates.sum())
        is_hot = random.random(total) < HOT_SHARE
        keys = cold[random.integers(0, len(cold), total)]
        keys[is_hot] = hot[random.integers(0, len(hot), int(is_hot.sum()))]
        seconds = np.repeat(np.arange(len(rates)), rates)
        within = np.concatenate([np.arange(rate) / rate for rate in rates])
        times = _BEGIN_US + (1e6 * (seconds + within)).astype(np.int64)
        return pa.table(
            {
                time_column: pa.array(times, pa.timestamp("us")),
                "k": pa.array(keys, pa.string()),
                "n": pa.array(np.arange(total), pa.int64()),
                "x": random.random(total),
                "y": random.random(total),
            }
        )


def group_of(key: str) -> int:
    """The partition group of a key."""
    return zlib.crc32(key.encode()) % GROUPS


def deployment(folder: Path, out: Path, spread: str, moves: str) -> str:
    """The join as a deployment file, with its results in files: those that are near each other."""
    sides = "".join(
        f"  {name}:\n"
        f"    source: {{replay: {folder / name}.parquet, format: parquet, speedup: 1}}\n"
        f"    schema: {at} timestamp, k string, n bigint, x double, y double\n"
        f"    event_time: {at}\n"
        "    lateness: 1s\n"
        for name, at in _SIDES
    )
    within = f"l.ts - INTERVAL {WINDOW_S} SECONDS AND l.ts + INTERVAL {WINDOW_S} SECONDS"
    near = "(l.x - r.x) * (l.x - r.x) + (l.y - r.y) * (l.y - r.y) < 0.0004"
    return (
        f"streams:\n{sides}queries:\n"
        f"  {QUERY}:\n"
        "    sql: SELECT l.ts, l.n AS l, r.n AS r FROM calls l JOIN taps r ON l.k = r.k "
        f"AND r.at BETWEEN {within} AND {near}\n"
        f"    to: {{files: {out}, format: parquet}}\n"
        f"    join: {{spread: {spread}, groups: {GROUPS}, moves: '{moves}', every: {EVERY_S}s}}\n"
    )


def measure_pair_us() -> float:
    """Processor microseconds that this machine needs for a pair that meets, near or not."""
    network = parse_deployment(
        deployment(Path(), Path("out"), "2", "off"), "join.yaml", Path()
    ).network
    (fragment,) = fuse(network)
    plan = plan_fragment(fragment)
    assert isinstance(plan, JoinPlan)
    taken = JoinInput((_TRIED_ROWS,), round(HOT_SHARE * _TRIED_KEYS))
    left, right = _batches(plan.left, taken, "ts", 0), _batches(plan.right, taken, "at", 1)
    after = JoinOffset(SideOffset(0, 1), SideOffset(0, 1))
    spent_s = []
    for _ in range(3):
        began_s = time.process_time()
        for rows in join_batch(plan.terms, left, right, JoinOffset(), after, RunCache()):
            plan.finish(rows)
        spent_s.append(time.process_time() - began_s)
    # All rows are of one second, so all with equal keys meet.
    return 1e6 * min(spent_s) / (_TRIED_ROWS**2 / _TRIED_KEYS)


def _batches(side: PlannedSide, taken: JoinInput, time_column: str, seed: int) -> MemoryBatches:
    rows = taken.rows(time_column, seed)
    times = rows[time_column].cast(pa.timestamp("us", "UTC"))
    zoned = rows.set_column(0, time_column, times)
    return MemoryBatches(side.stream, [side.project(zoned)], side.event_time)
