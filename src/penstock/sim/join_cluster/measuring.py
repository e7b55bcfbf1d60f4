"""What a run of a join on a cluster measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.load.arrays import Floats
from penstock.sim.join_cluster.serving import CPU_S, DELAY_S, LONGEST_S, RESULTS


@dataclass(frozen=True)
class JoinMeasurements:
    """Means over the measured time, per worker in seconds of it.

    ``delay_s``: mean production delay, from the newer tuple's arrival to the result. ``waiting``:
    the most tuples that lay at the master. ``window_bytes``: the most that a worker held.
    """

    measured_s: float
    delay_s: float
    longest_s: float
    results: int
    cpu_s: tuple[float, ...]
    communication_s: tuple[float, ...]
    waiting: int
    window_bytes: int
    workers: float

    @property
    def idle_s(self) -> tuple[float, ...]:
        """What is left of the measured time, per worker."""
        used = zip(self.cpu_s, self.communication_s, strict=True)
        return tuple(max(0.0, self.measured_s - one - other) for one, other in used)


class Meter:
    """Adds up what happens; :meth:`reset` forgets what happened during the warm-up."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self.reset()

    def reset(self) -> None:
        self._tallies: list[Floats] = []
        self._cpu_s = np.zeros(self._workers)
        self._communication_s = np.zeros(self._workers)
        self._waiting = 0
        self._window_bytes = 0
        self._degrees: list[int] = []

    def note_work(self, worker: int, tally: Floats) -> None:
        """A worker has joined blocks."""
        self._cpu_s[worker] += tally[CPU_S]
        self._tallies.append(tally)

    def note_communication(self, worker: int, seconds: float) -> None:
        """A worker has sent, received, or waited to."""
        self._communication_s[worker] += seconds

    def note_waiting(self, tuples: int) -> None:
        """So many tuples lie at the master."""
        self._waiting = max(self._waiting, tuples)

    def note_held(self, held_bytes: Sequence[int]) -> None:
        """So many bytes of windows are held by each worker."""
        self._window_bytes = max(self._window_bytes, *held_bytes)

    def note_workers(self, workers: int) -> None:
        """So many workers take part."""
        self._degrees.append(workers)

    def summarise(self, seconds: float, workers: int) -> JoinMeasurements:
        """Everything since the last reset, over so many seconds."""
        tallies = np.array(self._tallies)
        results = float(tallies[:, RESULTS].sum())
        return JoinMeasurements(
            seconds,
            float(tallies[:, DELAY_S].sum()) / results if results else 0.0,
            float(tallies[:, LONGEST_S].max()),
            round(results),
            tuple(self._cpu_s.tolist()),
            tuple(self._communication_s.tolist()),
            self._waiting,
            self._window_bytes,
            float(np.mean(self._degrees)) if self._degrees else float(workers),
        )
