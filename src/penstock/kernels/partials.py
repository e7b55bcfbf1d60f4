"""Rows of a batch to partial aggregates of many members at once, inside a task.

Work that members share is done once: equal expressions, equal conditions, equal groupings, equal
aggregates of equal groups. Growth: rows times distinct groupings, plus the groups that come out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.feeds.arrow import ARROW_TYPES
from penstock.kernels.aggregates import AggregateKind
from penstock.kernels.expressions import evaluate
from penstock.kernels.segments import (
    Ints,
    Segments,
    group_rows,
    join_touching,
    normalize_doubles,
)
from penstock.kernels.window_plan import WindowPlan
from penstock.model.expressions import Expression
from penstock.model.schema import Schema
from penstock.model.types import DataType
from penstock.model.windows import SessionWindow, Window

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


@dataclass
class BatchRows:
    """Rows of a batch, with everything that has been computed of them so far.

    ``given`` are expressions that Spark has computed, by the column they came in.
    """

    rows: pa.Table
    schema: Schema
    given: Mapping[Expression, str] = field(default_factory=dict)
    _values: dict[Expression, pa.Array] = field(default_factory=dict, init=False)
    _chosen: dict[tuple[Expression, ...], Ints] = field(default_factory=dict, init=False)
    _times: dict[Expression, Ints] = field(default_factory=dict, init=False)
    _slices: dict[tuple[Expression, int], pa.Array] = field(default_factory=dict, init=False)
    _segments: dict[object, Segments] = field(default_factory=dict, init=False)
    _begun: dict[object, list[pa.Array]] = field(default_factory=dict, init=False)

    def value(self, expression: Expression) -> pa.Array:
        """The expression of every row."""
        if expression not in self._values:
            if expression in self.given:
                found = _column(self.rows, self.given[expression])
            else:
                found = evaluate(expression, self.rows, self.schema)
            self._values[expression] = found
        return self._values[expression]

    def partial(self, member: int, plan: WindowPlan) -> pa.Table | None:
        """What a member keeps of these rows, one row a group and slice or session; None if none."""
        grouping = (plan.conditions, plan.event_time, plan.grain, plan.keys)
        segments = self._group(plan, grouping)
        if not len(segments):
            return None
        shape = StateShape.of(plan)
        first = pa.array(segments.first_rows)
        columns = {MEMBER: pa.array(np.full(len(segments), member, np.int32))}
        columns |= self._stretches(plan, segments)
        for name, type, (_, key) in zip(shape.keys, shape.key_types, plan.keys, strict=True):
            columns[name] = self._key(key, type).take(first)
        for names, call in zip(shape.states, plan.calls, strict=True):
            begun = (grouping, call.kind, call.arguments)
            if begun not in self._begun:
                arguments = [self.value(argument) for argument in call.arguments]
                self._begun[begun] = call.kind.begin(arguments, segments)
            columns.update(zip(names, self._begun[begun], strict=True))
        return pa.table(columns)

    def _stretches(self, plan: WindowPlan, segments: Segments) -> dict[str, pa.Array]:
        """Where in time each group of rows lies."""
        if isinstance(plan.window, Window):
            return {SLICE: self._slice_starts(plan).take(pa.array(segments.first_rows))}
        times = self._event_times(plan)
        ends = segments.max(times) + plan.window.gap_us
        return {START: pa.array(segments.min(times)), END: pa.array(ends)}

    def _group(self, plan: WindowPlan, grouping: object) -> Segments:
        if grouping not in self._segments:
            chosen = self._choose((*plan.conditions, plan.event_time), plan)
            columns = [self._key(key, plan.key_types[at]) for at, (_, key) in enumerate(plan.keys)]
            if isinstance(plan.window, Window):
                columns.append(self._slice_starts(plan))
            if len(chosen) < self.rows.num_rows:
                picked = pa.array(chosen)
                columns = [column.take(picked) for column in columns]
            found = group_rows(columns, len(chosen))
            groups = Segments(chosen[found.order], found.bounds)
            if isinstance(plan.window, SessionWindow):
                times = self._event_times(plan)
                groups = join_touching(groups, times, times + plan.window.gap_us)
            self._segments[grouping] = groups
        return self._segments[grouping]

    def _key(self, key: Expression, type: DataType) -> pa.Array:
        values = self.value(key)
        target = ARROW_TYPES[type]
        values = values if values.type == target else values.cast(target)
        return normalize_doubles(values) if type is DataType.DOUBLE else values

    def _choose(self, needed: tuple[Expression, ...], plan: WindowPlan) -> Ints:
        """The rows that meet all conditions and have an event time."""
        if needed not in self._chosen:
            meets = np.ones(self.rows.num_rows, bool)
            for condition in plan.conditions:
                met = pc.fill_null(self.value(condition), False)
                meets &= met.to_numpy(zero_copy_only=False)
            times = self.value(plan.event_time)
            if times.null_count:
                meets &= times.is_valid().to_numpy(zero_copy_only=False)
            self._chosen[needed] = np.flatnonzero(meets)
        return self._chosen[needed]

    def _event_times(self, plan: WindowPlan) -> Ints:
        """Event times in microseconds, 0 where there is none."""
        if plan.event_time not in self._times:
            times = pc.fill_null(self.value(plan.event_time).cast(pa.int64()), 0)
            self._times[plan.event_time] = times.to_numpy()
        return self._times[plan.event_time]

    def _slice_starts(self, plan: WindowPlan) -> pa.Array:
        made = (plan.event_time, plan.slice_us)
        if made not in self._slices:
            times = self._event_times(plan)
            self._slices[made] = pa.array(times // plan.slice_us * plan.slice_us)
        return self._slices[made]


def compute_partials(
    batch: BatchRows, plans: Mapping[int, WindowPlan]
) -> dict[StateShape, pa.Table]:
    """What all members keep of a batch's rows, in one table for each shape of state."""
    found: dict[StateShape, list[pa.Table]] = defaultdict(list)
    for member, plan in plans.items():
        partial = batch.partial(member, plan)
        if partial is not None:
            found[StateShape.of(plan)].append(partial)
    return {shape: pa.concat_tables(tables) for shape, tables in found.items()}
