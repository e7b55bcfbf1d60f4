"""What many members compute of the rows of a batch, each thing once.

Equal expressions, conditions, groupings and aggregates of members are found when the work is put
together, and have numbers from then on: for a batch nothing is compared any more. Growth: rows
times distinct groupings, plus the groups that come out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.feeds.arrow import ARROW_TYPES
from penstock.kernels.aggregates import AggregateKind
from penstock.kernels.batch_rows import BatchRows
from penstock.kernels.comparisons import Comparison
from penstock.kernels.group_codes import (
    Codes,
    Mask,
    codes_of,
    codes_of_numbers,
    combine,
    group_chosen,
)
from penstock.kernels.segments import Ints, Segments, join_touching, normalize_doubles
from penstock.kernels.state_shape import MEMBER, StateShape
from penstock.kernels.window_plan import WindowPlan
from penstock.model.expressions import Expression
from penstock.model.types import DataType
from penstock.model.windows import SessionWindow, Window

_Thing = TypeVar("_Thing", bound=Hashable)
_Made = TypeVar("_Made")


class _Numbers(Generic[_Thing]):
    """Things by number; equal ones have one."""

    def __init__(self) -> None:
        self.things: list[_Thing] = []
        self._numbers: dict[_Thing, int] = {}

    def __call__(self, thing: _Thing) -> int:
        """The number of a thing."""
        if thing not in self._numbers:
            self._numbers[thing] = len(self.things)
            self.things.append(thing)
        return self._numbers[thing]


@dataclass(frozen=True)
class _GroupKey:
    """An expression that rows are grouped by, as the aggregate gives it."""

    value: int
    type: DataType


@dataclass(frozen=True)
class _Filter:
    """The rows that meet all conditions and have an event time."""

    conditions: tuple[int, ...]
    event_time: int


@dataclass(frozen=True)
class _Coding:
    """What rows are told apart by: keys, and slices of a length if there is one."""

    keys: tuple[int, ...]
    event_time: int
    slice_us: int | None


@dataclass(frozen=True)
class _Grouping:
    """Rows that are kept, by what they are told apart by; sessions have a gap."""

    filter: int
    coding: int
    gap_us: int | None


@dataclass(frozen=True)
class _Begun:
    """An aggregate of the rows of a grouping."""

    grouping: int
    kind: AggregateKind
    arguments: tuple[int, ...]


@dataclass(frozen=True)
class _Member:
    """What a member keeps: its number, and those of all that it needs."""

    number: int
    shape: StateShape
    grouping: int
    begun: tuple[int, ...]


class SharedWork:
    """The work of some members on a batch."""

    def __init__(self, plans: Mapping[int, WindowPlan]) -> None:
        self.values: _Numbers[Expression] = _Numbers()
        self.keys: _Numbers[_GroupKey] = _Numbers()
        self.filters: _Numbers[_Filter] = _Numbers()
        self.codings: _Numbers[_Coding] = _Numbers()
        self.groupings: _Numbers[_Grouping] = _Numbers()
        self.begun: _Numbers[_Begun] = _Numbers()
        self.members = [self._member(number, plan) for number, plan in plans.items()]
        schemas = (plan.schema for plan in plans.values())
        schema = next(schemas, None)
        self.comparisons = [
            None if schema is None else Comparison.of(expression, schema)
            for expression in self.values.things
        ]

    def _member(self, number: int, plan: WindowPlan) -> _Member:
        event_time = self.values(plan.event_time)
        conditions = tuple(map(self.values, plan.conditions))
        keys = tuple(
            self.keys(_GroupKey(self.values(key), type))
            for (_, key), type in zip(plan.keys, plan.key_types, strict=True)
        )
        slice_us = plan.slice_us if isinstance(plan.window, Window) else None
        gap_us = plan.window.gap_us if isinstance(plan.window, SessionWindow) else None
        grouping = self.groupings(
            _Grouping(
                self.filters(_Filter(conditions, event_time)),
                self.codings(_Coding(keys, event_time, slice_us)),
                gap_us,
            )
        )
        begun = tuple(
            self.begun(_Begun(grouping, call.kind, tuple(map(self.values, call.arguments))))
            for call in plan.calls
        )
        return _Member(number, StateShape.of(plan), grouping, begun)

    def compute(self, batch: BatchRows) -> dict[StateShape, pa.Table]:
        """What all members keep of a batch's rows, in one table for each shape of state."""
        work = _BatchWork(self, batch)
        found: dict[StateShape, list[pa.Table]] = defaultdict(list)
        for member in self.members:
            partial = work.partial(member)
            if partial is not None:
                found[member.shape].append(partial)
        return {shape: pa.concat_tables(tables) for shape, tables in found.items()}


