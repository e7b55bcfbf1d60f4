"""Waiting for what other threads and processes bring about."""

from __future__ import annotations

import time
from collections.abc import Callable

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.002, 0.05


def until(
    condition: Callable[[], object],
    patience_s: float = 30.0,
    what: str | Callable[[], object] = "",
    check: Callable[[], object] = lambda: None,
) -> None:
    """Returns as soon as the condition holds; fails if it does not in time.

    ``what`` says what was waited for, or tells by then how things stand. ``check`` is called while
    waiting, to raise what makes further waiting vain.
    """
    give_up_s = time.monotonic() + patience_s
    pause_s = _FIRST_PAUSE_S
    while not condition():
        check()
        if time.monotonic() >= give_up_s:
            told = what() if callable(what) else what
            raise AssertionError(f"not within {patience_s:g} s: {told or 'what was waited for'}")
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
