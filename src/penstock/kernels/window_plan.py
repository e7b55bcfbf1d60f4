"""A fragment as kernels run it: filter, slice, group, aggregate, then filter and map results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd

from penstock.kernels.aggregates import AggregateKind, kind_of
from penstock.kernels.expressions import can_evaluate
from penstock.kernels.inlining import (
    after_moments,
    computed_by,
    first_computed_time,
    first_not_evaluated,
    inline,
    is_counting,
    substitute,
)
from penstock.model.beginnings import WHOLE, result_given, since_behind
from penstock.model.expressions import Column, Expression, type_of
from penstock.model.fragments import Fragment
from penstock.model.ids import PartId
from penstock.model.operators import Aggregate, Filter, Map, Operator
from penstock.model.schema import Schema, Shape
from penstock.model.types import DataType
from penstock.model.windows import AnyWindow, SessionWindow, Window


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
    in front of it; without ``has_tail`` it gives nothing else.
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

    @property
    def streams(self) -> tuple[str, ...]:
        """What it reads."""
        return (self.stream,)

    @property
    def slice_us(self) -> int:
        """The longest stretch of which all windows are made up whole.

        >>> gcd(6 * 60, 30)
        30
        """
        assert isinstance(self.window, Window), "sessions have no slices"
        return gcd(self.window.size_us, self.window.slide_us)

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
    before, aggregate, after = _split(tuple(counting_operators(fragment)))
    if aggregate is None:
        return NotLight("it has no windowed aggregate")
    for operator in (*before, *after):
        if not isinstance(operator, Filter | Map):
            return NotLight(f"{operator.name} is a {operator.kind}")
    missing = first_not_evaluated(after)
    if missing is not None:
        return NotLight(f"kernels cannot compute {missing}")
    arguments = (
        (argument, aggregate.input.schema)
        for _, call in aggregate.aggregates
        for argument in call.arguments
    )
    computed = first_computed_time([*computed_by(before), *arguments])
    if computed is not None:
        # What leaves the calendar becomes null behind a map, and behind an aggregate: not before.
        return NotLight(f"kernels cannot keep {computed} within the calendar")
    return _plan(fragment, before, aggregate, after)


def counting_operators(fragment: Fragment) -> Iterator[Operator]:
    """The operators, with filters between them for what counts of a fragment that came late."""
    sinces = {name: start.since for name, start in fragment.beginning.inputs.items()}
    first = next(input for operator in fragment.operators for input in operator.inputs)
    yield from after_moments(first.shape, sinces.get(first.stream, WHOLE).given)
    for operator in fragment.operators:
        yield operator
        read = [sinces.get(input.stream, WHOLE) for input in operator.inputs]
        given = result_given(operator, read)
        if given:
            yield from after_moments(operator.output, given)
        sinces |= dict.fromkeys(operator.outputs, since_behind(operator, read))


def _split(
    operators: tuple[Operator, ...],
) -> tuple[tuple[Operator, ...], Aggregate | None, tuple[Operator, ...]]:
    for at, operator in enumerate(operators):
        if isinstance(operator, Aggregate):
            return operators[:at], operator, operators[at + 1 :]
    return operators, None, ()


def _plan(
    fragment: Fragment,
    before: tuple[Operator, ...],
    aggregate: Aggregate,
    after: tuple[Operator, ...],
) -> WindowPlan | NotLight:
    first = (before[0] if before else aggregate).inputs[0]
    columns, conditions = inline(before, first.schema)
    event_time = aggregate.input.shape.event_time
    assert event_time is not None
    calls = []
    for name, call in aggregate.aggregates:
        types = [type_of(argument, aggregate.input.schema) for argument in call.arguments]
        kind = kind_of(call.function, types)
        if kind is None:
            return NotLight(f"kernels cannot compute {call.sql()}")
        arguments = tuple(substitute(argument, columns) for argument in call.arguments)
        calls.append(PlannedCall(name, kind, arguments))
    keys = tuple((name, substitute(key, columns)) for name, key in aggregate.keys)
    return WindowPlan(
        fragment.id,
        fragment.inputs[0],
        first.schema,
        conditions,
        substitute(Column(event_time), columns),
        aggregate.window,
        keys,
        tuple(calls),
        aggregate,
        after,
        tuple((stream, _steps_before(stream, aggregate, after)) for stream in fragment.taps),
        fragment.has_tail,
    )


def _steps_before(stream: str, aggregate: Aggregate, after: tuple[Operator, ...]) -> int:
    """How many operators behind the aggregate are part of a stream: what counts of it included."""
    names = [aggregate.name, *(operator.name for operator in after)]
    steps = names.index(stream)
    while steps < len(after) and is_counting(after[steps]):
        steps += 1
    return steps
