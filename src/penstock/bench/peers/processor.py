"""The processor time of a process and of those that it has started."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import psutil


def processor_seconds(with_own: bool) -> dict[int, float]:
    """Processor time so far of Spark and its lasting Python workers, by their numbers.

    ``with_own``: of this process as well, where it does a part of the work.
    """
    own = psutil.Process()
    found = {}
    for process in (*([own] if with_own else []), *own.children(recursive=True)):
        with suppress(psutil.Error):
            times = process.cpu_times()
            found[process.pid] = times.user + times.system
    return found


def spent_s(before: Mapping[int, float], after: Mapping[int, float]) -> float:
    """What the processes that lasted have spent in between.

    >>> spent_s({1: 2.0, 2: 1.0}, {1: 5.0, 3: 9.0})
    3.0
    """
    return sum(after[pid] - before[pid] for pid in before.keys() & after)
