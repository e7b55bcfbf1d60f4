"""Looks at a join while it runs: how long batches take, what is held, what memory is used."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from threading import Event, Thread
from types import TracebackType
from typing import NamedTuple

import psutil

_EVERY_S = 0.1


class WatchedJoin(NamedTuple):
    """A join at one moment: batches and their time so far, rows of its windows, bytes held."""

    batches: int
    busy_ms: float
    rows: int
    bytes: int


class JoinWatch:
    """Looks several times a second while inside."""

    def __init__(self, look: Callable[[], WatchedJoin | None]) -> None:
        self._look = look
        self._seen: list[WatchedJoin] = []
        self._over = Event()
        self._thread = Thread(target=self._work, daemon=True)
        self.peak_bytes = 0

    def __enter__(self) -> JoinWatch:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def _work(self) -> None:
        while not self._over.wait(_EVERY_S):
            self.peak_bytes = max(self.peak_bytes, _resident_bytes())
            # What is not there yet, or not any more, is not looked at.
            with suppress(KeyError, OSError):
                seen = self._look()
                self._seen += [] if seen is None else [seen]

    def summary(self) -> dict[str, object]:
        """What was seen."""
        steps = [
            (after.busy_ms - before.busy_ms) / (after.batches - before.batches)
            for before, after in pairwise(self._seen)
            if after.batches > before.batches
        ]
        return {
            "batch_ms": steps,
            "held_rows": max((seen.rows for seen in self._seen), default=0),
            "held_bytes": max((seen.bytes for seen in self._seen), default=0),
            "peak_bytes": self.peak_bytes,
        }


def _resident_bytes() -> int:
    """Memory of this process and of those that it has started; shared pages count for each."""
    found = 0
    own = psutil.Process()
    for process in (own, *own.children(recursive=True)):
        with suppress(psutil.Error):
            found += process.memory_info().rss
    return found
