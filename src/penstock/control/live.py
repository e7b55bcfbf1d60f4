"""The view of a system as server-sent events: made once a second, however many follow it."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable

from starlette.concurrency import run_in_threadpool

log = logging.getLogger(__name__)

_EVERY_S = 1.0
_SIGN_OF_LIFE_S = 10.0


class LiveText:
    """The newest text of something, made anew at most every second, by whoever asks first."""

    def __init__(
        self, make: Callable[[], str], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._make = make
        self._clock = clock
        self._lock = threading.Lock()
        self._made_s = float("-inf")
        self._text = ""

    def newest(self) -> str:
        """The text, never much older than a second."""
        with self._lock:
            if self._clock() - self._made_s >= 0.9 * _EVERY_S:
                self._text = self._make()
                self._made_s = self._clock()
            return self._text


async def events(text: LiveText, is_over: Callable[[], bool]) -> AsyncIterator[str]:
    """One event for each change of the text, and now and then a sign of life.

    What cannot be made is logged and tried again: those who follow see the silence.
    """
    told, told_s = "", 0.0
    yield "retry: 1000\n\n"
    while not is_over():
        try:
            now = await run_in_threadpool(text.newest)
        except Exception:
            log.exception("the view could not be made")
            now = told
        if now != told:
            told, told_s = now, time.monotonic()
            yield f"event: view\ndata: {now}\n\n"
        elif time.monotonic() - told_s > _SIGN_OF_LIFE_S:
            told_s = time.monotonic()
            yield ": still here\n\n"
        await asyncio.sleep(_EVERY_S)
