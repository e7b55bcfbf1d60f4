"""What a light join costs: for each row that it reads, and for each pair that it gives.

The same number of batches with few rows, with many, and with many that make pairs: what many rows
cost more is theirs, what pairs cost more is theirs. What a round costs is measured apart
(:mod:`penstock.bench.light_costs`).
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.bench.side import Side
from penstock.load.costs import LIGHT_JOIN, PAIR

_WORKER = "penstock.bench.peers.join_worker"
_BATCHES, _BATCH_S, _WINDOW_S = 20, 10, 10
_BEGIN_US = 1_800_000_000_000_000
_FEW_ROWS, _ROWS = 20_000, 400_000
_KEYS_WITHOUT_PAIRS, _KEYS = 1 << 40, 20_000


@dataclass(frozen=True)
class JoinRun:
    """A join that was measured: rows read, pairs given, seconds of processor time."""

    rows: int
    pairs: int
    seconds: float


@dataclass(frozen=True)
class LightJoinCosts:
    """Microseconds of processor time of a row that is read, and of a pair that is given."""

    row_us: float
    pair_us: float

    @property
    def cost_us(self) -> dict[str, float]:
        """By the kinds of the table of costs."""
        return {LIGHT_JOIN: self.row_us, PAIR: self.pair_us}


def measure_join(quick: bool, say: Callable[[str], None]) -> LightJoinCosts:
    """Joins with few rows, with many, and with many pairs; each after one that warms up."""
    scale, rounds = (4, 1) if quick else (1, 3)
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as name:
        folder = Path(name)
        with closing(Side("ours", folder / "ours.log", _WORKER)) as side:
            found = []
            for what, rows, keys in (
                ("few rows", _FEW_ROWS, _KEYS_WITHOUT_PAIRS),
                ("rows", _ROWS // scale, _KEYS_WITHOUT_PAIRS),
                ("pairs", _ROWS // scale, _KEYS // scale),
            ):
                path = folder / what.replace(" ", "_")
                write_sides(path, rows, keys)
                say(f"a join of two streams, {what}")
                runs = [_asked(side, path, rows) for _ in range(rounds + 1)]
                seconds = statistics.median(run.seconds for run in runs[1:])
                found.append(JoinRun(2 * rows, runs[-1].pairs, seconds))
    return join_costs(*found)


def _asked(side: Side, path: Path, rows: int) -> JoinRun:
    request = {
        "path": str(path), "window_s": _WINDOW_S, "batch_rows": 2 * rows // _BATCHES
    }  # fmt: skip
    answer = side.ask(request)
    return JoinRun(2 * rows, answer["pairs"], answer["processor_seconds"])


def write_sides(folder: Path, rows: int, keys: int) -> None:
    """Both streams of a join, a file for each batch, with keys drawn from so many."""
    random = np.random.default_rng(1)
    each = rows // _BATCHES
    for side in ("l", "r"):
        (folder / side).mkdir(parents=True)
        for batch in range(_BATCHES):
            seconds = _BATCH_S * (batch + np.arange(each) / each)
            table = pa.table(
                {
                    f"{side}_ts": pa.array(
                        _BEGIN_US + (1e6 * seconds).astype(np.int64), pa.timestamp("us")
                    ),
                    f"{side}_key": random.integers(0, keys, each),
                    f"{side}_value": np.arange(each),
                }
            )
            pq.write_table(table, folder / side / f"{batch:05d}.parquet")


def join_costs(few: JoinRun, many: JoinRun, pairs: JoinRun) -> LightJoinCosts:
    """The costs that follow from three runs; none is below zero.

    >>> join_costs(JoinRun(100, 0, 1.0), JoinRun(1_100, 10, 1.002), JoinRun(1_100, 510, 1.003))
    LightJoinCosts(row_us=2.0, pair_us=2.0)
    """
    pair_us = 1e6 * (pairs.seconds - many.seconds) / max(1, pairs.pairs - many.pairs)
    row_us = 1e6 * (many.seconds - few.seconds) / max(1, many.rows - few.rows)
    return LightJoinCosts(round(max(0.0, row_us), 3), round(max(0.0, pair_us), 3))
