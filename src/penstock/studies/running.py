"""How the points of a study are worked through: one by one, or in several processes.

A runner is any callable of the form :class:`penstock.studies.report.Runner`, so that there are
others without touching a study: ``penstock.spark.spreading`` has a Spark job with a task for each
point.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from typing import TypeVar

from penstock.studies.report import Say

_P = TypeVar("_P")
_R = TypeVar("_R")


def one_by_one(function: Callable[[_P], _R], points: Sequence[_P], say: Say) -> list[_R]:
    """All points in this process, in order."""
    found = []
    for number, point in enumerate(points, 1):
        say(f"point {number} of {len(points)}")
        found.append(function(point))
    return found


@dataclass(frozen=True)
class Processes:
    """All points in ``workers`` processes of their own; a failure of one ends all.

    Processes are started afresh, not forked: they share nothing, and work on every platform. Even
    a single worker is one, so that its arithmetic is that of many.
    """

    workers: int

    def __call__(self, function: Callable[[_P], _R], points: Sequence[_P], say: Say) -> list[_R]:
        pool = ProcessPoolExecutor(
            max(1, min(self.workers, len(points))),
            multiprocessing.get_context("spawn"),
            _single_threaded,
        )
        try:
            futures = [pool.submit(function, point) for point in points]
            for number, future in enumerate(as_completed(futures), 1):
                future.result()
                say(f"point {number} of {len(points)}")
            return [future.result() for future in futures]
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _single_threaded() -> None:
    """One process per processor is enough: libraries in it shall not start threads as well."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