class _Once(Generic[_Made]):
    """What is made of things by their numbers, each once."""

    def __init__(self, things: Sequence[object], make: Callable[[int], _Made]) -> None:
        self._made: list[_Made | None] = [None] * len(things)
        self._make = make

    def __getitem__(self, number: int) -> _Made:
        made = self._made[number]
        if made is None:
            made = self._made[number] = self._make(number)
        return made


class _BatchWork:
    """Rows of a batch, with everything that has been computed of them so far."""

    def __init__(self, work: SharedWork, batch: BatchRows) -> None:
        self._work, self._batch, self._rows = work, batch, batch.rows.num_rows
        self._values = _Once(
            work.values.things, lambda number: batch.value(work.values.things[number])
        )
        self._keys = _Once(work.keys.things, self._make_key)
        self._key_codes = _Once(work.keys.things, lambda number: codes_of(self._keys[number]))
        self._met = _Once(work.values.things, self._make_met)
        self._times = _Once(work.values.things, self._make_times)
        self._chosen = _Once(work.filters.things, self._make_chosen)
        self._codings = _Once(work.codings.things, self._make_coding)
        self._segments = _Once(work.groupings.things, self._make_segments)
        self._stretches = _Once(work.groupings.things, self._make_stretches)
        self._begun = _Once(work.begun.things, self._make_begun)
        self._slices: dict[tuple[int, int], Ints] = {}

    def partial(self, member: _Member) -> pa.Table | None:
        """What a member keeps, one row a group and slice or session; None if nothing."""
        segments = self._segments[member.grouping]
        if not len(segments):
            return None
        numbers = pa.array(np.full(len(segments), member.number, np.int32))
        states = (column for begun in member.begun for column in self._begun[begun])
        names = [MEMBER, *member.shape.columns]
        return pa.Table.from_arrays(
            [numbers, *self._stretches[member.grouping], *states], names=names
        )

    def _make_key(self, number: int) -> pa.Array:
        key = self._work.keys.things[number]
        values, target = self._values[key.value], ARROW_TYPES[key.type]
        values = values if values.type == target else values.cast(target)
        return normalize_doubles(values) if key.type is DataType.DOUBLE else values

    def _make_met(self, number: int) -> Mask:
        """Where a condition is true."""
        comparison = self._work.comparisons[number]
        if comparison is not None:
            return comparison.met(self._batch)
        met: Mask = pc.fill_null(self._values[number], False).to_numpy(zero_copy_only=False)
        return met

    def _make_times(self, number: int) -> Ints:
        """Event times in microseconds, 0 where there is none."""
        times: Ints = pc.fill_null(self._values[number].cast(pa.int64()), 0).to_numpy()
        return times

    def _make_chosen(self, number: int) -> Mask:
        wanted = self._work.filters.things[number]
        masks = [self._met[condition] for condition in wanted.conditions]
        times = self._values[wanted.event_time]
        if times.null_count or not masks:
            masks.append(times.is_valid().to_numpy(zero_copy_only=False))
        chosen = masks[0]
        for mask in masks[1:]:
            chosen = chosen & mask
        return chosen

    def _make_coding(self, number: int) -> Codes:
        coding = self._work.codings.things[number]
        parts = [self._key_codes[key] for key in coding.keys]
        if coding.slice_us is not None:
            starts = self._slice_starts(coding.event_time, coding.slice_us)
            parts.append(codes_of_numbers(starts // coding.slice_us))
        return combine(parts, self._rows)

    def _slice_starts(self, event_time: int, slice_us: int) -> Ints:
        if (event_time, slice_us) not in self._slices:
            times = self._times[event_time]
            self._slices[event_time, slice_us] = times // slice_us * slice_us
        return self._slices[event_time, slice_us]

    def _make_segments(self, number: int) -> Segments:
        grouping = self._work.groupings.things[number]
        groups = group_chosen(self._codings[grouping.coding], self._chosen[grouping.filter])
        if grouping.gap_us is None:
            return groups
        coding = self._work.codings.things[grouping.coding]
        times = self._times[coding.event_time]
        return join_touching(groups, times, times + grouping.gap_us)

    def _make_stretches(self, number: int) -> list[pa.Array]:
        """Where in time each group of rows lies, and its keys."""
        grouping, segments = self._work.groupings.things[number], self._segments[number]
        coding = self._work.codings.things[grouping.coding]
        first = segments.first_rows
        if coding.slice_us is not None:
            starts = self._slice_starts(coding.event_time, coding.slice_us)
            stretches = [pa.array(starts[first])]
        else:
            times = self._times[coding.event_time]
            ends = segments.max(times) + (grouping.gap_us or 0)
            stretches = [pa.array(segments.min(times)), pa.array(ends)]
        rows = pa.array(first)
        return [*stretches, *(self._keys[key].take(rows) for key in coding.keys)]

    def _make_begun(self, number: int) -> list[pa.Array]:
        begun = self._work.begun.things[number]
        arguments = [self._values[argument] for argument in begun.arguments]
        return begun.kind.begin(arguments, self._segments[begun.grouping])
