"""A fragment as the window join runs it: filter and map both sides, join, then filter and map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from hashlib import blake2b

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import InputError
from penstock.feeds.arrow import ARROW_TYPES, arrow_schema
from penstock.kernels.batch_rows import BatchRows
from penstock.kernels.expressions import can_evaluate, evaluate
from penstock.kernels.inlining import (
    after_moments,
    computed_by,
    first_computed_time,
    first_not_evaluated,
    inline,
)
from penstock.kernels.window_join.terms import JoinSide, JoinTerms
from penstock.kernels.window_plan import NotLight
from penstock.kernels.window_results import apply_operators
from penstock.model.beginnings import (
    WHOLE,
    Moments,
    Since,
    left_given,
    result_given,
    streams_since,
)
from penstock.model.expressions import Column, Expression, columns_of, to_sql
from penstock.model.fragments import Fragment
from penstock.model.ids import PartId
from penstock.model.operators import Filter, Input, JoinKind, Map, Operator, WindowJoin
from penstock.model.parts import Part
from penstock.model.schema import Schema, Shape
from penstock.model.types import DataType
from penstock.model.windows import TimeBound

_NAME_BYTES = 8


@dataclass(frozen=True)
class SideColumn:
    """A column that a side keeps: what it is computed from, and its type."""

    name: str
    value: Expression
    type: DataType


@dataclass(frozen=True)
class PlannedSide:
    """One side of a join, as expressions over the columns of its stream.

    A row counts if all ``conditions`` are true. ``columns`` are what is kept of it, ``keys`` and
    ``time`` are names among them, ``given`` those that the result needs. ``event_time`` is what the
    stream calls the time.
    """

    stream: str
    schema: Schema
    event_time: str
    conditions: tuple[Expression, ...]
    columns: tuple[SideColumn, ...]
    keys: tuple[str, ...]
    time: str
    given: tuple[str, ...]

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """Everything that is computed for every row."""
        return (*self.conditions, *(column.value for column in self.columns))

    @cached_property
    def left_to_spark(self) -> tuple[Expression, ...]:
        """What Spark has to compute, because kernels cannot, or not exactly as Spark does."""
        return tuple(
            expression
            for expression in self.expressions
            if not can_evaluate(expression, self.schema)
        )

    @cached_property
    def digest(self) -> str:
        """A name for what is kept of the stream: what is kept otherwise has another."""
        text = repr((self.stream, self.conditions, self.columns))
        return blake2b(text.encode(), digest_size=_NAME_BYTES).hexdigest()

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The columns that are kept."""
        return pa.schema([(column.name, ARROW_TYPES[column.type]) for column in self.columns])

    def project(self, rows: pa.Table, given: Mapping[Expression, str] | None = None) -> pa.Table:
        """What is kept of some rows; ``given`` are columns that Spark has computed."""
        batch = BatchRows(rows.combine_chunks(), self.schema, given or {})
        values = [
            _as(batch.value(column.value), ARROW_TYPES[column.type]) for column in self.columns
        ]
        kept = pa.Table.from_arrays(values, schema=self.arrow_schema)
        met = [pc.fill_null(batch.value(condition), False) for condition in self.conditions]
        return kept.filter(reduce(pc.and_, met)) if met else kept


@dataclass(frozen=True)
class JoinPlan:
    """A join of two streams with operators before and behind it.

    ``condition`` limits which pairs count, beyond keys and times. ``after`` are the operators
    behind the join, over ``joined``. With ``is_finished_by_spark`` Spark computes these, and the
    condition, which is then the first of them. With ``part`` only that part's groups are joined.
    """

    name: PartId
    left: PlannedSide
    right: PlannedSide
    bound: TimeBound
    kind: JoinKind
    condition: Expression | None
    joined: Schema
    after: tuple[Operator, ...]
    output: Shape
    is_finished_by_spark: bool = False
    part: Part | None = None

    @property
    def sides(self) -> tuple[PlannedSide, PlannedSide]:
        return self.left, self.right

    @property
    def streams(self) -> tuple[str, ...]:
        """What it reads, left and right."""
        return self.left.stream, self.right.stream

    @cached_property
    def terms(self) -> JoinTerms:
        """What the kernel is told."""
        left, right = (
            JoinSide(side.arrow_schema, side.keys, side.time, side.given) for side in self.sides
        )
        residual = None
        if self.condition is not None and not self.is_finished_by_spark:
            residual = partial(_meets, self.condition, self.joined)
        groups = 1 if self.part is None else self.part.spread.groups
        return JoinTerms(left, right, self.bound, self.kind, residual, groups)

    def finish(self, joined: pa.Table) -> pa.Table:
        """What the operators behind the join make of joined rows."""
        result = apply_operators(self.after, joined)
        return result.select(self.output.schema.names).cast(arrow_schema(self.output.schema))


def _meets(condition: Expression, schema: Schema, rows: pa.Table) -> pa.Array:
    return evaluate(condition, rows, schema)


def _as(values: pa.Array, type: pa.DataType) -> pa.Array:
    return values if values.type == type else values.cast(type)


def plan_join(fragment: Fragment) -> JoinPlan | NotLight:
    """The fragment as a join of two streams, or why it is not."""
    joins = [operator for operator in fragment.operators if isinstance(operator, WindowJoin)]
    if len(joins) != 1:
        return NotLight(f"it has {len(joins)} joins of streams")
    return _Planning(fragment, joins[0]).plan()


