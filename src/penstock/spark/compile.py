"""Operators to DataFrames: the plan Spark runs for a fragment, as one would write it by hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.errors import InputError
from penstock.feeds.arrow import arrow_schema
from penstock.model.aggregates import AggregateCall
from penstock.model.beginnings import (
    WHOLE,
    Moments,
    Since,
    left_given,
    result_given,
    since_behind,
)
from penstock.model.expressions import (
    Call,
    Expression,
    Literal,
    all_of,
    columns_of,
    condition_sql,
    to_sql,
    type_of,
)
from penstock.model.expressions import Column as ColumnNamed
from penstock.model.fragments import Fragment
from penstock.model.operators import (
    WINDOW_END,
    WINDOW_START,
    Aggregate,
    Filter,
    Input,
    Map,
    Operator,
    PythonOperator,
    SqlRead,
    Switch,
    TableJoin,
    Union,
    WindowJoin,
)
from penstock.model.retime import Retime
from penstock.model.schema import Schema
from penstock.model.windows import AnyWindow, SessionWindow
from penstock.spark.calendar import in_calendar
from penstock.spark.ddl import spark_ddl
from penstock.spark.lookup import looked_up
from penstock.spark.sources.beats import (
    BEAT,
    DELAY_DAYS,
    SHIFT_US,
    TIME,
    event_time_of,
    time_column,
)
from penstock.spark.tables import table_frame
from penstock.spark.user_functions import check_same_times, user_function

Frames = Mapping[str, DataFrame]
_FALSE = Literal(False)
_JOIN_TIMES = ("__left_time", "__right_time")


def watermarked(rows: DataFrame, event_time: str) -> DataFrame:
    """Rows of a reader with its watermark taken over and its heartbeats removed.

    They get the column ``TIME``, which carries the watermark. The condition names it so that the
    optimiser leaves it above the watermark operator; below it the heartbeats would be gone before
    they counted.
    """
    timed = rows.selectExpr("*", time_column(event_time))
    marked = timed.withWatermark(TIME, f"{DELAY_DAYS} days")
    return marked.where(f"NOT (`{BEAT}` AND `{TIME}` IS NOT NULL)").drop(BEAT)


def compile_fragment(
    session: SparkSession,
    fragment: Fragment,
    inputs: Frames,
    needed: Mapping[str, tuple[str, ...]],
) -> DataFrame:
    """The rows of the fragment's output that count, given those of its inputs that do."""
    frames = dict(inputs)
    sinces = {name: input_start.since for name, input_start in fragment.beginning.inputs.items()}
    for operator in fragment.operators:
        read = [sinces.get(input.stream, WHOLE) for input in operator.inputs]
        whole = frames | _whole_left(operator, frames, read)
        made = compile_operator(session, operator, whole, needed)
        given = result_given(operator, read)
        frames |= {name: counting(rows, given) for name, rows in made.items()}
        sinces |= dict.fromkeys(operator.outputs, since_behind(operator, read))
    return frames[fragment.output].drop(TIME)


def counting(rows: DataFrame, given: Moments) -> DataFrame:
    """The rows that lie after these times."""
    for column, since_us in given.items():
        rows = rows.where(f"`{column}` > timestamp_micros({since_us}L)")
    return rows


def _whole_left(operator: Operator, frames: Frames, read: Sequence[Since]) -> dict[str, DataFrame]:
    """The left rows of a join all of whose partners are seen, where not all are."""
    if not isinstance(operator, WindowJoin):
        return {}
    stream = operator.left.stream
    return {stream: counting(frames[stream], left_given(operator, *read))}


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
            rows = sources[0].where(condition_sql(predicate, input.schema))
        case Map(input=input, columns=columns):
            rows = sources[0].selectExpr(*_projection(columns, input.schema), *_time(sources))
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
        case Retime():
            # Late rows are set aside where all of them enter a channel, in their order.
            rows = sources[0]
        case _:
            raise InputError(f"Spark cannot run a {operator.kind}")
    return {operator.name: rows}


def _projection(columns: tuple[tuple[str, Expression], ...], schema: Schema) -> list[str]:
    return [f"{_value(expression, schema)} AS `{name}`" for name, expression in columns]


def _value(expression: Expression, schema: Schema) -> str:
    text = to_sql(expression, schema)
    return (
        text
        if isinstance(expression, ColumnNamed)
        else in_calendar(text, type_of(expression, schema))
    )


def _time(sources: list[DataFrame]) -> tuple[str, ...]:
    """The column by which Spark counts, where all of these still have it."""
    return (TIME,) if all(TIME in rows.columns for rows in sources) else ()


