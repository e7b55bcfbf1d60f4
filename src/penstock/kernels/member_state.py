"""What members keep of the rows they have seen, whatever their windows are."""

from __future__ import annotations

from typing import Protocol, Self

import pyarrow as pa

from penstock.kernels.segments import Ints
from penstock.kernels.session_state import SessionState
from penstock.kernels.state_shape import StateShape
from penstock.kernels.window_state import MemberWindows, WindowState


class MemberState(Protocol):
    """The open windows of all members whose states have one shape.

    A log holds what was added and how far time had come. So a state into which all of that is
    added again, whatever has been closed since, must go on as the one before it would have.
    """

    @property
    def rows(self) -> int:
        """How many partial aggregates are kept."""

    @property
    def size_bytes(self) -> int:
        """The memory that they take."""

    def count_members(self, counts: Ints) -> None:
        """Adds the partial aggregates of every member to its count."""

    def add(self, partials: pa.Table) -> None:
        """Takes in what :func:`~penstock.kernels.partials.compute_partials` made of rows."""

    def absorb(self, other: Self) -> None:
        """Takes over all that another state keeps, of members that have nothing here.

        What the other one has sorted stays as it is, so this costs nothing.
        """

    def close(self, windows: MemberWindows) -> pa.Table | None:
        """The states of all groups of what closes by the time that members have come to."""

    def dump(self) -> pa.Table | None:
        """All that is kept, as partial aggregates; None if nothing is."""


def open_state(shape: StateShape) -> MemberState:
    """An empty state."""
    return SessionState(shape) if shape.sessions else WindowState(shape)
