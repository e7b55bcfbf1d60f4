"""What a receiver finds in a broadcast."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Heard:
    """A result that came whole."""

    broadcast: int
    cycle: int
    query: int
    plan: int
    payload: bytes


@dataclass(frozen=True)
class Absent:
    """A cycle that was heard and had nothing of a query."""

    broadcast: int
    cycle: int
    query: int


@dataclass(frozen=True)
class Lost:
    """A cycle that may have had a result of a query, of which nothing came whole."""

    broadcast: int
    cycle: int
    query: int


@dataclass(frozen=True)
class Missed:
    """Cycles of a broadcast that went by unheard, from ``first`` to ``last``."""

    broadcast: int
    first: int
    last: int


AirEvent = Heard | Absent | Lost | Missed


@dataclass
class Tuning:
    """Bytes during which a receiver was on and off, those that were no packet, and power-ups."""

    tuned_bytes: int = 0
    slept_bytes: int = 0
    garbage_bytes: int = 0
    replayed_packets: int = 0
    power_ups: int = 0
