"""A join that goes on over many windows: what it holds stays the same."""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from kernels.window_join.streams import table, terms_of
from penstock.kernels.window_join import (
    JoinOffset,
    JoinSide,
    RunCache,
    SideOffset,
    advance,
    join_batch,
    retire,
)
from penstock.model.windows import TimeBound

BATCHES, WINDOW, ROWS = 60, 6, 100


class MadeBatches:
    """Batches that are made when they are read, so that nothing but the join holds them."""

    def __init__(self, side: JoinSide) -> None:
        self.name, self._side = side.time, side

    def read(self, number: int) -> pa.Table:
        rows = [(number * 10 + at % 10, at % 7, at) for at in range(ROWS)]
        return table(self._side, rows)

    def latest_us(self, number: int) -> int | None:
        return number * 10 + 9


@pytest.mark.parametrize("in_files", [False, True])
def test_memory_and_runs_level_off(tmp_path: Path, in_files: bool) -> None:
    terms = terms_of((pa.int64(),), TimeBound(-10 * WINDOW, 10 * WINDOW), kind="left")
    sides = MadeBatches(terms.left), MadeBatches(terms.right)
    cache = RunCache(tmp_path) if in_files else RunCache()
    offset = JoinOffset()
    # All of it is there from the beginning, so that it does not count.
    held = {kind: np.zeros(BATCHES) for kind in ("rows", "runs", "the rest")}
    # What others hold is not looked through for garbage again and again.
    gc.freeze()
    tracemalloc.start()
    try:
        for number in range(BATCHES):
            after = JoinOffset(
                SideOffset(offset.left.first, number + 1, number * 10),
                SideOffset(offset.right.first, number + 1, number * 10),
            )
            for rows in join_batch(terms, *sides, offset, after, cache):
                assert rows.num_rows
            offset = advance(terms, *sides, offset, after)
            retire(terms, *sides, offset, cache)
            cache.close_unused()
            gc.collect()
            in_folder = sum(path.stat().st_size for path in tmp_path.glob("*.run"))
            held["runs"][number] = in_folder or cache.size_bytes()
            held["rows"][number] = pa.total_allocated_bytes()
            held["the rest"][number] = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
        gc.unfreeze()
    for kind, sizes in held.items():
        early, late = sizes[WINDOW : 4 * WINDOW].max(), sizes[-4 * WINDOW :].max()
        assert early > 0 and late <= 1.2 * early, kind
    assert offset.left.stop - offset.left.first < 3 * WINDOW
