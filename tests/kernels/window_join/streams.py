"""Small streams for joins, the plain meaning of a join, and running the kernel over them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa

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

TS = pa.timestamp("us", "UTC")
END = 1 << 60

Row = tuple[Any, ...]
"""Time, keys, number."""


def side(prefix: str, key_types: Sequence[pa.DataType]) -> JoinSide:
    """A side with a time, keys and a number by which its rows are told apart."""
    keys = tuple(f"{prefix}_k{at}" for at in range(len(key_types)))
    fields = [(f"{prefix}_ts", TS), *zip(keys, key_types, strict=True), (f"{prefix}_n", pa.int64())]
    return JoinSide(pa.schema(fields), keys, f"{prefix}_ts")


def terms_of(
    types: Sequence[pa.DataType],
    bound: TimeBound,
    right_types: Sequence[pa.DataType] | None = None,
    **more: Any,
) -> JoinTerms:
    return JoinTerms(side("l", types), side("r", right_types or types), bound, **more)


def table(side: JoinSide, rows: Sequence[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [[] for _ in side.schema]
    arrays = [pa.array(one, field.type) for one, field in zip(columns, side.schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=side.schema)


def same_key(one: object, other: object) -> bool:
    if one is None or other is None:
        return False
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return one == other


def expected(
    terms: JoinTerms,
    left: Sequence[Row],
    right: Sequence[Row],
    accepts: Callable[[Row, Row], bool] = lambda one, other: True,
) -> Counter[tuple[int, int | None]]:
    """The plain meaning: every pair of the numbers of joined rows, and left ones without."""
    found: Counter[tuple[int, int | None]] = Counter()
    for one in left:
        alone = True
        for other in right:
            timely = (
                one[0] is not None
                and other[0] is not None
                and terms.bound.lower_us <= other[0] - one[0] <= terms.bound.upper_us
            )
            keys = zip(one[1:-1], other[1:-1], strict=True)
            if timely and all(same_key(*pair) for pair in keys) and accepts(one, other):
                found[one[-1], other[-1]] += 1
                alone = False
        if alone and terms.kind == "left":
            found[one[-1], None] += 1
    return found


def cut(rows: Sequence[Row], sizes: Iterable[int]) -> list[list[Row]]:
    """Rows in batches of these sizes, the last taking what is left."""
    batches, at = [], 0
    for size in sizes:
        batches.append(list(rows[at : at + size]))
        at += size
    return [*batches, list(rows[at:])]


def watermarks(batches: Sequence[Sequence[Row]], lateness_us: int) -> list[int | None]:
    """The watermark after each batch: the latest time so far less the lateness; at the end none."""
    found: list[int | None] = []
    latest: int | None = None
    for rows in batches:
        times = [row[0] for row in rows if row[0] is not None]
        latest = max([*times, *([] if latest is None else [latest])], default=None)
        found.append(None if latest is None else latest - lateness_us)
    return [*found[:-1], END]


def in_time(rows: Sequence[Row], lateness_us: int) -> list[Row]:
    """The rows that are not late by the rule of streams."""
    kept, latest = [], None
    for row in rows:
        if row[0] is None or latest is None or row[0] >= latest - lateness_us:
            kept.append(row)
            if row[0] is not None:
                latest = row[0] if latest is None else max(latest, row[0])
    return kept


def kernel_rows(
    terms: JoinTerms,
    left: Sequence[Sequence[Row]],
    right: Sequence[Sequence[Row]],
    lateness_us: int,
    caches: Callable[[], RunCache] = RunCache,
    steps: Sequence[tuple[int, int]] | None = None,
) -> Counter[tuple[int, int | None]]:
    """What the kernel gives over batches of both sides, read up to each of ``steps`` in turn."""
    lefts = MemoryBatches("left", [table(terms.left, rows) for rows in left], "l_ts")
    rights = MemoryBatches("right", [table(terms.right, rows) for rows in right], "r_ts")
    left_marks, right_marks = watermarks(left, lateness_us), watermarks(right, lateness_us)
    cache = caches()
    offset = JoinOffset()
    found: Counter[tuple[int, int | None]] = Counter()
    both = max(len(left), len(right))
    every = [(min(at, len(left)), min(at, len(right))) for at in range(1, both + 1)]
    for left_stop, right_stop in steps or every:
        after = JoinOffset(
            _at(offset.left, left_stop, left_marks), _at(offset.right, right_stop, right_marks)
        )
        for rows in join_batch(terms, lefts, rights, offset, after, cache):
            assert rows.schema == terms.schema
            found.update(zip(rows["l_n"].to_pylist(), rows["r_n"].to_pylist(), strict=True))
        offset = advance(terms, lefts, rights, offset, after)
        retire(terms, lefts, rights, offset, cache)
    return found


def _at(offset: SideOffset, stop: int, marks: Sequence[int | None]) -> SideOffset:
    return SideOffset(offset.first, stop, marks[stop - 1] if stop else None)
