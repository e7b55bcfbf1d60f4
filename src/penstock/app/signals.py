"""Being asked to stop: Ctrl-C, a polite kill, a closed terminal."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Self

_Handler = Callable[[int, FrameType | None], object] | int | None
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_AT_ONCE = b"\npenstock leaves at once; the same command goes on from the last finished batch\n"


class StopRequest:
    """While entered, the first request to stop is only noted; the second ends the process.

    Everything that must survive is on disk after each batch, so leaving at once loses no rows
    either; it only leaves a batch to be done again. Meanwhile a reader of our output that has gone
    raises :class:`BrokenPipeError` instead of ending the process.
    """

    def __init__(self, descriptor: int = 2) -> None:
        self._descriptor = descriptor
        self._asked = threading.Event()
        self._former: dict[int, _Handler] = {}

    def __enter__(self) -> Self:
        for number in _SIGNALS:
            self._former[number] = signal.signal(number, self._on_signal)
        self._former[signal.SIGPIPE] = signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)

    @property
    def asked(self) -> bool:
        """Whether somebody wants this process to stop."""
        return self._asked.is_set()

    def wait(self, seconds: float) -> bool:
        """Waits that long, or until asked to stop; whether asked."""
        return self._asked.wait(seconds)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._asked.is_set() and number == signal.SIGINT:
            os.write(self._descriptor, _AT_ONCE)
            os._exit(130)
        self._asked.set()
