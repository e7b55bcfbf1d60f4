"""Bringing a stream in, in the background."""

from __future__ import annotations

import threading
import time
from typing import Protocol

_POLL_S = 0.1


class Bringing(Protocol):
    """What brings a stream into its channel, step by step."""

    @property
    def is_finished(self) -> bool:
        """Whether the stream has ended and its channel says so."""

    @property
    def is_held_back(self) -> bool:
        """Whether the slowest reader is so far behind that nothing more is let in."""

    def step(self) -> bool:
        """Commits what is there now, up to a batch; whether there was anything.

        A step that fails leaves nothing behind and may be tried again.
        """

    def close(self) -> None:
        """Lets go of what it holds outside of this process."""


class IngestThread(threading.Thread):
    """Runs an ingest until its stream ends or it is stopped."""

    def __init__(self, ingest: Bringing, name: str, poll_s: float = _POLL_S) -> None:
        super().__init__(name=f"ingest-{name}", daemon=True)
        self._ingest = ingest
        self._poll_s = poll_s
        self._stopping = threading.Event()
        self.failure: BaseException | None = None
        self._spent_s = 0.0

    @property
    def is_finished(self) -> bool:
        return self._ingest.is_finished

    @property
    def is_held_back(self) -> bool:
        return self._ingest.is_held_back

    @property
    def spent_ms(self) -> float:
        """The processor time it has had."""
        return 1_000 * self._spent_s

    def run(self) -> None:
        try:
            while not self._stopping.is_set() and not self._ingest.is_finished:
                was_busy = self._ingest.step()
                self._spent_s = time.thread_time()
                if not was_busy:
                    self._stopping.wait(self._poll_s)
        except BaseException as error:
            self.failure = error
        finally:
            self._ingest.close()

    def stop(self) -> None:
        """Ends the thread after the step under way."""
        self._stopping.set()
        self.join()
