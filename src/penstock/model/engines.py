"""The ways in which a fragment can be run, and streams can be joined."""

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


JoinWay = Literal["partitioned", "native"]
"""How streams are joined. ``partitioned``: by the window join of light fragments, from runs of rows
sorted by key. ``native``: by Spark's own join, which keeps rows in a state store."""
JOIN_WAYS: tuple[JoinWay, ...] = get_args(JoinWay)


def checked_join_way(written: str) -> JoinWay:
    """``written`` as a way to join streams; raises with the list of them.

    >>> checked_join_way("native")
    'native'
    """
    for way in JOIN_WAYS:
        if written == way:
            return way
    raise InputError(f"streams cannot be joined {written!r}", hint="Say partitioned or native.")
