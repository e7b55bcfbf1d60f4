"""What each fragment takes of a node, in percent, as the node itself has measured it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.balance.hierarchy.measures import SIZE_DIGITS
from penstock.model.measurements import NodeSample

_KEPT_S = 30.0


@dataclass(frozen=True)
class MeasuredSizes:
    """Percent of the node's cores and of its budget of memory, by fragment.

    ``cpu_besides`` is what takes processor time and cannot move: intakes.
    """

    cpu: Mapping[str, float] = field(default_factory=dict)
    memory: Mapping[str, float] = field(default_factory=dict)
    cpu_besides: float = 0.0


class SizeMeter:
    """Keeps what a node measured of late; :meth:`sizes` are means over the last ``window_s``.

    A fragment of which nothing is known yet is not among them.

    >>> from penstock.model.measurements import FragmentStatus, IntakeSample
    >>> meter = SizeMeter(cores=2, budget_bytes=1_000)
    >>> for at_s in (0.0, 2.0, 4.0):
    ...     status = FragmentStatus("f", cpu_ms=200 * at_s, state_bytes=250)
    ...     meter.note(NodeSample(at_s, intakes={"m": IntakeSample(100 * at_s)},
    ...                           fragments={"f": status}))
    >>> meter.sizes(4.0)
    MeasuredSizes(cpu={'f': 10.0}, memory={'f': 25.0}, cpu_besides=5.0)
    """

    def __init__(self, cores: int, budget_bytes: int) -> None:
        self._cores = cores
        self._budget_bytes = budget_bytes
        self._samples: deque[NodeSample] = deque()

    def note(self, sample: NodeSample) -> None:
        """Takes note of a measurement."""
        self._samples.append(sample)
        while sample.at_s - self._samples[0].at_s > _KEPT_S:
            self._samples.popleft()

    def sizes(self, window_s: float, budget_bytes: int | None = None) -> MeasuredSizes:
        """What each fragment took over the last while."""
        if len(self._samples) < 2:
            return MeasuredSizes()
        last = self._samples[-1]
        early = [sample for sample in self._samples if last.at_s - sample.at_s >= window_s - 0.1]
        begin = early[-1] if early else self._samples[0]
        series = [sample for sample in self._samples if sample.at_s >= begin.at_s]
        cpu = {
            name: percent
            for name in last.fragments
            if (percent := self._cpu(series, name)) is not None
        }
        budget = budget_bytes or self._budget_bytes
        memory = {
            name: round(100 * last.fragments[name].state_bytes / budget, SIZE_DIGITS)
            for name in cpu
        }
        besides = (self._cpu(series, name) or 0.0 for name in last.intakes)
        return MeasuredSizes(cpu, memory, round(sum(besides), SIZE_DIGITS))

    def _cpu(self, series: list[NodeSample], name: str) -> float | None:
        """Percent of the cores since the first sample that has the unit; None without two."""
        found = [
            (sample.at_s, unit.cpu_ms)
            for sample in series
            if (unit := sample.unit(name)) is not None
        ]
        # One that was started afresh meanwhile counts from zero again.
        since = max(
            (at for at in range(1, len(found)) if found[at][1] < found[at - 1][1]), default=0
        )
        found = found[since:]
        if len(found) < 2 or found[-1][0] <= found[0][0]:
            return None
        span_ms = 1_000 * (found[-1][0] - found[0][0])
        return round(100 * (found[-1][1] - found[0][1]) / span_ms / self._cores, SIZE_DIGITS)
