"""How much of the machine this process and all it started use."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil


@dataclass(frozen=True)
class NodeUse:
    """What a node used over the last moment.

    ``cpu`` is the share of its cores, ``worked_s`` the same in seconds. ``resident_bytes`` counts
    memory that processes share once for each of them, ``memory_bytes`` once altogether where the
    system can tell.
    """

    cpu: float
    memory_bytes: int
    resident_bytes: int
    worked_s: float = 0.0


class NodeMeter:
    """Measures a tree of processes; :meth:`sample` gives the use since the sample before.

    ``elsewhere_s`` says how long something has worked for it on other machines so far.
    """

    def __init__(
        self,
        cores: int,
        processes: Callable[[], Iterable[psutil.Process]] | None = None,
        clock: Callable[[], float] = time.monotonic,
        elsewhere_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._cores = cores
        self._processes = processes or _own_tree
        self._clock = clock
        self._taken_s = clock()
        self._busy_s: dict[int, float] = {}
        self._elsewhere_s = elsewhere_s
        self._counted_s = elsewhere_s()

    def sample(self) -> NodeUse:
        """The use of the machine since the last call."""
        now_s, before = self._clock(), self._busy_s
        self._busy_s, resident, own = {}, 0, 0
        for process in self._processes():
            measured = _measured(process)
            if measured is None:
                continue
            self._busy_s[process.pid], one_resident, one_own = measured
            # Forked only now, it still has its parent's memory, all of it.
            if not before or process.pid in before:
                resident, own = resident + one_resident, own + one_own
        # What a process did before it was first seen, or after it was last seen, does not count.
        worked_s = sum(busy - before.get(pid, busy) for pid, busy in self._busy_s.items())
        before_s, self._counted_s = self._counted_s, self._elsewhere_s()
        worked_s += self._counted_s - before_s
        passed_s, self._taken_s = max(1e-6, now_s - self._taken_s), now_s
        return NodeUse(worked_s / passed_s / self._cores, own, resident, worked_s)


def _own_tree() -> list[psutil.Process]:
    import psutil

    own = psutil.Process()
    return [own, *own.children(recursive=True)]


def _measured(process: psutil.Process) -> tuple[float, int, int] | None:
    """Seconds of work, resident memory, and memory with shared parts divided; None if gone."""
    import psutil

    try:
        with process.oneshot():
            times, resident = process.cpu_times(), process.memory_info().rss
        return times.user + times.system, resident, _proportional(process, resident)
    except psutil.Error:
        return None


def _proportional(process: psutil.Process, resident: int) -> int:
    import psutil

    if not psutil.LINUX:
        return resident
    try:
        return int(process.memory_full_info().pss)
    except psutil.AccessDenied:
        return resident
