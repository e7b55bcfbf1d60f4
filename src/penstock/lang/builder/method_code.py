"""Operators as the calls of a flow's methods that make them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from penstock.lang.builder.end_code import url_code
from penstock.lang.builder.writing import keywords, literal
from penstock.lang.sql import expression_sql
from penstock.model.aggregates import AggregateCall
from penstock.model.durations import duration_text
from penstock.model.expressions import Column, Expression
from penstock.model.operators import (
    Aggregate,
    Filter,
    Map,
    Operator,
    PythonOperator,
    SqlWrite,
    Switch,
    TableJoin,
    Union,
    WindowJoin,
)
from penstock.model.retime import Retime
from penstock.model.windows import AnyWindow, SessionWindow, TimeBound

Calls = list[tuple[str, Sequence[str]]]
Named = tuple[tuple[str, Expression], ...]


def method_calls(
    operator: Operator, flow: Callable[[str], str], table: Callable[[str], str]
) -> Calls:
    """The calls on the operator's first input; ``flow`` and ``table`` give the text of others."""
    match operator:
        case Filter(predicate=predicate):
            return [("filter", [_sql(predicate)])]
        case Map(columns=columns):
            return [("select", _named(columns))]
        case Union(branches=branches):
            return [("union", [flow(branch.stream) for branch in branches[1:]])]
        case Aggregate():
            return _aggregate(operator)
        case WindowJoin():
            return [("join", [flow(operator.right.stream), *_join(operator)])]
        case TableJoin():
            return [("join_table", [table(operator.table.name), *_table_join(operator)])]
        case PythonOperator(function=function, schema=schema):
            return [("apply", [literal(function), f"schema={literal(str(schema))}"])]
        case Retime(event_time=event_time, lateness_us=lateness_us):
            lateness = literal(duration_text(lateness_us))
            return [("timed", [literal(event_time), f"lateness={lateness}"])]
        case Switch(name=name, cases=cases):
            conditions = {label: _sql(condition) for label, condition in cases}
            return [("switch", [literal(name), *keywords(conditions)])]
        case SqlWrite(table=stored, database=database):
            return [("write", [literal(stored), url_code(database.url)])]
    raise TypeError(f"{operator.kind} has no method")


def _sql(expression: Expression) -> str:
    return literal(expression_sql(expression))


def _named(columns: Named) -> list[str]:
    """Columns kept as they are, as long as they come first, and the others with their names."""
    kept = 0
    while kept < len(columns) and columns[kept][1] == Column(columns[kept][0]):
        kept += 1
    names = [literal(name) for name, _ in columns[:kept]]
    return [*names, *keywords({name: _sql(expression) for name, expression in columns[kept:]})]


def _aggregate(operator: Aggregate) -> Calls:
    keys: Calls = [("group_by", _named(operator.keys))] if operator.keys else []
    calls = {name: _aggregation(aggregate_call) for name, aggregate_call in operator.aggregates}
    return [_window(operator.window), *keys, ("agg", keywords(calls))]


def _window(window: AnyWindow) -> tuple[str, list[str]]:
    if isinstance(window, SessionWindow):
        return "session", [_duration(window.gap_us)]
    slide = [] if window.is_tumbling else [f"slide={_duration(window.slide_us)}"]
    return "window", [_duration(window.size_us), *slide]


def _aggregation(call: AggregateCall) -> str:
    return f"ps.{call.function}({', '.join(_sql(argument) for argument in call.arguments)})"


def _join(join: WindowJoin) -> list[str]:
    on = [f"on={_pairs(join.equal)}"] if join.equal else []
    where = [] if join.condition is None else [f"where={_sql(join.condition)}"]
    return [*on, *_bound(join.bound), *where, *_how(join.join)]


def _table_join(join: TableJoin) -> list[str]:
    columns = f"columns={literal(dict(join.columns))}"
    return [f"on={_pairs(join.equal)}", columns, *_how(join.join)]


def _pairs(pairs: tuple[tuple[str, str], ...]) -> str:
    if all(ours == theirs for ours, theirs in pairs):
        return literal([ours for ours, _ in pairs])
    return literal(dict(pairs)) if len(dict(pairs)) == len(pairs) else literal(pairs)


def _how(kind: str) -> list[str]:
    return [] if kind == "inner" else [f"how={literal(kind)}"]


def _bound(bound: TimeBound) -> list[str]:
    if bound.upper_us == -bound.lower_us:
        return [f"within={_duration(bound.upper_us)}"]
    ends: Mapping[str, int] = {"before": -bound.lower_us, "after": bound.upper_us}
    return [f"{name}={_duration(us)}" for name, us in ends.items() if us]


def _duration(us: int) -> str:
    return literal(duration_text(us) if us >= 0 else f"-{duration_text(-us)}")
