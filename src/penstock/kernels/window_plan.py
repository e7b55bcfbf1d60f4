"""A fragment as kernels run it: filter, slice, group, aggregate, then filter and map results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.kernels.aggregates import AggregateKind, kind_of
from penstock.kernels.expressions import can_evaluate
from penstock.kernels.inlining import (
    Columns,
    after_moments,
    computed_by,
    first_computed_time,
    first_not_evaluated,
    inline,
    is_counting,
    substitute,
)
from penstock.kernels.merged import Merged
from penstock.model.beginnings import WHOLE, result_given, since_behind
from penstock.model.expressions import Column, Expression, type_of
from penstock.model.fragments import Fragment
from penstock.model.ids import PartId
from penstock.model.operators import WINDOW_START, Aggregate, Filter, Map, Operator
from penstock.model.schema import Schema, Shape
from penstock.model.slices import FromSlices, Slices, given_slices, slice_of
from penstock.model.types import DataType
from penstock.model.windows import AnyWindow, SessionWindow, Window

Grouping = Aggregate | FromSlices
"""What puts rows into windows: rows as they are, or slices of others."""


@dataclass(frozen=True)
class PlannedCall:
    """An aggregate to compute: its name in the result, its kind, and its arguments."""

    name: str
    kind: AggregateKind
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class WindowPlan:
    """Windows or sessions over one stream, as expressions over that stream's columns.

    A row counts if all ``conditions`` are true. ``after`` are the operators behind the aggregate,
    whose expressions kernels evaluate themselves. ``schema`` is that of the input. ``taps`` are
    streams inside it that it gives as well, each with how many operators behind the aggregate are
    in front of it, and ``slices`` what it gives of its slices, if anything; without ``has_tail`` it
    gives nothing else.
    """

    name: PartId
    stream: str
    schema: Schema
    conditions: tuple[Expression, ...]
    event_time: Expression
    window: AnyWindow
    keys: tuple[tuple[str, Expression], ...]
    calls: tuple[PlannedCall, ...]
    aggregate: Aggregate
    after: tuple[Operator, ...]
    taps: tuple[tuple[str, int], ...] = ()
    has_tail: bool = True
    slices: Slices | None = None

    @property
    def streams(self) -> tuple[str, ...]:
        """What it reads."""
        return (self.stream,)

    @property
    def slice_us(self) -> int:
        """The longest stretch of which all windows are made up whole."""
        assert isinstance(self.window, Window), "sessions have no slices"
        return slice_of(self.window).size_us

    @property
    def grain(self) -> int | SessionWindow:
        """How rows are divided by time: plans that are alike in this can share the work."""
        return self.slice_us if isinstance(self.window, Window) else self.window

    @property
    def output(self) -> Shape:
        """What it gives."""
        return (self.after[-1] if self.after else self.aggregate).output

    @property
    def key_types(self) -> tuple[DataType, ...]:
        """The types of the keys, as the aggregate gives them."""
        given = self.aggregate.output.schema
        return tuple(given[name].type for name, _ in self.keys)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """Everything that is computed for every input row."""
        arguments = (argument for call in self.calls for argument in call.arguments)
        keys = (key for _, key in self.keys)
        return (*self.conditions, self.event_time, *keys, *arguments)

    @property
    def left_to_spark(self) -> tuple[Expression, ...]:
        """What Spark has to compute, because kernels cannot, or not exactly as Spark does."""
        return tuple(
            expression
            for expression in self.expressions
            if not can_evaluate(expression, self.schema)
        )


@dataclass(frozen=True)
class NotLight:
    """Why kernels cannot run a fragment."""

    reason: str


def plan_windows(fragment: Fragment) -> WindowPlan | NotLight:
    """The fragment as windows or sessions over one stream, or why it is not."""
    if len(fragment.inputs) != 1:
        return NotLight(f"it reads {len(fragment.inputs)} streams")
    before, grouping, after = _split(tuple(counting_operators(fragment)))
    if grouping is None:
        return NotLight("it has no windowed aggregate")
    for operator in (*before, *after):
        if not isinstance(operator, Filter | Map):
            return NotLight(f"{operator.name} is a {operator.kind}")
    missing = first_not_evaluated(after)
    if missing is not None:
        return NotLight(f"kernels cannot compute {missing}")
    computed = first_computed_time([*computed_by(before), *_arguments(grouping)])
    if computed is not None:
        # What leaves the calendar becomes null behind a map, and behind an aggregate: not before.
        return NotLight(f"kernels cannot keep {computed} within the calendar")
    return _plan(fragment, before, grouping, after)


def _arguments(grouping: Grouping) -> Iterator[tuple[Expression, Schema]]:
    """What is computed of rows for aggregates; nothing of slices."""
    if isinstance(grouping, Aggregate):
        for _, call in grouping.aggregates:
            for argument in call.arguments:
                yield argument, grouping.input.schema


def counting_operators(fragment: Fragment) -> Iterator[Operator]:
    """The operators, with filters between them for what counts of a fragment that came late."""
    sinces = {name: start.since for name, start in fragment.beginning.inputs.items()}
    first = next(input for operator in fragment.operators for input in operator.inputs)
    yield from after_moments(first.shape, sinces.get(first.stream, WHOLE).given)
    for operator in fragment.operators:
        if isinstance(operator, Slices):
            continue
        yield operator
        read = [sinces.get(input.stream, WHOLE) for input in operator.inputs]
        given = result_given(operator, read)
        if given:
            yield from after_moments(operator.output, given)
        sinces |= dict.fromkeys(operator.outputs, since_behind(operator, read))


def _split(
    operators: tuple[Operator, ...],
) -> tuple[tuple[Operator, ...], Grouping | None, tuple[Operator, ...]]:
    for at, operator in enumerate(operators):
        if isinstance(operator, Aggregate | FromSlices):
            return operators[:at], operator, operators[at + 1 :]
    return operators, None, ()


def _plan(
    fragment: Fragment,
    before: tuple[Operator, ...],
    grouping: Grouping,
    after: tuple[Operator, ...],
) -> WindowPlan | NotLight:
    first = (before[0] if before else grouping).inputs[0]
    columns, conditions = inline(before, first.schema)
    calls = _calls_of(grouping, columns)
    if isinstance(calls, NotLight):
        return calls
    aggregate = grouping if isinstance(grouping, Aggregate) else grouping.whole
    slices = given_slices(fragment.operators)
    return WindowPlan(
        fragment.id,
        fragment.inputs[0],
        first.schema,
        conditions,
        substitute(Column(_time_of(grouping)), columns),
        aggregate.window,
        tuple((name, substitute(key, columns)) for name, key in grouping.keys),
        calls,
        aggregate,
        after,
        tuple(
            (stream, _steps_before(stream, aggregate, after))
            for stream in fragment.taps
            if stream not in slices
        ),
        fragment.has_tail,
        next((slices[stream] for stream in fragment.taps if stream in slices), None),
    )


def _time_of(grouping: Grouping) -> str:
    """The column that says to which windows a row belongs.

    Of a slice that is its start, and its end has passed when it is given: so a window is whole as
    soon as the watermark of the slices passes its end.
    """
    event_time = grouping.inputs[0].shape.event_time
    assert event_time is not None
    return event_time if isinstance(grouping, Aggregate) else WINDOW_START


def _calls_of(grouping: Grouping, columns: Columns) -> tuple[PlannedCall, ...] | NotLight:
    aggregate = grouping if isinstance(grouping, Aggregate) else grouping.whole
    calls = []
    for at, (name, call) in enumerate(aggregate.aggregates):
        types = [type_of(argument, aggregate.input.schema) for argument in call.arguments]
        kind = kind_of(call.function, types)
        if kind is None:
            return NotLight(f"kernels cannot compute {call.sql()}")
        arguments = call.arguments
        if isinstance(grouping, FromSlices):
            kind, arguments = Merged(kind), tuple(map(Column, grouping.states[at]))
        given = tuple(substitute(argument, columns) for argument in arguments)
        calls.append(PlannedCall(name, kind, given))
    return tuple(calls)


def _steps_before(stream: str, aggregate: Aggregate, after: tuple[Operator, ...]) -> int:
    """How many operators behind the aggregate are part of a stream: what counts of it included."""
    names = [aggregate.name, *(operator.name for operator in after)]
    steps = names.index(stream)
    while steps < len(after) and is_counting(after[steps]):
        steps += 1
    return steps
