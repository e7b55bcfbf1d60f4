"""Waiting for what other threads bring about."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(condition: Callable[[], object], patience_s: float = 30.0) -> None:
    """Returns as soon as the condition holds; fails if it does not in time."""
    give_up_s = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < give_up_s, f"not within {patience_s:g} s"
        time.sleep(0.01)
