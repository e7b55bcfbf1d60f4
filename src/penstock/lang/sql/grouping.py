"""GROUP BY: keys, the window, and the aggregates of a SELECT."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from penstock.errors import InputError
from penstock.lang.sql.aggregates import aggregate_call, aggregate_nodes
from penstock.lang.sql.context import QueryContext, only
from penstock.lang.sql.expressions import to_expression
from penstock.lang.sql.functions import WINDOWS
from penstock.lang.sql.grouped_scope import GroupedScope
from penstock.lang.sql.naming import derived_name
from penstock.lang.sql.scope import RowScope, fresh
from penstock.lang.sql.select import Columns, output_columns
from penstock.lang.sql.windows import event_time_input, window_of
from penstock.model.aggregates import AggregateCall
from penstock.model.expressions import Column, Expression, columns_of
from penstock.model.operators import WINDOW_END, WINDOW_START, Aggregate, Input

_RESERVED = (WINDOW_START, WINDOW_END)
_SEVERAL: Mapping[type[exp.Expr], str] = {
    exp.Cube: "CUBE",
    exp.Rollup: "ROLLUP",
    exp.GroupingSets: "GROUPING SETS",
}


def is_grouped(select: exp.Select) -> bool:
    """Whether a SELECT groups its rows, or would have to."""
    clauses = [*select.expressions, select.args.get("having")]
    aggregated = any(any(aggregate_nodes(clause)) for clause in clauses if clause is not None)
    return bool(select.args.get("group") or select.args.get("having") or aggregated)


def plan_grouped(select: exp.Select, rows: RowScope, input: Input, context: QueryContext) -> Input:
    """The rows of ``input`` grouped, then those groups HAVING keeps, then the SELECT list."""
    elements = list(_elements(select, rows, context))
    window_node = _window_node(select, elements, input, rows, context)
    keys = _keys(elements, window_node, select, rows)
    calls = _calls(select, rows, keys)
    needed = [columns_of(expression) for _, expression in keys]
    needed += [columns_of(argument) for call in calls for argument in call.arguments]
    input = event_time_input(window_node, rows, input, frozenset().union(*needed), context)
    window = window_of(window_node, rows.written)
    aggregates = tuple((name, call) for call, name in calls.items())
    grouped = context.add(
        window_node, lambda name: Aggregate(name, input, window, keys, aggregates)
    )
    scope = GroupedScope(
        rows.within("SELECT"),
        grouped.schema,
        {expression: name for name, expression in keys},
        calls,
        window_node,
    )
    return _selected(select, rows, scope, grouped, context)


def _selected(
    select: exp.Select, rows: RowScope, scope: GroupedScope, grouped: Input, context: QueryContext
) -> Input:
    having = select.args.get("having")
    if having:
        aliases = {alias.alias.lower(): alias.this for alias in _aliased(select)}
        predicate = to_expression(having.this, scope.with_aliases(aliases))
        grouped = context.filtered(having.this, grouped, predicate)
    return context.mapped(select, grouped, output_columns(select, rows, scope))


def _aliased(select: exp.Select) -> Iterator[exp.Alias]:
    return (expression for expression in select.expressions if isinstance(expression, exp.Alias))


def _elements(select: exp.Select, rows: RowScope, context: QueryContext) -> Iterator[exp.Expr]:
    """What is grouped by, with numbers and names of the SELECT list replaced by what they mean."""
    group = select.args.get("group")
    if not group:
        raise _no_group(select, rows)
    only(context, group, ("expressions",), "a query on a stream")
    aliases = {alias.alias.lower(): alias.this for alias in _aliased(select)}
    for node in group.expressions:
        if isinstance(node, exp.Cube | exp.Rollup | exp.GroupingSets):
            raise InputError(
                "several groupings in one query",
                hint="Write a query for each, and UNION ALL between them.",
                place=context.written.word(_SEVERAL[type(node)], node),
            )
        if isinstance(node, exp.Literal) and node.is_int:
            yield _ordinal(node, select, context)
        elif _is_alias(node, rows) and node.name.lower() in aliases:
            yield aliases[node.name.lower()]
        else:
            yield node.unnest()


def _is_alias(node: exp.Expr, rows: RowScope) -> bool:
    return isinstance(node, exp.Column) and not node.table and not rows.has(node.name)


def _ordinal(node: exp.Expr, select: exp.Select, context: QueryContext) -> exp.Expr:
    at = int(node.name)
    if not 1 <= at <= len(select.expressions):
        count = len(select.expressions)
        what = f"GROUP BY {at}, but the SELECT list has {count} columns"
        raise context.written.error(node, what, "Name the column.")
    found: exp.Expr = select.expressions[at - 1]
    return found.this if isinstance(found, exp.Alias) else found


def _no_group(select: exp.Select, rows: RowScope) -> InputError:
    clauses = [*select.expressions, select.args.get("having")]
    found = [node for clause in clauses if clause is not None for node in aggregate_nodes(clause)]
    example = _window_example(rows)
    if not found:
        return rows.written.error(
            select.args["having"],
            "HAVING without GROUP BY",
            f"Use WHERE, or add GROUP BY {example}.",
        )
    what = f"{found[0].name.lower()} needs a window: over a whole stream it is never finished"
    return rows.written.error(found[0], what, f"Add GROUP BY {example}.")


def _window_example(rows: RowScope) -> str:
    source = rows.relations[0].source
    event_time = source.shape.event_time if isinstance(source, Input) else None
    return f"window({event_time or 'time'}, '1 hour')"


def _window_node(
    select: exp.Select,
    elements: list[exp.Expr],
    input: Input,
    rows: RowScope,
    context: QueryContext,
) -> exp.Expr:
    found = [element for element in elements if _is_window(element)]
    if len(found) == 1:
        return found[0]
    if found:
        raise context.written.error(found[1], "a second window", "Group by one window only.")
    group = select.args["group"]
    event_time = rows.shown(input.shape.event_time or "time")
    columns = [context.written.quoted(expression) for expression in group.expressions]
    example = ", ".join([*columns, f"window({event_time}, '1 hour')"])
    raise InputError(
        "GROUP BY without a window: over a whole stream a group is never finished",
        hint=f"Add one over the event time: GROUP BY {example}.",
        place=context.written.word("GROUP BY", group),
    )


def _is_window(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() in WINDOWS


def _keys(
    elements: list[exp.Expr], window: exp.Expr, select: exp.Select, rows: RowScope
) -> Columns:
    """What is grouped by, under the name the SELECT gives it, else its own or one that tells."""
    within = rows.within("GROUP BY")
    found = {to_expression(node, within): node for node in elements if node is not window}
    keys: list[tuple[str, Expression]] = []
    for expression, node in found.items():
        wanted = (
            _selected_name(node, expression, select, rows)
            or rows.own_name(expression)
            or derived_name("", (expression,))
        )
        keys.append((fresh(wanted, (*_RESERVED, *(name for name, _ in keys))), expression))
    return tuple(keys)


def _selected_name(node: exp.Expr, key: Expression, select: exp.Select, rows: RowScope) -> str:
    """The name under which the SELECT list has a key, if it has it."""
    for item in select.expressions:
        inner = item.this if isinstance(item, exp.Alias) else item
        known = isinstance(inner, exp.Column) and rows.knows(inner)
        if inner == node or (known and Column(rows.column(inner)) == key):
            return str(item.alias) if isinstance(item, exp.Alias) else rows.own_name(key)
    return ""


def _calls(select: exp.Select, rows: RowScope, keys: Columns) -> dict[AggregateCall, str]:
    """The different aggregates of SELECT and HAVING, each with the name of its column.

    An aggregate that is a column of the SELECT list has that column's name if it is free.
    """
    within = rows.within("an aggregate")
    wished: dict[AggregateCall, str] = {}
    for clause in [*select.expressions, select.args.get("having")]:
        for node in aggregate_nodes(clause) if clause is not None else ():
            call = aggregate_call(node, within)
            alias = clause.alias if isinstance(clause, exp.Alias) and clause.this is node else ""
            wished[call] = wished.get(call) or alias
    taken = [*_RESERVED, *(name for name, _ in keys)]
    names: dict[AggregateCall, str] = {}
    for call, alias in wished.items():
        free = alias and fresh(alias, taken) == alias
        names[call] = alias if free else fresh(derived_name(call.function, call.arguments), taken)
        taken.append(names[call])
    return names
