"""A flow for a benchmark: files of rows, one after another by the clock, and gaps in what comes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count, pairwise
from pathlib import Path
from threading import Event, Thread

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


class Paced:
    """Does something again and again in a thread, until stopped or until it fails."""

    def __init__(self, every_s: float, do: Callable[[int, float], None]) -> None:
        self._every_s = every_s
        self._do = do
        self._failure: BaseException | None = None
        self._stopped = Event()
        self._thread = Thread(target=self._run, name="paced", daemon=True)

    def start(self) -> None:
        """Begins."""
        self._thread.start()

    def stop(self) -> None:
        """Ends after what is under way; raises what has failed."""
        self._stopped.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        due_s = time.time()
        try:
            for number in count():
                # One that took too long is not made up for.
                due_s = max(due_s + self._every_s, time.time())
                if self._stopped.wait(due_s - time.time()):
                    return
                self._do(number, due_s)
        except BaseException as error:
            self._failure = error


@contextmanager
def flowing(give: Callable[[float], None]) -> Iterator[None]:
    """Calls ``give(STEP_S)`` by the clock meanwhile; raises at the end if that had failed."""
    paced = Paced(STEP_S, lambda number, due_s: give(STEP_S))
    paced.start()
    try:
        yield
    finally:
        paced.stop()


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
