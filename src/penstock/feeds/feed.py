"""What every feed promises: rows addressed by position, readable again at any time."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa


class Feed(Protocol):
    """A replayable sequence of rows, in arrival order.

    A row's *position* is its index in arrival order, from 0. Reading is a pure function of the
    feed's configuration and the positions: ``read(a, b)`` followed by ``read(b, c)`` gives the
    rows of ``read(a, c)``, in any process, today and tomorrow. That is what makes a restart exact.
    """

    @property
    def schema(self) -> pa.Schema:
        """Column names and types of every table read; timestamps are ``timestamp('us', 'UTC')``."""

    @property
    def event_time(self) -> str:
        """The column that says when a row happened."""

    @property
    def size(self) -> int | None:
        """How many rows there are in all; None when the feed never ends."""

    def due(self, elapsed_s: float) -> int:
        """How many rows have arrived ``elapsed_s`` seconds of wall time after the start.

        Never decreases, never exceeds ``size``; a feed without pacing has all of them due at once.
        """

    def read(self, start: int, stop: int) -> pa.Table:
        """The rows at positions ``start`` to ``stop - 1``."""

    def high_water_us(self, position: int) -> int | None:
        """The largest event time (microseconds since 1970) before ``position``; None at 0."""
