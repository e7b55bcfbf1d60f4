"""Slices of one member's windows for those of others: states as rows of a stream, and back.

What a window keeps of a slice is given as it is, so whatever is put together of slices is exactly
what would have been kept of the rows. Exact sums of doubles are lists of numbers; a stream has them
as bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from penstock.feeds.arrow import ARROW_TYPES, arrow_schema
from penstock.kernels.aggregates import AggregateKind, kind_of
from penstock.kernels.member_state import MemberState
from penstock.kernels.merged import pack
from penstock.kernels.segments import Segments
from penstock.kernels.state_shape import END, MEMBER, START, StateShape
from penstock.kernels.window_plan import WindowPlan
from penstock.kernels.window_state import MemberTime, MemberWindows, WindowState
from penstock.model.expressions import type_of
from penstock.model.operators import WINDOW_END, WINDOW_START, Aggregate
from penstock.model.schema import Schema, Shape, TimeColumn
from penstock.model.slices import SlicedStates, slice_of
from penstock.model.types import DataType
from penstock.model.windows import Window

MemberTimes = Mapping[int, tuple[int, int]]
"""How far the time of each member had come, and how far it has, in microseconds."""

_MODEL_TYPES = {arrow: model for model, arrow in ARROW_TYPES.items()}


def sliced_states(aggregate: Aggregate) -> SlicedStates | None:
    """The slices of an aggregate; None if it has none, or kernels cannot compute it."""
    if not isinstance(aggregate.window, Window):
        return None
    given = aggregate.output.schema
    columns = [(name, given[name].type) for name, _ in aggregate.keys]
    columns += [(WINDOW_START, DataType.TIMESTAMP), (WINDOW_END, DataType.TIMESTAMP)]
    states: dict[str, tuple[str, ...]] = {}
    for name, call in aggregate.aggregates:
        types = [type_of(argument, aggregate.input.schema) for argument in call.arguments]
        kind = kind_of(call.function, types)
        if kind is None:
            return None
        kept: list[tuple[str, DataType]] = []
        for part, type in enumerate(_types(kind, types)):
            kept.append((_free(f"{name}_{part}", [*columns, *kept]), type))
        states[name] = tuple(column for column, _ in kept)
        columns += kept
    slice_us = slice_of(aggregate.window).size_us
    times = (TimeColumn(WINDOW_END), TimeColumn(WINDOW_START, slice_us))
    return SlicedStates(Shape(Schema.of(columns), times), states)


def _free(name: str, taken: Sequence[tuple[str, DataType]]) -> str:
    """A name that no column has yet."""
    names = {column.lower() for column, _ in taken}
    while name.lower() in names:
        name += "_"
    return name


def _types(kind: AggregateKind, arguments: Sequence[DataType]) -> list[DataType]:
    """The types of the columns that hold a state, as a stream has them."""
    nothing = [pa.array([], ARROW_TYPES[type]) for type in arguments]
    states = kind.begin(nothing, Segments.whole(0))
    return [_MODEL_TYPES[pack(state).type] for state in states]


def give_slices(
    states: Mapping[StateShape, MemberState],
    plans: Mapping[int, WindowPlan],
    times: MemberTimes,
    count: int,
) -> dict[int, pa.Table]:
    """The slices that time passes now, of those of ``count`` members that give them.

    ``times`` say of each how far its time had come and has. Windows have still to be closed: they
    let go of what they kept.
    """
    wanted = {
        number: MemberTime(plan.slices.window, *times[number])
        for number, plan in plans.items()
        if plan.slices is not None and number in times
    }
    found: dict[int, pa.Table] = {}
    if not wanted:
        return found
    windows = MemberWindows.of(wanted, count)
    for shape, state in states.items():
        closed = state.closing(windows) if isinstance(state, WindowState) else None
        if closed is None:
            continue
        members = closed.column(MEMBER)
        for number in pc.unique(members).to_pylist():
            slices = plans[number].slices
            assert slices is not None
            own = closed.filter(pc.equal(members, number))
            kept = (name for names in shape.states for name in names)
            found[number] = _rows(slices.shape, own.select([*shape.keys, START, END, *kept]))
    return found


def _rows(shape: Shape, states: pa.Table) -> pa.Table:
    """Keys, bounds and states of slices as rows of their stream."""
    wanted = arrow_schema(shape.schema)
    columns = (pack(column.combine_chunks()) for column in states.columns)
    typed = [column.cast(type) for column, type in zip(columns, wanted.types, strict=True)]
    return pa.Table.from_arrays(typed, schema=wanted)
