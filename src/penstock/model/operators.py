"""Operators: what happens to rows, as frozen records that check themselves when built.

Every operator has a name, reads the outputs of others by name, and knows the shape of what it
takes and gives, whether it keeps state, and whether it may move between nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal

from penstock.errors import InputError, listed
from penstock.model.aggregates import AggregateCall
from penstock.model.expressions import Column, Expression, is_column, to_sql, type_of
from penstock.model.schema import Field, Schema, Shape, TimeColumn, checked_name, leading
from penstock.model.sources import Database, Table
from penstock.model.types import DataType, common_type
from penstock.model.windows import AnyWindow, TimeBound, Window

JoinKind = Literal["inner", "left"]

WINDOW_START = "window_start"
WINDOW_END = "window_end"

# Spark counts watermarks in milliseconds and, rounding with care, lets go of a row without a
# partner up to two of them after the last moment at which one could have come.
_GIVE_UP_US = 2_000


@dataclass(frozen=True)
class Input:
    """One input of an operator: the stream it reads, by name, and that stream's shape."""

    stream: str
    shape: Shape

    @property
    def schema(self) -> Schema:
        return self.shape.schema


@dataclass(frozen=True)
class Operator:
    """What all operators share.

    ``stateful``: remembers rows from batch to batch. ``opaque``: calls code the engine cannot
    look into. ``movable``: may be handed to another node while running; operators bound to a
    database stay where they are.
    """

    name: str

    kind: ClassVar[str] = ""
    stateful: ClassVar[bool] = False
    opaque: ClassVar[bool] = False
    movable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checked_name(self.name, "operator")

    @property
    def inputs(self) -> tuple[Input, ...]:
        raise NotImplementedError

    @property
    def outputs(self) -> Mapping[str, Shape]:
        """The streams this operator gives, by name; most give one, called like themselves."""
        return {self.name: self.output}

    @property
    def output(self) -> Shape:
        raise NotImplementedError

    @property
    def delay_us(self) -> int:
        """How far the watermark of the output lies behind that of the inputs."""
        return 0

    @property
    def details(self) -> str:
        """What the operator does, in one line for people."""
        return ""


@dataclass(frozen=True)
class Filter(Operator):
    """Keeps the rows for which ``predicate`` is true."""

    input: Input
    predicate: Expression
    kind: ClassVar[str] = "filter"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_condition(self.predicate, self.input.schema)

    @property
    def inputs(self) -> tuple[Input, ...]:
        return (self.input,)

    @property
    def output(self) -> Shape:
        return self.input.shape

    @property
    def details(self) -> str:
        return to_sql(self.predicate)


@dataclass(frozen=True)
class Switch(Operator):
    """Sends each row to the first case whose condition is true; rows that fit none are dropped.

    The output of a case is the stream ``<switch>_<case>``.
    """

    input: Input
    cases: tuple[tuple[str, Expression], ...]
    kind: ClassVar[str] = "switch"

    def __post_init__(self) -> None:
        super().__post_init__()
        labels = [label for label, _ in self.cases]
        if not labels or len(set(labels)) != len(labels):
            raise InputError(
                f"switch {self.name} has the cases {listed(labels)}",
                hint="Give at least one case, each with its own name.",
            )
        for _, condition in self.cases:
            check_condition(condition, self.input.schema)

    @property
    def inputs(self) -> tuple[Input, ...]:
        return (self.input,)

    @property
    def outputs(self) -> Mapping[str, Shape]:
        return {f"{self.name}_{label}": self.input.shape for label, _ in self.cases}

    @property
    def output(self) -> Shape:
        return self.input.shape

    @property
    def details(self) -> str:
        return "; ".join(f"{label}: {to_sql(condition)}" for label, condition in self.cases)


@dataclass(frozen=True)
class Map(Operator):
    """Computes the columns of each output row from one input row."""

    input: Input
    columns: tuple[tuple[str, Expression], ...]
    kind: ClassVar[str] = "map"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.output  # noqa: B018 - building the shape is the check

    @property
    def inputs(self) -> tuple[Input, ...]:
        return (self.input,)

    @cached_property
    def _times(self) -> tuple[tuple[TimeColumn, ...], int]:
        kept = []
        for time in self.input.shape.times:
            for name, expression in self.columns:
                if is_column(expression, time.column):
                    kept.append(TimeColumn(name, time.behind_us))
        return leading(kept)

    @cached_property
    def output(self) -> Shape:
        fields = (
            Field(name, _stored(type_of(expression, self.input.schema)))
            for name, expression in self.columns
        )
        return Shape(Schema(tuple(fields)), self._times[0], self.input.shape.watermarked)

    @property
    def delay_us(self) -> int:
        return self._times[1]

    @property
    def details(self) -> str:
        return ", ".join(
            name if expression == Column(name) else f"{to_sql(expression)} AS {name}"
            for name, expression in self.columns
        )


