"""The Spark job of a round: read what is new in a channel, and aggregate it in the tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import pyarrow as pa
from pyspark import Broadcast
from pyspark.sql import SparkSession

from penstock.feeds.arrow import arrow_schema
from penstock.kernels.batch_rows import BatchRows
from penstock.kernels.shared_work import SharedWork
from penstock.kernels.state_shape import StateShape
from penstock.kernels.window_plan import WindowPlan
from penstock.model.expressions import Expression, columns_of, to_sql, type_of
from penstock.model.schema import Schema
from penstock.spark.bundles.container import serialize
from penstock.spark.calendar import in_calendar
from penstock.spark.ddl import spark_ddl

_ANSWER = "shape int, partials binary"
_COMPUTED = "__computed_"
# What a task costs however few rows it has, for all members, is more than it saves by then.
_ROWS_OF_ONE_TASK = 50_000

Plans = Mapping[int, WindowPlan]


class Projection:
    """What the tasks of a round are given: columns as they are, and what Spark computes."""

    def __init__(self, plans: Plans) -> None:
        self.schema: Schema = next(iter(plans.values())).schema
        left = dict.fromkeys(
            expression for plan in plans.values() for expression in plan.left_to_spark
        )
        self.computed: dict[Expression, str] = {
            expression: f"{_COMPUTED}{at}" for at, expression in enumerate(left)
        }
        self.columns = _columns_needed(plans, self.computed, self.schema)

    @property
    def sql(self) -> list[str]:
        """The columns as Spark is asked for them."""
        given = [f"`{name}`" for name in self.columns]
        return given + [
            f"{self._value(expression)} AS `{name}`" for expression, name in self.computed.items()
        ]

    def _value(self, expression: Expression) -> str:
        text = to_sql(expression, self.schema)
        return in_calendar(text, type_of(expression, self.schema))

    @property
    def read_schema(self) -> Schema:
        """The columns that are read from the channel's files."""
        wanted = set(self.columns).union(*map(columns_of, self.computed))
        folded = {name.lower() for name in wanted}
        return Schema(tuple(field for field in self.schema if field.name.lower() in folded))


def _columns_needed(
    plans: Plans, computed: Mapping[Expression, str], schema: Schema
) -> tuple[str, ...]:
    needed = {
        name.lower()
        for plan in plans.values()
        for expression in plan.expressions
        if expression not in computed
        for name in columns_of(expression)
    }
    return tuple(field.name for field in schema if field.name.lower() in needed)


class RoundJob:
    """Runs the jobs of one group of members; made anew when its members change.

    What the tasks need to know travels once, as a broadcast; a round then sends file names only.
    """

    def __init__(self, session: SparkSession, plans: Plans) -> None:
        self._session = session
        self._plans = dict(plans)
        self._projection = Projection(plans)
        self.shapes = list(dict.fromkeys(StateShape.of(plan) for plan in plans.values()))
        self._task = _Task(
            self._plans, self.shapes, self._projection.computed, self._projection.schema
        )
        self._known: Broadcast[_Task] = session.sparkContext.broadcast(self._task)
        self._ddl = spark_ddl(self._projection.read_schema)

    @property
    def needs_spark(self) -> bool:
        """Whether some expressions are left to Spark."""
        return bool(self._projection.computed)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read, if Spark has nothing to compute."""
        return self._projection.columns

    def run_here(self, rows: pa.Table) -> dict[StateShape, list[pa.Table]]:
        """The partial aggregates of rows with these :attr:`columns`, without a Spark job."""
        schema = arrow_schema(self._projection.read_schema)
        batch = BatchRows(rows.cast(schema).combine_chunks(), self._projection.schema)
        return {shape: [table] for shape, table in self._task.work.compute(batch).items()}

    def run(self, files: Sequence[Path], count: int) -> dict[StateShape, list[pa.Table]]:
        """The partial aggregates of all ``count`` rows in these files, in the order of the rows."""
        rows = self._session.read.schema(self._ddl).parquet(*map(str, files))
        if count <= _ROWS_OF_ONE_TASK:
            rows = rows.coalesce(1)
        answer = (
            rows.selectExpr(*self._projection.sql)
            .mapInArrow(_aggregate(self._known), _ANSWER)
            .toArrow()
        )
        found: dict[StateShape, list[pa.Table]] = {}
        shapes, bodies = answer.column("shape").to_pylist(), answer.column("partials")
        for shape, body in zip(shapes, bodies, strict=True):
            table = pa.ipc.open_stream(body.as_buffer()).read_all()
            found.setdefault(self.shapes[shape], []).append(table)
        return found

    def close(self) -> None:
        """Lets go of what the tasks know."""
        self._known.destroy()


class _Task:
    """What a task knows about the members it works for."""

    def __init__(
        self,
        plans: Plans,
        shapes: list[StateShape],
        computed: Mapping[Expression, str],
        schema: Schema,
    ) -> None:
        self._plans = plans
        self.shapes = shapes
        self.computed = computed
        self.schema = schema

    @cached_property
    def work(self) -> SharedWork:
        """The work of all members; put together once in each process that runs tasks."""
        return SharedWork(self._plans)


def _aggregate(
    known: Broadcast[_Task],
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def aggregate(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        given = list(batches)
        rows = pa.Table.from_batches(given) if given else None
        if rows is None or not rows.num_rows:
            return
        task = known.value
        batch = BatchRows(rows.combine_chunks(), task.schema, task.computed)
        partials = task.work.compute(batch)
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([task.shapes.index(shape) for shape in partials], pa.int32()),
                pa.array([bytes(serialize(table)) for table in partials.values()], pa.binary()),
            ],
            names=["shape", "partials"],
        )

    return aggregate
