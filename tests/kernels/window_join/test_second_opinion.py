"""Joins of larger and of recorded streams, as DuckDB computes them over the finished input."""

from __future__ import annotations

import gzip
from collections import Counter
from itertools import pairwise
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv
import pytest

from kernels.window_join.streams import END, TS
from penstock.feeds.lateness import sift
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

DATA = Path(__file__).parents[4] / "shared" / "data"
SECOND = 1_000_000


def kernel_counts(
    terms: JoinTerms, left: pa.Table, right: pa.Table, batch: int, lateness_us: int
) -> tuple[Counter[tuple[object, ...]], int]:
    """How often the kernel gives each joined row, and the most batches a window spanned."""
    sides, marks = [], []
    for side, rows in ((terms.left, left), (terms.right, right)):
        tables = [rows.slice(at, batch) for at in range(0, rows.num_rows, batch)]
        sides.append(MemoryBatches(side.time, tables, side.time))
        latest, found = None, []
        for number in range(len(tables)):
            newest = sides[-1].latest_us(number)
            latest = newest if latest is None else max(latest, newest)
            found.append(latest - lateness_us)
        marks.append([*found[:-1], END])
    cache, offset, widest = RunCache(), JoinOffset(), 0
    counts: Counter[tuple[object, ...]] = Counter()
    for step in range(1, max(map(len, marks)) + 1):
        stops = [min(step, len(mark)) for mark in marks]
        after = JoinOffset(
            *(
                SideOffset(before.first, stop, mark[stop - 1])
                for before, stop, mark in zip(
                    (offset.left, offset.right), stops, marks, strict=True
                )
            )
        )
        for rows in join_batch(terms, *sides, offset, after, cache):
            counts.update(zip(*(column.to_pylist() for column in rows.columns), strict=True))
        offset = advance(terms, *sides, offset, after)
        retire(terms, *sides, offset, cache)
        widest = max(widest, offset.left.stop - offset.left.first)
    return counts, widest


def duckdb_counts(query: str, left: pa.Table, right: pa.Table) -> Counter[tuple[object, ...]]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("l", left)
        connection.register("r", right)
        rows = connection.sql(query).to_arrow_table()
    return Counter(zip(*(column.to_pylist() for column in rows.columns), strict=True))


@pytest.mark.parametrize(("b", "largest"), [(0.5, 2_000), (0.8, 300_000)])
def test_skewed_keys_out_of_order(b: float, largest: int) -> None:
    """Different windows, groups, rows out of order by up to a second."""
    feeds = [
        SkewedKeys(rate_per_s=200, seconds=20, b=b, largest=largest, seed=seed, disorder_s=1)
        for seed in (1, 2)
    ]
    left, right = (
        feed.read(0, feed.size).rename_columns([f"{side}_{name}" for name in feed.schema.names])
        for side, feed in zip("lr", feeds, strict=True)
    )
    terms = JoinTerms(
        JoinSide(left.schema, ("l_key",), "l_ts"),
        JoinSide(right.schema, ("r_key",), "r_ts"),
        TimeBound(-3 * SECOND, 5 * SECOND),
        groups=60,
    )
    found, widest = kernel_counts(terms, left, right, batch=150, lateness_us=SECOND)
    assert found == duckdb_counts(
        """SELECT * FROM l JOIN r ON l_key = r_key
           AND r_ts BETWEEN l_ts - INTERVAL 3 SECONDS AND l_ts + INTERVAL 5 SECONDS""",
        left,
        right,
    )
    assert found.total() > 1_000 and widest < 20


def _log(name: str, prefix: str, columns: list[str]) -> pa.Table:
    """A recorded log in the order of its file, as text except for the time."""
    with gzip.open(DATA / f"net_wrccdc2018_zeek_{name}.tsv.gz") as file:
        rows = pv.read_csv(
            file,
            parse_options=pv.ParseOptions(delimiter="\t", quote_char=False),
            convert_options=pv.ConvertOptions(
                include_columns=columns,
                column_types={
                    "ts": pa.decimal128(16, 6),
                    **dict.fromkeys(columns[1:], pa.string()),
                },
                null_values=["-"],
                strings_can_be_null=True,
            ),
        )
    micros = pc.multiply(rows["ts"], pa.scalar(1_000_000, pa.decimal128(7))).cast(pa.int64())
    rows = rows.set_column(0, "ts", micros.cast(TS))
    return rows.rename_columns([f"{prefix}_{column.rsplit('.', 1)[-1]}" for column in columns])


@pytest.mark.skipif(not DATA.is_dir(), reason="real recordings are not in ../shared/data")
@pytest.mark.parametrize("kind", ["inner", "left"])
def test_recorded_names_and_connections_of_a_host(kind: str) -> None:
    """Names asked for and connections opened by a host within two minutes after, as recorded."""
    lateness_us = 60 * SECOND
    asked = _log("dns", "d", ["ts", "id.orig_h", "query"])
    opened = _log("ssl", "s", ["ts", "id.orig_h", "server_name"])
    asked, opened = (
        sift(rows, time, lateness_us, None).kept
        for rows, time in ((asked, "d_ts"), (opened, "s_ts"))
    )
    # All of them have a few hosts only and make tens of millions of pairs: some do.
    every = pa.array(range(0, asked.num_rows, 20))
    asked = asked.take(every)
    terms = JoinTerms(
        JoinSide(asked.schema, ("d_orig_h",), "d_ts"),
        JoinSide(opened.schema, ("s_orig_h",), "s_ts"),
        TimeBound(0, 120 * SECOND),
        kind=kind,  # type: ignore[arg-type]
        residual=lambda rows: pc.equal(rows["d_query"], rows["s_server_name"]),
        groups=60,
    )
    found, _ = kernel_counts(terms, asked, opened, batch=4_000, lateness_us=lateness_us)
    expected = duckdb_counts(
        f"""SELECT * FROM l {kind} JOIN r ON d_orig_h = s_orig_h AND d_query = s_server_name
            AND s_ts BETWEEN d_ts AND d_ts + INTERVAL 2 MINUTES""",
        asked,
        opened,
    )
    times = [one for one, _ in pairwise(asked["d_ts"].to_pylist())]
    assert times != sorted(times), "the recording is out of order"
    assert found == expected
    assert found.total() > 1_000
