"""How old rows were when results of them were out, in the latest batches."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field, replace

from penstock.model.measurements import FragmentStatus

_REMEMBERED = 200
_AT_LEAST = 10
_WITHIN_S = 60.0
_RECENT_S = 30.0


@dataclass
class LatencyLog:
    """The latencies of the latest batches with rows of one fragment.

    Those of the last minute, or a few where there were not as many: how it began says little of how
    it does.
    """

    _latencies_s: deque[float] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    _added_s: deque[float] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))

    def add(self, latency_s: float, now_s: float | None = None) -> None:
        """One more batch with rows is out."""
        now_s = time.time() if now_s is None else now_s
        self._latencies_s.append(latency_s)
        self._added_s.append(now_s)
        while len(self._added_s) > _AT_LEAST and now_s - self._added_s[0] > _WITHIN_S:
            self._latencies_s.popleft()
            self._added_s.popleft()

    def told(self, status: FragmentStatus, now_s: float) -> FragmentStatus:
        """A status with median, 99th percentile and newest, None where that is long ago."""
        ordered = sorted(self._latencies_s)
        if not ordered:
            return status
        p50, p99 = (ordered[int(share * (len(ordered) - 1))] for share in (0.5, 0.99))
        is_new = now_s - self._added_s[-1] < _RECENT_S
        return replace(
            status,
            latency_p50_s=round(p50, 3),
            latency_p99_s=round(p99, 3),
            latest_latency_s=round(self._latencies_s[-1], 3) if is_new else None,
        )

    def take(self) -> list[float]:
        """Those since it was last asked."""
        taken = list(self._latencies_s)
        self._latencies_s.clear()
        self._added_s.clear()
        return taken
