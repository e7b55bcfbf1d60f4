"""How many rows a fragment remembers: those that came within the time that it keeps them."""

from __future__ import annotations

from collections import deque

_PIECES = 100
"""Rows that came within a hundredth of the time are forgotten together."""


class KeptRows:
    """Counts rows for ``keeps_s`` after they came, in little memory.

    >>> kept = KeptRows(10.0)
    >>> kept.add(50, now_s=1.0)
    >>> kept.add(20, now_s=8.0)
    >>> kept.count(now_s=9.0), kept.count(now_s=12.0), kept.count(now_s=19.0)
    (70.0, 20.0, 0.0)
    """

    def __init__(self, keeps_s: float = 0.0) -> None:
        self._keeps_s = keeps_s
        self._pieces: deque[tuple[float, float]] = deque()
        self._sum = 0.0

    def add(self, count: float, now_s: float) -> None:
        """Rows have come."""
        if self._keeps_s <= 0 or count <= 0:
            return
        self._forget(now_s)
        self._sum += count
        if self._pieces and now_s - self._pieces[-1][0] < self._keeps_s / _PIECES:
            began_s, known = self._pieces.pop()
            self._pieces.append((began_s, known + count))
        else:
            self._pieces.append((now_s, count))

    def count(self, now_s: float) -> float:
        """How many are remembered now."""
        self._forget(now_s)
        return self._sum

    def _forget(self, now_s: float) -> None:
        while self._pieces and now_s - self._pieces[0][0] > self._keeps_s:
            self._sum -= self._pieces.popleft()[1]
        if not self._pieces:
            self._sum = 0.0
