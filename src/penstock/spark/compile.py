"""Operators to DataFrames: the plan Spark runs for a fragment, as one would write it by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.errors import InputError
from penstock.feeds.arrow import arrow_schema
from penstock.model.aggregates import AggregateCall
from penstock.model.expressions import Call, Expression, Literal, all_of, columns_of, to_sql
from penstock.model.fragments import Fragment
from penstock.model.operators import (
    WINDOW_END,
    WINDOW_START,
    Aggregate,
    Filter,
    Map,
    Operator,
    PythonOperator,
    SqlRead,
    Switch,
    TableJoin,
    Union,
    WindowJoin,
)
from penstock.model.schema import Schema
from penstock.model.windows import AnyWindow, SessionWindow, Window
from penstock.spark.ddl import spark_ddl
from penstock.spark.lookup import looked_up
from penstock.spark.sources.beats import BEAT, DELAY_DAYS
from penstock.spark.tables import table_frame

Frames = Mapping[str, DataFrame]
UserFunction = Callable[[pa.RecordBatch], pa.RecordBatch | Iterable[pa.RecordBatch]]

_FALSE = Literal(False)


def watermarked(rows: DataFrame, event_time: str) -> DataFrame:
    """Rows of a reader with its watermark taken over and its heartbeats removed.

    The condition names the event time so that the optimiser leaves it above the watermark
    operator; below it the heartbeats would be gone before they counted.
    """
    marked = rows.withWatermark(event_time, f"{DELAY_DAYS} days")
    return marked.where(f"NOT (`{BEAT}` AND `{event_time}` IS NOT NULL)").drop(BEAT)


def compile_fragment(
    session: SparkSession,
    fragment: Fragment,
    inputs: Frames,
    needed: Mapping[str, tuple[str, ...]],
) -> DataFrame:
    """The rows of the fragment's output, given those of its inputs."""
    frames = dict(inputs)
    for operator in fragment.operators:
        frames.update(compile_operator(session, operator, frames, needed))
    return frames[fragment.output]


def compile_operator(
    session: SparkSession,
    operator: Operator,
    frames: Frames,
    needed: Mapping[str, tuple[str, ...]],
) -> Frames:
    """The rows of each of the operator's outputs."""
    sources = [frames[input.stream] for input in operator.inputs]
    match operator:
        case Switch():
            return _switch(operator, sources[0])
        case Filter(input=input, predicate=predicate):
            rows = sources[0].where(to_sql(predicate, input.schema))
        case Map(input=input, columns=columns):
            rows = sources[0].selectExpr(*_projection(columns, input.schema))
        case Union():
            rows = _union(operator, sources)
        case Aggregate():
            rows = _aggregate(operator, sources[0])
        case WindowJoin():
            rows = _window_join(operator, sources, needed)
        case SqlRead():
            rows = looked_up(operator, sources[0], needed[operator.input.stream])
        case TableJoin():
            rows = _table_join(session, operator, sources[0])
        case PythonOperator():
            rows = _python(operator, sources[0])
        case _:
            raise InputError(f"Spark cannot run a {operator.kind}")
    return {operator.name: rows}


def _projection(columns: tuple[tuple[str, Expression], ...], schema: Schema) -> list[str]:
    return [f"{to_sql(expression, schema)} AS `{name}`" for name, expression in columns]


def _switch(operator: Switch, rows: DataFrame) -> Frames:
    frames: dict[str, DataFrame] = {}
    taken: tuple[Expression, ...] = ()
    schema = operator.input.schema
    for label, condition in operator.cases:
        mine = all_of((*taken, condition))
        frames[f"{operator.name}_{label}"] = rows.where(to_sql(mine, schema))
        # A condition that is null is not taken either, so the next case gets the row.
        missed = Call("not", (Call("coalesce", (condition, _FALSE)),))
        taken = (*taken, missed)
    return frames


def _union(operator: Union, sources: list[DataFrame]) -> DataFrame:
    schema = operator.output.schema
    aligned = [
        rows.select(
            *(
                F.col(f"`{theirs.name}`").alias(ours.name)
                if theirs.type is ours.type
                else F.col(f"`{theirs.name}`").cast(str(ours.type)).alias(ours.name)
                for theirs, ours in zip(branch.schema, schema, strict=True)
            )
        )
        for rows, branch in zip(sources, operator.branches, strict=True)
    ]
    whole = aligned[0]
    for rows in aligned[1:]:
        whole = whole.union(rows)
    return whole