class _Planning:
    """Finds the plan of a fragment with one join."""

    def __init__(self, fragment: Fragment, join: WindowJoin) -> None:
        self._fragment = fragment
        self._join = join
        self._producers = {
            stream: operator for operator in fragment.operators for stream in operator.outputs
        }
        begun = {name: start.since for name, start in fragment.beginning.inputs.items()}
        self._sinces = {**begun, **streams_since(fragment.operators, begun)}

    def plan(self) -> JoinPlan | NotLight:
        again = [
            name
            for name, input_start in self._fragment.beginning.inputs.items()
            if input_start.before
        ]
        if again:
            return NotLight(f"rows of {again[0]} are made again for it")
        after = self._after()
        if isinstance(after, NotLight):
            return after
        join, wanted = self._join, _needed_of(self._join, after)
        read = [self._since(input.stream) for input in join.inputs]
        sides = []
        for at, input in enumerate(join.inputs):
            moments = left_given(join, *read) if at == 0 else {}
            side = self._side(input, tuple(pair[at] for pair in join.equal), wanted, moments)
            if isinstance(side, NotLight):
                return side
            sides.append(side)
        return self._put_together(sides, after)

    def _put_together(
        self, sides: Sequence[PlannedSide], after: tuple[Operator, ...]
    ) -> JoinPlan | NotLight:
        join, joined = self._join, self._join.output.schema
        missing = first_not_evaluated(after)
        if join.condition is not None and not can_evaluate(join.condition, joined):
            if join.join == "left":
                return NotLight(f"kernels cannot compute {to_sql(join.condition)}")
            missing = to_sql(join.condition)
        if missing is not None and join.condition is not None and join.join == "inner":
            after = (Filter("paired", Input(join.name, join.output), join.condition), *after)
        is_spark = missing is not None
        condition = None if is_spark and join.join == "inner" else join.condition
        output = (after[-1] if after else join).output
        plan = JoinPlan(
            self._fragment.id, sides[0], sides[1], join.bound, join.join, condition, joined,
            after, output, is_spark, self._fragment.part,
        )  # fmt: skip
        try:
            plan.terms  # noqa: B018 - building them is the check
        except InputError as error:
            return NotLight(str(error).split(". ")[0])
        return plan

    def _since(self, stream: str) -> Since:
        return self._sinces.get(stream, WHOLE)

    def _after(self) -> tuple[Operator, ...] | NotLight:
        """The operators behind the join, with filters for what counts of one that came late."""
        found: list[Operator] = []
        stream = self._fragment.output
        while stream != self._join.name:
            operator = self._producers.get(stream)
            if not isinstance(operator, Filter | Map):
                kind = "nothing" if operator is None else operator.kind
                return NotLight(f"{stream} behind the join is a {kind}")
            found[:0] = [operator, *self._counting(operator)]
            stream = operator.input.stream
        return tuple(found)

    def _counting(self, operator: Operator) -> list[Filter]:
        read = [self._since(input.stream) for input in operator.inputs]
        return list(after_moments(operator.output, result_given(operator, read)))

    def _side(
        self, input: Input, keys: tuple[str, ...], wanted: frozenset[str], moments: Moments
    ) -> PlannedSide | NotLight:
        operators: list[Operator] = list(after_moments(input.shape, moments))
        stream, shape = input.stream, input.shape
        while (operator := self._producers.get(stream)) is not None:
            if not isinstance(operator, Filter | Map):
                return NotLight(f"{operator.name} before the join is a {operator.kind}")
            operators[:0] = [operator, *self._counting(operator)]
            stream, shape = operator.input.stream, operator.input.shape
        operators[:0] = after_moments(shape, self._since(stream).given)
        computed = first_computed_time(computed_by(operators))
        if computed is not None:
            return NotLight(f"kernels cannot keep {computed} within the calendar")
        columns, conditions = inline(operators, shape.schema)
        assert input.shape.event_time is not None
        time = columns[input.shape.event_time.lower()]
        if not isinstance(time, Column):
            return NotLight(f"the event time {input.shape.event_time} is computed")
        given = tuple(name for name in input.schema.names if name.lower() in wanted)
        names = {key.lower() for key in (*keys, *given, input.shape.event_time)}
        kept = tuple(
            SideColumn(field.name, columns[field.name.lower()], field.type)
            for field in input.schema
            if field.name.lower() in names
        )
        return PlannedSide(
            stream, shape.schema, shape.schema[time.name].name, conditions, kept,
            tuple(input.schema[key].name for key in keys), input.shape.event_time, given,
        )  # fmt: skip


def _needed_of(join: WindowJoin, after: Sequence[Operator]) -> frozenset[str]:
    """The columns, in small letters, that the condition and the operators behind a join need."""
    wanted = {name.lower() for name in join.output.schema.names}
    for operator in reversed(after):
        if isinstance(operator, Filter):
            wanted |= {name.lower() for name in columns_of(operator.predicate)}
        elif isinstance(operator, Map):
            used = (columns_of(expression) for _, expression in operator.columns)
            wanted = {name.lower() for names in used for name in names}
    if join.condition is not None:
        wanted |= {name.lower() for name in columns_of(join.condition)}
    return frozenset(wanted)
