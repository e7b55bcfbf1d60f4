"""The two ways in which a fragment can be run."""

from __future__ import annotations

from typing import Literal, get_args

from penstock.errors import InputError

EngineName = Literal["light", "native"]
"""``native``: a Structured Streaming query of its own. ``light``: a member of its node's bundle."""
ENGINES: tuple[EngineName, ...] = get_args(EngineName)


def checked_engine(written: str) -> EngineName:
    """``written`` as an engine; raises with the list of them.

    >>> checked_engine("light")
    'light'
    """
    for engine in ENGINES:
        if written == engine:
            return engine
    raise InputError(f"there is no engine {written!r}", hint="Say light or native.")