def _aggregate(operator: Aggregate, rows: DataFrame) -> DataFrame:
    schema = operator.input.schema
    keys = [F.expr(to_sql(key, schema)).alias(name) for name, key in operator.keys]
    event_time = operator.input.shape.event_time
    assert event_time is not None
    window = _window(operator.window, event_time)
    keyed = any(columns_of(key) for _, key in operator.keys)
    if isinstance(operator.window, SessionWindow) and not keyed:
        # Spark has no sessions of all rows together, so they get a key in common.
        keys.append(F.expr(_same_for_all(event_time)).alias("__all"))
    grouped = rows.groupBy(*keys, window)
    calls = [_call(call, schema).alias(name) for name, call in operator.aggregates]
    # Grouping without an aggregate still has to keep one row a group.
    results = grouped.agg(*(calls or [F.count(F.lit(1)).alias("__rows")]))
    return results.select(
        *(F.col(f"`{name}`") for name, _ in operator.keys),
        F.col("__window.start").alias(WINDOW_START),
        F.col("__window.end").alias(WINDOW_END),
        *(F.col(f"`{name}`") for name, _ in operator.aggregates),
    )


def _window(window: AnyWindow, event_time: str) -> Column:
    column = F.col(f"`{event_time}`")
    if isinstance(window, Window):
        size, slide = f"{window.size_us} microseconds", f"{window.slide_us} microseconds"
        return F.window(column, size, slide).alias("__window")
    return F.session_window(column, f"{window.gap_us} microseconds").alias("__window")


def _call(call: AggregateCall, schema: Schema) -> Column:
    return F.expr(call.sql(schema))


def _window_join(
    operator: WindowJoin, sources: list[DataFrame], needed: Mapping[str, tuple[str, ...]]
) -> DataFrame:
    left, right = (
        rows.select(*(f"`{name}`" for name in input.schema.names if name in keep))
        for rows, input, keep in zip(sources, operator.inputs, _kept(operator, needed), strict=True)
    )
    how = "left_outer" if operator.join == "left" else "inner"
    return left.join(right, F.expr(_join_condition(operator)), how)


def _kept(operator: WindowJoin, needed: Mapping[str, tuple[str, ...]]) -> list[tuple[str, ...]]:
    return [needed[input.stream] for input in operator.inputs]


def _join_condition(operator: WindowJoin) -> str:
    left, right = operator.left.shape.event_time, operator.right.shape.event_time
    bound = operator.bound
    parts = [f"`{one}` = `{other}`" for one, other in operator.equal]
    if bound.lower_us == bound.upper_us == 0:
        parts.append(f"`{right}` = `{left}`")
    else:
        if not parts:
            # Spark joins streams by equal keys only, so they get one in common.
            parts.append(f"{_same_for_all(left)} = {_same_for_all(right)}")
        parts.append(f"`{right}` >= `{left}` + {_interval(bound.lower_us)}")
        parts.append(f"`{right}` <= `{left}` + {_interval(bound.upper_us)}")
    if operator.condition is not None:
        parts.append(to_sql(operator.condition, operator.output.schema))
    return " AND ".join(parts)


def _same_for_all(event_time: str | None) -> str:
    """A key that is 0 for every row, in a form that the optimiser does not see through."""
    return f"unix_micros(`{event_time}`) % 1"


def _interval(us: int) -> str:
    sign, size = ("-", -us) if us < 0 else ("", us)
    return f"INTERVAL '{sign}{size // 10**6}.{size % 10**6:06d}' SECOND"


def _table_join(session: SparkSession, operator: TableJoin, rows: DataFrame) -> DataFrame:
    table = table_frame(session, operator.table)
    keys = {right: f"__key_{at}" for at, (_, right) in enumerate(operator.equal)}
    lookup = table.select(
        *(F.col(f"`{right}`").alias(name) for right, name in keys.items()),
        *(F.col(f"`{column}`").alias(given) for given, column in operator.columns),
    )
    condition = " AND ".join(f"`{left}` = `{keys[right]}`" for left, right in operator.equal)
    how = "left_outer" if operator.join == "left" else "inner"
    return rows.join(F.broadcast(lookup), F.expr(condition), how).drop(*keys.values())


def user_function(name: str) -> UserFunction:
    """The function called ``module:function``."""
    module, _, attribute = name.partition(":")
    try:
        function: UserFunction = getattr(import_module(module), attribute)
        return function
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"the Python operator {name} cannot be loaded: {error}",
            hint="Check the name; the module must be importable, for example through PYTHONPATH.",
        ) from None


def _python(operator: PythonOperator, rows: DataFrame) -> DataFrame:
    user_function(operator.function)
    name, wanted = operator.function, arrow_schema(operator.schema)

    def apply(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        function = user_function(name)
        for batch in batches:
            given = function(batch)
            for one in [given] if isinstance(given, pa.RecordBatch) else given:
                table = pa.Table.from_batches([one]).select(wanted.names)
                yield from table.cast(wanted).to_batches()

    names = [f"`{one}`" for one in operator.input.schema.names]
    return rows.select(*names).mapInArrow(apply, spark_ddl(operator.schema))