def _stored(type: DataType) -> DataType:
    return DataType.STRING if type is DataType.NULL else type


@dataclass(frozen=True)
class Union(Operator):
    """All rows of several streams of the same columns."""

    branches: tuple[Input, ...]
    kind: ClassVar[str] = "union"

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.branches) < 2:
            raise InputError(f"union {self.name} of {len(self.branches)} streams needs two")
        self.output  # noqa: B018 - building the shape is the check

    @property
    def inputs(self) -> tuple[Input, ...]:
        return self.branches

    @cached_property
    def output(self) -> Shape:
        first = self.branches[0]
        for other in self.branches[1:]:
            _check_alike(first, other)
        fields = tuple(
            Field(field.name, _widest([branch.schema.fields[at].type for branch in self.branches]))
            for at, field in enumerate(first.schema)
        )
        event_times = {_position(stream.shape) for stream in self.branches}
        shared = len(event_times) == 1 and None not in event_times
        times = (TimeColumn(first.shape.times[0].column),) if shared else ()
        watermarked = all(branch.shape.watermarked for branch in self.branches)
        return Shape(Schema(fields), times, watermarked)


def _position(shape: Shape) -> int | None:
    return shape.schema.names.index(shape.event_time) if shape.event_time else None


def _widest(types: list[DataType]) -> DataType:
    widest = types[0]
    for type_ in types[1:]:
        widest = common_type(widest, type_) or widest
    return widest


def _check_alike(first: Input, other: Input) -> None:
    pairs = zip(first.schema, other.schema, strict=False)
    alike = len(first.schema) == len(other.schema) and all(
        common_type(column.type, two.type) is not None for column, two in pairs
    )
    if not alike:
        raise InputError(
            f"a union of {first.stream} ({first.schema}) and {other.stream} ({other.schema})",
            hint="Select as many columns of the same types on both sides.",
        )


@dataclass(frozen=True)
class Aggregate(Operator):
    """Groups the rows of each window by keys and computes aggregates of each group.

    Gives the keys, ``window_start``, ``window_end`` and the aggregates, once per group, when the
    watermark passes the window's end.
    """

    input: Input
    window: AnyWindow
    keys: tuple[tuple[str, Expression], ...]
    aggregates: tuple[tuple[str, AggregateCall], ...]
    kind: ClassVar[str] = "aggregate"
    stateful: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_windowable(self.input, "a window")
        self.output  # noqa: B018 - building the shape is the check

    @property
    def inputs(self) -> tuple[Input, ...]:
        return (self.input,)

    @cached_property
    def output(self) -> Shape:
        schema = self.input.schema
        keys = [(name, _stored(type_of(key, schema))) for name, key in self.keys]
        bounds = [(WINDOW_START, DataType.TIMESTAMP), (WINDOW_END, DataType.TIMESTAMP)]
        results = [(name, call.result_type(schema)) for name, call in self.aggregates]
        times = [TimeColumn(WINDOW_END)]
        if isinstance(self.window, Window):
            times.append(TimeColumn(WINDOW_START, self.window.size_us))
        return Shape(Schema.of([*keys, *bounds, *results]), tuple(times))

    @property
    def details(self) -> str:
        by = f"by {listed(name for name, _ in self.keys)}" if self.keys else ""
        what = ", ".join(f"{call.sql()} AS {name}" for name, call in self.aggregates)
        return f"{' '.join(part for part in (what, by) if part)}, {self.window}"


@dataclass(frozen=True)
class WindowJoin(Operator):
    """Pairs rows of two streams with equal keys whose event times lie within a bound.

    Columns of both sides must differ in name. ``kind_of_join`` left also gives the left rows
    without a partner, once none can come any more.
    """

    left: Input
    right: Input
    equal: tuple[tuple[str, str], ...]
    bound: TimeBound
    condition: Expression | None = None
    join: JoinKind = "inner"
    kind: ClassVar[str] = "join"
    stateful: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_windowable(self.left, "a join")
        check_windowable(self.right, "a join")
        check_equal_types(self.equal, self.left.schema, self.right.schema)
        schema = self.output.schema
        if self.condition is not None:
            check_condition(self.condition, schema)

    @property
    def inputs(self) -> tuple[Input, ...]:
        return (self.left, self.right)

    @cached_property
    def _times(self) -> tuple[tuple[TimeColumn, ...], int]:
        left, right = self.left.shape.event_time, self.right.shape.event_time
        assert left is not None and right is not None
        reach_us = max(self.bound.upper_us, 0)
        if self.join == "left":
            return leading([TimeColumn(left, reach_us + _GIVE_UP_US)])
        return leading(
            [TimeColumn(left, reach_us), TimeColumn(right, max(-self.bound.lower_us, 0))]
        )

    @cached_property
    def output(self) -> Shape:
        schema = Schema((*self.left.schema.fields, *self.right.schema.fields))
        return Shape(schema, self._times[0])

    @property
    def delay_us(self) -> int:
        return self._times[1]

    @property
    def details(self) -> str:
        keys = ", ".join(f"{left} = {right}" for left, right in self.equal)
        return f"{self.join} on {keys or 'nothing'}, {self.bound}"