def _switch(operator: Switch, rows: DataFrame) -> Frames:
    frames: dict[str, DataFrame] = {}
    taken: tuple[Expression, ...] = ()
    schema = operator.input.schema
    for label, condition in operator.cases:
        mine = all_of((*taken, condition))
        frames[f"{operator.name}_{label}"] = rows.where(condition_sql(mine, schema))
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
            ),
            *_time(sources),
        )
        for rows, branch in zip(sources, operator.branches, strict=True)
    ]
    whole = aligned[0]
    for rows in aligned[1:]:
        whole = whole.union(rows)
    return whole


def _aggregate(operator: Aggregate, rows: DataFrame) -> DataFrame:
    schema = operator.input.schema
    keys = [F.expr(_value(key, schema)).alias(name) for name, key in operator.keys]
    window = _window(operator.window).alias("__window")
    keyed = any(columns_of(key) for _, key in operator.keys)
    if isinstance(operator.window, SessionWindow) and not keyed:
        # Spark has no sessions of all rows together, so they get a key in common.
        keys.append(F.expr(_same_for_all(TIME)).alias("__all"))
    grouped = rows.groupBy(*keys, window)
    calls = [F.expr(_call(call, schema)).alias(name) for name, call in operator.aggregates]
    # Grouping without an aggregate still has to keep one row a group.
    results = grouped.agg(*(calls or [F.count(F.lit(1)).alias("__rows")]))
    return results.select(
        *(F.col(f"`{name}`") for name, _ in operator.keys),
        F.expr(event_time_of("__window.start")).alias(WINDOW_START),
        F.expr(event_time_of("__window.end")).alias(WINDOW_END),
        *(F.col(f"`{name}`") for name, _ in operator.aggregates),
    )


def _window(window: AnyWindow) -> Column:
    if isinstance(window, SessionWindow):
        return F.session_window(TIME, f"{window.gap_us} microseconds")
    # Windows begin at multiples of the slide, counted from 1970 by event time.
    lengths_us = (window.size_us, window.slide_us, SHIFT_US % window.slide_us)
    return F.window(TIME, *(f"{length_us} microseconds" for length_us in lengths_us))


def _call(call: AggregateCall, schema: Schema) -> str:
    if all(isinstance(argument, ColumnNamed) for argument in call.arguments):
        return call.sql(schema)
    return in_calendar(call.sql(schema), call.result_type(schema))


def _window_join(
    operator: WindowJoin, sources: list[DataFrame], needed: Mapping[str, tuple[str, ...]]
) -> DataFrame:
    """Rows kept in state have the event time once, as Spark counts it, unless it is compared."""
    left, right = (
        rows.select(*_compared(operator, input, needed), F.col(TIME).alias(time))
        for rows, input, time in zip(sources, operator.inputs, _JOIN_TIMES, strict=True)
    )
    how = "left_outer" if operator.join == "left" else "inner"
    joined = left.join(right, F.expr(_join_condition(operator)), how)
    given = [
        F.expr(event_time_of(time) if name == input.shape.event_time else f"`{name}`").alias(name)
        for input, time in zip(operator.inputs, _JOIN_TIMES, strict=True)
        for name in needed[input.stream]
    ]
    return joined.select(*given)


def _compared(
    operator: WindowJoin, input: Input, needed: Mapping[str, tuple[str, ...]]
) -> list[str]:
    read = {name.lower() for pair in operator.equal for name in pair}
    if operator.condition is not None:
        read |= {name.lower() for name in columns_of(operator.condition)}
    event_time = input.shape.event_time
    names = needed[input.stream]
    return [f"`{name}`" for name in names if name != event_time or name.lower() in read]


def _join_condition(operator: WindowJoin) -> str:
    left, right = _JOIN_TIMES
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


def _same_for_all(time: str) -> str:
    """A key that is 0 for every row, in a form that the optimiser does not see through."""
    return f"unix_micros(`{time}`) % 1"


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


def _python(operator: PythonOperator, rows: DataFrame) -> DataFrame:
    user_function(operator.function, operator.folder)
    name, folder, wanted = operator.function, operator.folder, arrow_schema(operator.schema)
    event_time = operator.output.event_time
    given_time = operator.input.shape.event_time

    def apply(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        function = user_function(name, folder)
        for batch in batches:
            given = function(batch)
            for made in [given] if isinstance(given, pa.RecordBatch) else given:
                table = pa.Table.from_batches([made]).select(wanted.names).cast(wanted)
                if event_time is not None and given_time is not None:
                    check_same_times(name, table[event_time], batch[given_time])
                yield from table.to_batches()

    names = [f"`{column}`" for column in operator.input.schema.names]
    return rows.select(*names).mapInArrow(apply, spark_ddl(operator.schema))
