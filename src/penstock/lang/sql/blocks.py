"""What each kind of operator adds to the SELECT it is written in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from sqlglot import exp

from penstock.lang.sql.expression_text import (
    aggregate_node,
    interval_node,
    name_node,
    to_node,
)
from penstock.lang.sql.select_text import SelectText, Source, Stage
from penstock.model.durations import duration_text
from penstock.model.expressions import Call, Expression, conjuncts
from penstock.model.operators import (
    WINDOW_END,
    WINDOW_START,
    Aggregate,
    Filter,
    Map,
    TableJoin,
    WindowJoin,
)
from penstock.model.schema import Schema
from penstock.model.windows import AnyWindow, TimeBound, Window


def from_source(name: str, mark: str, schema: Schema, names: Mapping[str, str]) -> SelectText:
    """A SELECT that only reads something, whose columns are called there as ``names`` says."""
    columns = {column: _column(mark, names.get(column, column)) for column in schema.names}
    return SelectText((Source(name, mark),), columns)


def _column(mark: str, name: str) -> exp.Expr:
    return exp.Column(this=name_node(name), table=exp.to_identifier(mark))


def conditions(expression: Expression, block: SelectText) -> tuple[exp.Expr, ...]:
    """The parts of a condition, a pair of limits on one value as BETWEEN."""
    parts = list(conjuncts(expression))
    nodes: list[exp.Expr] = []
    while parts:
        pair = Call("and", (parts[0], parts[1])) if len(parts) > 1 else None
        whole = to_node(pair, block.column) if pair is not None else None
        if isinstance(whole, exp.Between):
            nodes.append(whole)
            parts = parts[2:]
        else:
            nodes.append(to_node(parts.pop(0), block.column))
    return tuple(nodes)


def filtered(operator: Filter, block: SelectText) -> SelectText:
    """A filter is WHERE, or HAVING after GROUP BY."""
    nodes = conditions(operator.predicate, block)
    if block.stage is Stage.GROUP:
        return replace(block, having=(*block.having, *nodes), stage=Stage.HAVING)
    return replace(block, where=(*block.where, *nodes), stage=Stage.WHERE)


def mapped(operator: Map, block: SelectText) -> SelectText:
    """A map is the SELECT list."""
    columns = {name: to_node(expression, block.column) for name, expression in operator.columns}
    return replace(block, columns=columns, stage=Stage.SELECT)


def aggregated(operator: Aggregate, block: SelectText) -> SelectText:
    """An aggregate is GROUP BY, and aggregates in the SELECT list."""
    time = operator.input.shape.event_time
    assert time is not None
    function = "window" if isinstance(operator.window, Window) else "session_window"
    window = exp.Anonymous(
        this=function, expressions=[block.column(time), *_lengths(operator.window)]
    )
    keys = {name: to_node(key, block.column) for name, key in operator.keys}
    ends = {
        WINDOW_START: exp.column("start", table=function),
        WINDOW_END: exp.column("end", table=function),
    }
    calls = {name: aggregate_node(call, block.column) for name, call in operator.aggregates}
    columns: Mapping[str, exp.Expr] = {**keys, **ends, **calls}
    group = (*(key.copy() for key in keys.values()), window)
    return replace(block, columns=columns, group=group, stage=Stage.GROUP)


def _lengths(window: AnyWindow) -> list[exp.Expr]:
    if not isinstance(window, Window):
        lengths = [window.gap_us]
    else:
        lengths = [window.size_us] if window.is_tumbling else [window.size_us, window.slide_us]
    return [exp.Literal.string(duration_text(length)) for length in lengths]


def united(texts: Iterable[str]) -> SelectText:
    """A union is its branches one after the other."""
    return SelectText((), {}, stage=Stage.SELECT, union=tuple(texts))


def table_joined(operator: TableJoin, block: SelectText, mark: str) -> SelectText:
    """A join with a table is JOIN … ON with equal columns."""
    on = tuple(
        exp.EQ(this=block.column(column), expression=_column(mark, other))
        for column, other in operator.equal
    )
    source = Source(operator.table.name, mark, _keyword(operator.join), on)
    added = {name: _column(mark, column) for name, column in operator.columns}
    columns = {**block.columns, **added}
    return replace(block, sources=(*block.sources, source), columns=columns, stage=Stage.FROM)


def joined(operator: WindowJoin, left: SelectText, right: SelectText) -> SelectText:
    """A join of streams is JOIN … ON with equal columns, the time bound, and what else holds.

    The right side must be a single source; its own conditions go into WHERE, or into ON where
    rows of the left side are kept without it.
    """
    both = SelectText((), {**left.columns, **right.columns})
    equal = [
        exp.EQ(this=both.column(pair), expression=both.column(other))
        for pair, other in operator.equal
    ]
    times = [side.shape.event_time or "" for side in (operator.left, operator.right)]
    bound = _bound(operator.bound, both.column(times[0]), both.column(times[1]))
    rest = conditions(operator.condition, both) if operator.condition is not None else ()
    inner = operator.join == "inner"
    on = (*equal, *bound, *rest, *(() if inner else right.where))
    (source,) = right.sources
    joined = Source(source.name, source.mark, _keyword(operator.join), on)
    return replace(
        left,
        sources=(*left.sources, joined),
        columns=both.columns,
        where=(*left.where, *(right.where if inner else ())),
        stage=Stage.FROM,
    )


def _keyword(join: str) -> str:
    return "LEFT JOIN" if join == "left" else "JOIN"


def _bound(bound: TimeBound, left: exp.Expr, right: exp.Expr) -> list[exp.Expr]:
    """The time bound as people write it: with <, where that is what makes it round."""
    lower, upper = bound.lower_us, bound.upper_us
    if lower == upper:
        return [exp.EQ(this=right, expression=_shifted(left, lower))]
    after, before = _is_odd(lower - 1), _is_odd(upper + 1)
    if not after and not before:
        low, high = _shifted(left, lower), _shifted(left.copy(), upper)
        return [exp.Between(this=right, low=low, high=high)]
    first = (
        exp.GT(this=right, expression=_shifted(left, lower - 1))
        if after
        else exp.GTE(this=right, expression=_shifted(left, lower))
    )
    second = (
        exp.LT(this=right.copy(), expression=_shifted(left.copy(), upper + 1))
        if before
        else exp.LTE(this=right.copy(), expression=_shifted(left.copy(), upper))
    )
    return [first, second]


def _is_odd(neighbour_us: int) -> bool:
    """Whether the number next to a limit is the round one, so that the limit was strict."""
    return neighbour_us % 1_000 == 0


def _shifted(node: exp.Expr, us: int) -> exp.Expr:
    if us == 0:
        return node
    kind = exp.Add if us > 0 else exp.Sub
    return kind(this=node, expression=interval_node(abs(us)))
