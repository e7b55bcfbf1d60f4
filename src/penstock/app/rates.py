"""Rows per second over the last few seconds, falling to zero when nothing comes any more."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import replace

from penstock.model.measurements import FragmentStatus

WINDOW_S = 5.0


class Rates:
    """Follows the row counts of fragments and replaces their rates by recent ones."""

    def __init__(self, window_s: float = WINDOW_S) -> None:
        self._window_s = window_s
        self._seen: dict[str, deque[tuple[float, int]]] = {}

    def recent(
        self, statuses: Iterable[FragmentStatus], now_s: float
    ) -> tuple[FragmentStatus, ...]:
        """The statuses with the rate of rows in over the last few seconds."""
        return tuple(
            replace(status, rows_in_per_s=self._rate(status.fragment, status.rows_in, now_s))
            for status in statuses
        )

    def _rate(self, fragment: str, rows: int, now_s: float) -> float:
        seen = self._seen.setdefault(fragment, deque())
        seen.append((now_s, rows))
        # One older than the window stays, so that the whole window is always covered.
        while len(seen) > 2 and seen[1][0] <= now_s - self._window_s:
            seen.popleft()
        passed_s = now_s - seen[0][0]
        return (rows - seen[0][1]) / passed_s if passed_s > 0 else 0.0
