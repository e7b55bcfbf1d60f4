"""What a process and all below it have; those that end meanwhile do not count."""

from __future__ import annotations

import time
from collections.abc import Callable

import psutil

_SETTLED_S = 0.05


def _settle() -> None:
    time.sleep(_SETTLED_S)


def total(
    pid: int, of: Callable[[psutil.Process], float], settle: Callable[[], None] = _settle
) -> float:
    """The sum of something over a process and all below it.

    A process that was forked only now still has its parent's memory, all of it: it is asked a
    moment later, when it has become what it was forked for.
    """
    tree = _tree(pid)
    settle()
    return sum(_asked(process, of) for process in tree)


def resident_bytes(process: psutil.Process) -> int:
    """Its memory, with what it shares with others."""
    return int(process.memory_info().rss)


def own_bytes(process: psutil.Process) -> int:
    """Its memory, with its part of what it shares with others where the system can tell."""
    full = process.memory_full_info()
    return int(getattr(full, "pss", full.rss))


def processor_s(process: psutil.Process) -> float:
    """The processor time it has had."""
    times = process.cpu_times()
    return float(times.user + times.system)


def _tree(pid: int) -> list[psutil.Process]:
    try:
        top = psutil.Process(pid)
        return [top, *top.children(recursive=True)]
    except psutil.Error:
        return []


def _asked(process: psutil.Process, of: Callable[[psutil.Process], float]) -> float:
    try:
        return of(process)
    except psutil.Error:
        return 0.0
