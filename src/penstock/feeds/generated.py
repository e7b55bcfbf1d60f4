"""What all generated feeds share: rows in the order they happened, arriving out of order.

A generator describes its rows in *event order*: row ``i`` happens at a time that never decreases
with ``i``. Here that order is turned into *arrival order*. Row ``i`` with event time ``t_i`` gets a
delay ``d_i`` in [0, D], D being the disorder, from a counter-based random number, and rows arrive
in the order of ``(t_i + d_i, i)``. Let ``A_p`` be the arrival time of the row at position ``p``:

1. A row that arrived before row ``i`` has event time at most ``t_i + d_i``: no row is ever more
   than D behind the largest event time seen.
2. ``t_p <= A_p <= t_p + D``: at most ``p`` rows have ``t < t_p``, and the ``p + 1`` rows up to
   ``p`` have all arrived by ``t_p + D``.
3. Hence the rows at positions ``p`` to ``q`` are found among those that happened between
   ``t_p - D`` and ``t_q + D``: any read costs its own rows plus those of two disorders, wherever
   in the stream it lies.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa

from penstock.errors import InputError
from penstock.feeds.counter import Draws, Integers

US_PER_S = 1_000_000
TIMESTAMP = pa.timestamp("us", tz="UTC")
DEFAULT_START = "2026-01-05T00:00:00Z"  # a Monday

# Rows are made in pieces whose columns stay in the processor's cache; larger is slower.
_PIECE_ROWS = 65_536
# Every read looks at the rows of two disorders, so they must be few enough to hold and to sort.
_MOST_ROWS_IN_DISORDER = 10_000_000
# No stream gets here; keeps an infinite wait from overflowing the arithmetic.
_END_OF_TIME_US = 2**62


@dataclass(frozen=True, kw_only=True)
class Generated(ABC):
    """A feed computed from its configuration alone; subclasses say what happens, and when.

    ``start`` is the event time before which nothing happens (UTC unless it says otherwise),
    ``speedup`` how many seconds of event time pass in a second of wall time (None: all rows are due
    at once), ``disorder_s`` how far a row may lie behind the largest event time before it.
    """

    seed: int = 0
    start: str = DEFAULT_START
    speedup: float | None = None
    disorder_s: float = 0.0

    def __post_init__(self) -> None:
        instant_us(self.start)
        if self.speedup is not None:
            check_positive("the speedup", self.speedup)
        check(
            math.isfinite(self.disorder_s) and self.disorder_s >= 0,
            f"the disorder must be 0 seconds or more; got {self.disorder_s}",
        )
        check(
            self._events_before(self._start_us + self._disorder_us) <= _MOST_ROWS_IN_DISORDER,
            f"a disorder of {self.disorder_s} seconds mixes more than "
            f"{_MOST_ROWS_IN_DISORDER:,} rows",
            "Lower the disorder or the rate.",
        )
        check(
            self.size is not None or self.speedup is not None,
            "this feed would never end and never wait",
            "Limit its length or give a speedup.",
        )

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """Column names and types of every table read."""

    @property
    @abstractmethod
    def size(self) -> int | None:
        """How many rows there are in all; None when the feed never ends."""

    @abstractmethod
    def _offsets_us(self, first: int, stop: int) -> Integers:
        """When rows ``first`` to ``stop - 1`` of the event order happen, after the start."""

    @abstractmethod
    def _count_before(self, offset_us: int) -> int:
        """How many rows of an unlimited stream happen less than ``offset_us`` after the start."""

    @abstractmethod
    def _rows(self, index: Integers, time_us: Integers) -> list[pa.Array]:
        """The columns of the rows with these indices of the event order and these event times."""

    @property
    def event_time(self) -> str:
        """The column that says when a row happened."""
        return "ts"

    def due(self, elapsed_s: float) -> int:
        """How many rows have arrived ``elapsed_s`` seconds of wall time after the start."""
        if self.speedup is None:
            assert self.size is not None
            return self.size
        passed_us = min(elapsed_s * self.speedup * US_PER_S, _END_OF_TIME_US)
        now_us = self._start_us + math.floor(max(passed_us, -1))
        first = self._events_before(now_us - self._disorder_us)
        index, time_us = self._happened(first, self._events_before(now_us + 1))
        return first + int(np.count_nonzero(time_us + self._delays_us(index) <= now_us))

    def read(self, start: int, stop: int) -> pa.Table:
        """The rows at positions ``start`` to ``stop - 1``."""
        self._check_positions(start, stop)
        index, time_us = self._arrived(start, stop)
        pieces = [slice(i, i + _PIECE_ROWS) for i in range(0, stop - start, _PIECE_ROWS)]
        return pa.Table.from_batches(
            [
                pa.record_batch(self._rows(index[piece], time_us[piece]), schema=self.schema)
                for piece in pieces
            ],
            schema=self.schema,
        )

    def high_water_us(self, position: int) -> int | None:
        """The largest event time (microseconds since 1970) before ``position``; None at 0."""
        self._check_positions(position, position)
        if position == 0:
            return None
        # Rows before the neighbourhood happened before all rows in it, so they cannot be largest.
        first, order, time_us = self._neighbourhood(position - 1, position)
        return int(time_us[order[: position - first]].max())

    @property
    def _start_us(self) -> int:
        return instant_us(self.start)

    @property
    def _disorder_us(self) -> int:
        return round(self.disorder_s * US_PER_S)

    def _arrived(self, start: int, stop: int) -> tuple[Integers, Integers]:
        if start == stop or not self._disorder_us:
            return self._happened(start, stop)
        first, order, time_us = self._neighbourhood(start, stop)
        chosen = order[start - first : stop - first]
        return chosen + first, time_us[chosen]

    def _neighbourhood(self, start: int, stop: int) -> tuple[int, Integers, Integers]:
        """Rows among which positions ``start`` to ``stop - 1`` lie, by statement 3 above.

        Their first index, their arrival order relative to it, and their event times.
        """
        earliest_us = self._time_us(start) - self._disorder_us
        latest_us = self._time_us(stop - 1) + self._disorder_us
        first = self._events_before(earliest_us)
        index, time_us = self._happened(first, self._events_before(latest_us + 1))
        # Stable, so that rows arriving in the same microsecond keep their event order in any cut.
        order = np.argsort(time_us + self._delays_us(index), kind="stable")
        return first, order, time_us

    def _happened(self, first: int, stop: int) -> tuple[Integers, Integers]:
        offsets_us = self._offsets_us(first, stop) if first < stop else np.empty(0, np.int64)
        return np.arange(first, max(first, stop)), offsets_us + self._start_us

    def _time_us(self, index: int) -> int:
        return int(self._offsets_us(index, index + 1)[0]) + self._start_us

    def _events_before(self, time_us: int) -> int:
        if time_us <= self._start_us:
            return 0
        count = self._count_before(time_us - self._start_us)
        return count if self.size is None else min(count, self.size)

    def _delays_us(self, index: Integers) -> Integers:
        # The cube makes half of the delays shorter than an eighth of the disorder: most rows are
        # nearly in order and a few are very late, as on a network.
        late = Draws(self.seed, "delay").fraction(index)
        return (late * late * late * (self._disorder_us + 1)).astype(np.int64)

    def _check_positions(self, start: int, stop: int) -> None:
        size = self.size
        check(
            0 <= start <= stop and (size is None or stop <= size),
            f"there are no positions {start} to {stop} in a feed of "
            f"{'unlimited' if size is None else size} rows",
            "Positions count from 0 and end at the size of the feed.",
        )


def instant_us(text: str) -> int:
    """Microseconds since 1970 of an ISO 8601 time; UTC unless it says otherwise.

    >>> instant_us("2026-01-05T00:00:00Z"), instant_us("2026-01-05T01:00:00+01:00")
    (1767571200000000, 1767571200000000)
    """
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            f"{text!r} is not a time", hint=f"Write for example {DEFAULT_START}."
        ) from None
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=UTC)
    return (instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def check(holds: bool, what: str, hint: str = "") -> None:
    """Nothing if ``holds``, else an :class:`InputError` that says ``what`` is wrong.

    >>> check(1 < 2, "one is not less than two")
    """
    if not holds:
        raise InputError(what, hint=hint)


def check_positive(what: str, value: float) -> None:
    """Nothing if ``value`` is a finite number above 0, else an :class:`InputError`.

    >>> check_positive("the speedup", 600)
    """
    check(math.isfinite(value) and value > 0, f"{what} must be a number above 0; got {value}")
