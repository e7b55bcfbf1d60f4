"""The window join's kernel alone, on one core, against pandas and DuckDB on the same batches.

Rows are counted as input rows joined, of both sides; sorting, merging and putting the result
together are included, making the rows is not. Times are processor time of one thread, so that
neighbours on the machine do not count.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from penstock.bench.report import BenchCase, Report, compared, limited
from penstock.feeds.skewed_keys import SkewedKeys
from penstock.kernels.window_join import (
    JoinOffset,
    JoinSide,
    JoinTerms,
    RunCache,
    SideOffset,
    advance,
    join_batch,
    retire,
)
from penstock.kernels.window_join.memory_batches import MemoryBatches
from penstock.model.windows import TimeBound

Say = Callable[[str], None]
_US = 1_000_000
_PEER_BATCHES = 4
"""A peer joins the last few batches only: it keeps no state, and takes as long for each."""


@dataclass(frozen=True)
class JoinCase:
    """Two streams of skewed keys, joined in windows, in batches of so many rows of both sides."""

    rate_per_s: float
    window_s: float
    b: float
    batch_rows: int
    rows: int

    @property
    def name(self) -> str:
        return (
            f"{self.rate_per_s:,.0f} rows/s, {self.window_s:g} s, b = {self.b:g}, "
            f"batches of {self.batch_rows:,}"
        )

    @property
    def window_us(self) -> int:
        return round(self.window_s * _US)

    def sides(self) -> tuple[list[pa.Table], list[pa.Table]]:
        """The batches of the left and of the right side."""
        return self._batches("l", 1), self._batches("r", 2)

    def _batches(self, prefix: str, seed: int) -> list[pa.Table]:
        seconds = self.rows / 2 / self.rate_per_s
        feed = SkewedKeys(rate_per_s=self.rate_per_s, seconds=seconds, b=self.b, seed=seed)
        names = [f"{prefix}_{name}" for name in feed.schema.names]
        each = self.batch_rows // 2
        return [
            feed.read(at, min(at + each, feed.size)).rename_columns(names).combine_chunks()
            for at in range(0, feed.size, each)
        ]


@dataclass(frozen=True)
class JoinResult:
    """What a join gave: how many pairs, a sum that tells them from others, and how long it took."""

    pairs: int
    digest: int
    took_s: float
    rows: int

    @property
    def rows_per_s(self) -> float:
        return self.rows / self.took_s


def join_kernel(quick: bool, say: Say) -> Report:
    """Rows a second for windows and batches of several sizes, beside pandas and DuckDB."""
    scale = 4 if quick else 1
    cases: list[BenchCase] = []
    say("compiling")
    kernel_join(JoinCase(1_000, 1, 0.6, 400, 4_000))
    for b in (0.5, 0.7) if quick else (0.5, 0.6, 0.7):
        cases += _measured(JoinCase(5_000, 60, b, 100_000, 2_000_000 // scale), say)
    cases += _measured(JoinCase(5_000, 60, 0.7, 10_000, 1_000_000 // scale), say)
    cases += _measured(JoinCase(5_000, 6, 0.8, 100_000, 1_000_000 // scale), say)
    cases += _measured(JoinCase(1_000, 600, 0.7, 100_000, 2_000_000 // scale), say)
    cases += _measured(JoinCase(1_000, 600, 0.7, 10_000, 1_500_000 // scale), say)
    cases.append(_on_disk(JoinCase(5_000, 60, 0.7, 100_000, 2_000_000 // scale), say))
    return Report("join-kernel", tuple(cases))


def _measured(case: JoinCase, say: Say) -> list[BenchCase]:
    say(case.name)
    ours = kernel_join(case)
    last = kernel_join(case, only_last=_PEER_BATCHES)
    found = [limited(f"{case.name}: alone", ours.rows_per_s / 1e6, "million rows/s")]
    for name, peer in _peers().items():
        say(f"{case.name}: {name}")
        theirs = peer(case)
        same = (theirs.pairs, theirs.digest) == (last.pairs, last.digest)
        found.append(
            compared(f"{case.name}: over {name}", last.rows_per_s, "rows/s", theirs.rows_per_s,
                     at_least=2)
        )  # fmt: skip
        if not same:
            found.append(BenchCase(f"{case.name}: the same pairs as {name}", 0.0, "", ok=False))
    return found


def _peers() -> dict[str, Callable[[JoinCase], JoinResult]]:
    peers: dict[str, Callable[[JoinCase], JoinResult]] = {"pandas": pandas_join}
    if importlib.util.find_spec("duckdb"):
        peers["DuckDB"] = duckdb_join
    return peers


def _on_disk(case: JoinCase, say: Say) -> BenchCase:
    """The same with runs in files: written, sealed, mapped, verified."""
    say(f"{case.name}: runs in files")
    plain = kernel_join(case)
    with TemporaryDirectory() as folder:
        kept = kernel_join(case, cache=RunCache(Path(folder)))
    return compared(f"{case.name}: runs in files over in memory", kept.rows_per_s, "rows/s",
                    plain.rows_per_s, at_least=0.5)  # fmt: skip


def kernel_join(
    case: JoinCase, only_last: int | None = None, cache: RunCache | None = None
) -> JoinResult:
    """The kernel over all batches; with ``only_last``, counted over the last ones only."""
    left, right = case.sides()
    terms = JoinTerms(
        JoinSide(left[0].schema, ("l_key",), "l_ts"),
        JoinSide(right[0].schema, ("r_key",), "r_ts"),
        TimeBound(-case.window_us, case.window_us),
    )
    sides = MemoryBatches("l", left, "l_ts"), MemoryBatches("r", right, "r_ts")
    kept = cache or RunCache()
    offset = JoinOffset()
    pairs = digest = rows = 0
    took_s = 0.0
    for number in range(len(left)):
        marks = [side.latest_us(number) for side in sides]
        after = JoinOffset(
            SideOffset(offset.left.first, number + 1, marks[0]),
            SideOffset(offset.right.first, number + 1, marks[1]),
        )
        began = time.process_time()
        found = list(join_batch(terms, *sides, offset, after, kept))
        offset = advance(terms, *sides, offset, after)
        retire(terms, *sides, offset, kept)
        spent = time.process_time() - began
        if only_last is None or number >= len(left) - only_last:
            took_s += spent
            rows += left[number].num_rows + right[number].num_rows
            pairs += sum(table.num_rows for table in found)
            digest += sum(map(_digest, found))
    return JoinResult(pairs, digest, took_s, rows)


def _digest(found: pa.Table) -> int:
    """A sum over pairs that another set of pairs is unlikely to have."""
    product = pc.multiply(pc.add(found["l_value"], 1), pc.add(found["r_value"], 7))
    return int(pc.sum(product).as_py() or 0)


def _last_batches(case: JoinCase) -> Iterator[tuple[pa.Table, pa.Table, pa.Table, pa.Table]]:
    """New left rows, right rows up to then, left rows before, new right rows, of the last few."""
    left, right = case.sides()
    for number in range(max(0, len(left) - _PEER_BATCHES), len(left)):
        first = pc.min(pc.cast(left[number]["l_ts"], pa.int64())).as_py() - case.window_us
        windows = []
        for batches, time_ in ((right[: number + 1], "r_ts"), (left[:number], "l_ts")):
            rows = pa.concat_tables(batches) if batches else left[0].slice(0, 0)
            recent = pc.greater_equal(pc.cast(rows[time_], pa.int64()), first)
            windows.append(rows.filter(recent).combine_chunks())
        yield left[number], windows[0], windows[1], right[number]


def pandas_join(case: JoinCase) -> JoinResult:
    """The plain way: new rows merged with a window by key, then filtered by time."""
    pairs = digest = rows = 0
    took_s = 0.0
    for new_left, right_all, left_old, new_right in _last_batches(case):
        frames = [_frame(table) for table in (new_left, right_all, left_old, new_right)]
        began = time.process_time()
        for frame, other in ((frames[0], frames[1]), (frames[2], frames[3])):
            found = frame.merge(other, left_on="l_key", right_on="r_key")
            apart = found["r_ts"].to_numpy() - found["l_ts"].to_numpy()
            found = found[np.abs(apart) <= case.window_us]
            pairs += len(found)
            took_s += time.process_time() - began
            digest += int(((found["l_value"] + 1) * (found["r_value"] + 7)).sum())
            began = time.process_time()
        rows += new_left.num_rows + new_right.num_rows
    return JoinResult(pairs, digest, took_s, rows)


def _frame(rows: pa.Table) -> pd.DataFrame:
    return pd.DataFrame({
        name: (rows[name].cast(pa.int64()) if name.endswith("_ts") else rows[name]).to_numpy()
        for name in rows.column_names
    })  # fmt: skip


_PAIRS = """SELECT * FROM {left} JOIN {right} ON l_key = r_key
            AND r_ts BETWEEN l_ts - to_microseconds({us}) AND l_ts + to_microseconds({us})"""


def duckdb_join(case: JoinCase) -> JoinResult:
    """The same as two queries of DuckDB over Arrow tables, with one thread."""
    import duckdb

    pairs = digest = rows = 0
    took_s = 0.0
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        connection.execute("SET TimeZone = 'UTC'")
        for tables in _last_batches(case):
            names = ("new_left", "right_all", "left_old", "new_right")
            for name, table in zip(names, tables, strict=True):
                connection.register(name, table)
            for left, right in (("new_left", "right_all"), ("left_old", "new_right")):
                began = time.process_time()
                query = _PAIRS.format(left=left, right=right, us=case.window_us)
                found = connection.sql(query).to_arrow_table()
                took_s += time.process_time() - began
                pairs += found.num_rows
                digest += _digest(found)
            rows += tables[0].num_rows + tables[3].num_rows
    return JoinResult(pairs, digest, took_s, rows)
