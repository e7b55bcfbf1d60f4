"""A flow for a benchmark: files of rows, one after another by the clock, and gaps in what comes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

STEP_S = 0.25
"""The time between two files of a flow."""


def put_file(folder: Path, number: int, rows: pa.Table) -> None:
    """Puts rows into the folder as a file, whole or not at all.

    A directory's files are taken as soon as they have a name that its pattern knows.
    """
    path = folder / f"{number:08d}.parquet"
    pq.write_table(rows, path.with_suffix(".new"))
    path.with_suffix(".new").rename(path)


@contextmanager
def flowing(give: Callable[[float], None]) -> Iterator[None]:
    """Calls ``give(STEP_S)`` by the clock meanwhile; raises at the end if that had failed."""
    over = threading.Event()
    failures: list[BaseException] = []

    def flow() -> None:
        due_s = time.monotonic()
        try:
            while not over.is_set():
                give(STEP_S)
                due_s += STEP_S
                over.wait(max(0.0, due_s - time.monotonic()))
        except BaseException as failure:
            failures.append(failure)

    thread = threading.Thread(target=flow, name="flow", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    if failures:
        raise failures[0]


def longest_gap_s(times: Sequence[float], began_s: float, ended_s: float) -> float:
    """The longest time between two of these moments that touches a stretch.

    >>> longest_gap_s([1.0, 2.0, 5.0, 5.5, 9.0], 4.0, 5.2)
    3.0
    """
    gaps = (
        later - earlier
        for earlier, later in pairwise(times)
        if later >= began_s and earlier <= ended_s
    )
    return max(gaps, default=0.0)
