"""Tables of partial aggregates: what they look like, and how their rows become one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from penstock.kernels.aggregates import AggregateKind
from penstock.kernels.segments import Segments, group_rows
from penstock.kernels.window_plan import WindowPlan
from penstock.model.types import DataType
from penstock.model.windows import SessionWindow

MEMBER, SLICE = "member", "slice"
START, END = "start", "end"


@dataclass(frozen=True)
class StateShape:
    """What the states of some members have in common, so that they can lie in one table.

    A partial aggregate belongs to a slice of time, or with ``sessions`` to what is known of a
    session so far: from its first row to the gap after its last one.
    """

    key_types: tuple[DataType, ...]
    kinds: tuple[AggregateKind, ...]
    sessions: bool = False

    @classmethod
    def of(cls, plan: WindowPlan) -> StateShape:
        kinds = tuple(call.kind for call in plan.calls)
        return cls(plan.key_types, kinds, isinstance(plan.window, SessionWindow))

    @property
    def keys(self) -> list[str]:
        """The names of the columns that hold keys."""
        return [f"key_{at}" for at in range(len(self.key_types))]

    @property
    def columns(self) -> list[str]:
        """All columns of a table of such states but the member's number."""
        time = [START, END] if self.sessions else [SLICE]
        return [*time, *self.keys, *(name for names in self.states for name in names)]

    @property
    def states(self) -> list[list[str]]:
        """The names of the columns that hold the state of each aggregate."""
        return [
            [f"state_{at}_{part}" for part in range(kind.width)]
            for at, kind in enumerate(self.kinds)
        ]


def merge_states(shape: StateShape, rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """The rows with equal ``keys`` merged to one; the first ones of other columns are not kept."""
    segments = group_rows([_column(rows, name) for name in keys], rows.num_rows)
    return merge_segments(shape, rows, keys, segments)


def merge_segments(
    shape: StateShape, rows: pa.Table, keys: Sequence[str], segments: Segments
) -> pa.Table:
    """The rows of each segment merged to one, which has the ``keys`` of the first."""
    first = pa.array(segments.first_rows)
    columns = {name: _column(rows, name).take(first) for name in keys}
    for kind, names in zip(shape.kinds, shape.states, strict=True):
        merged = kind.merge([_column(rows, name) for name in names], segments)
        columns.update(zip(names, merged, strict=True))
    return pa.table(columns)


def _column(rows: pa.Table, name: str) -> pa.Array:
    column = rows.column(name)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