@dataclass(frozen=True)
class TableJoin(Operator):
    """Adds the columns of a table's rows with equal keys; the table is read once at the start."""

    input: Input
    table: Table
    equal: tuple[tuple[str, str], ...]
    columns: tuple[tuple[str, str], ...]
    join: JoinKind = "inner"
    kind: ClassVar[str] = "table_join"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_equal_types(self.equal, self.input.schema, self.table.schema)
        if not self.equal:
            raise InputError(
                f"the join with table {self.table.name} compares no columns",
                hint="Say which are equal: ON stream.column = table.column.",
            )
        self.output  # noqa: B018 - building the shape is the check

    @property
    def inputs(self) -> tuple[Input, ...]:
        return (self.input,)

    @cached_property
    def output(self) -> Shape:
        added = (Field(given, self.table.schema[column].type) for given, column in self.columns)
        shape = self.input.shape
        schema = Schema((*shape.schema.fields, *added))
        return Shape(schema, shape.times, shape.watermarked)

    @property
    def details(self) -> str:
        keys = ", ".join(f"{left} = {self.table.name}.{right}" for left, right in self.equal)
        return f"{self.join} with {self.table.name} on {keys}"


@dataclass(frozen=True)
class SqlRead(TableJoin):
    """Adds the columns of a database table's rows with equal keys, looked up batch by batch."""

    kind: ClassVar[str] = "sql_read"
    opaque: ClassVar[bool] = True
    movable: ClassVar[bool] = False

    @property
    def database(self) -> Database:
        assert self.table.database is not None
        return self.table.database


@dataclass(frozen=True)
class SqlWrite(Operator):
    """Appends every row to a database table, exactly once, and passes it on."""

    input: Input
    database: Database
    table: str
    kind: ClassVar[str] = "sql_write"
    movable: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_name(self.table, "database table")

    @property
    def inputs(self) -> tuple[Input, ...]:
        return (self.input,)

    @property
    def output(self) -> Shape:
        return self.input.shape

    @property
    def details(self) -> str:
        return f"into {self.table} of {self.database.shown}"


@dataclass(frozen=True)
class PythonOperator(Operator):
    """A user's function on Arrow batches, named ``module:function``.

    The function takes a ``pyarrow.RecordBatch`` and gives one, or several by ``yield``, with the
    columns of ``schema``. If the event-time column is among them it must be passed on unchanged.
    The module is looked for in ``folder`` first, that of the file it is named in.
    """

    input: Input
    function: str
    schema: Schema
    # Where a module lies says nothing about what it does, and a plan is known by its text.
    folder: Path | None = field(default=None, repr=False, compare=False)
    kind: ClassVar[str] = "python"
    opaque: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        module, colon, function = self.function.partition(":")
        if not (module and colon and function):
            raise InputError(
                f"{self.function!r} names no function",
                hint="Write module:function, for example cleaning:drop_spikes.",
            )

    @property
    def inputs(self) -> tuple[Input, ...]:
        return (self.input,)

    @property
    def output(self) -> Shape:
        event_time = self.input.shape.event_time
        column = self.schema.find(event_time) if event_time else None
        if column is None or column.type is not DataType.TIMESTAMP:
            return Shape(self.schema)
        return Shape.timed(self.schema, column.name, self.input.shape.watermarked)

    @property
    def details(self) -> str:
        return self.function


def check_condition(condition: Expression, schema: Schema) -> None:
    """Raises unless ``condition`` is true or false for every row of ``schema``."""
    type = type_of(condition, schema)
    if type not in (DataType.BOOLEAN, DataType.NULL):
        raise InputError(
            f"the condition {to_sql(condition)} is a {type}, not true or false",
            hint="Compare it with something, for example … > 0.",
        )


def check_equal_types(equal: tuple[tuple[str, str], ...], left: Schema, right: Schema) -> None:
    """Raises unless every pair of columns compared by a join can be compared."""
    for one, other in equal:
        first, second = left[one], right[other]
        if common_type(first.type, second.type) is None:
            raise InputError(
                f"a join compares {first.name}, a {first.type}, with {second.name}, "
                f"a {second.type}",
                hint="Cast one of them.",
            )


def check_windowable(input: Input, what: str) -> None:
    """Raises unless windows over ``input`` can close."""
    if input.shape.event_time is None:
        raise InputError(
            f"{what} over {input.stream} needs an event time, and {input.stream} has none",
            hint="Name a timestamp column with event_time in the stream, "
            "or keep the event-time column in the query it comes from.",
        )
    if not input.shape.watermarked:
        raise InputError(
            f"{what} over {input.stream} needs a watermark, and {input.stream} has none",
            hint="Say how far rows may be out of order, for example lateness: 2min.",
        )
