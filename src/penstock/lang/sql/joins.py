"""Joining the relations of a SELECT, one after the other, from the left."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from penstock.lang.sql.conditions import Conditions, JoinedRelation, join_steps
from penstock.lang.sql.context import QueryContext
from penstock.lang.sql.expressions import to_expression
from penstock.lang.sql.joined import Joined, filtered
from penstock.lang.sql.scope import RowScope
from penstock.lang.sql.stream_join import with_stream
from penstock.lang.sql.table_join import with_table
from penstock.model.operators import Input
from penstock.model.sources import Table


def join_relations(
    select: exp.Select, rows: RowScope, used: frozenset[str], context: QueryContext
) -> Input:
    """All relations of a SELECT joined, with each part of WHERE applied as early as it can be.

    ``used`` are the columns that the rest of the SELECT reads.
    """
    first = rows.relations[0]
    if isinstance(first.source, Table):
        raise context.written.error(
            first.node,
            f"{first.title} is a table, and a query begins with a stream",
            f"Write FROM stream JOIN {first.title} ON …",
        )
    where = select.args.get("where")
    condition = where.this if where else None
    joins = select.args.get("joins") or []
    if not joins:
        return _filtered_whole(first.source, condition, rows, context)
    early, steps = join_steps(joins, condition, rows, context)
    input = filtered(first.source, early, context)
    event_time = input.shape.event_time
    joined = Joined(input, rows.within("ON", 1), {event_time: (0, 0)} if event_time else {})
    for at, step in enumerate(steps):
        later = used.union(*(part.columns for part in _conditions_after(steps, at)))
        joined = _with_step(joined, step, later, rows, context)
    return joined.input


def _conditions_after(steps: tuple[JoinedRelation, ...], at: int) -> Conditions:
    """The conditions that are checked once the step at ``at`` is done."""
    own = steps[at].after
    return (*own, *(condition for step in steps[at + 1 :] for condition in (*step.on, *step.after)))


def _filtered_whole(
    input: Input, condition: exp.Expr | None, rows: RowScope, context: QueryContext
) -> Input:
    if condition is None:
        return input
    return context.filtered(condition, input, to_expression(condition, rows.within("WHERE")))


def _with_step(
    joined: Joined,
    step: JoinedRelation,
    later: frozenset[str],
    rows: RowScope,
    context: QueryContext,
) -> Joined:
    """One more relation joined; ``later`` are the columns needed after that."""
    source = step.relation.source
    if isinstance(source, Table):
        result = with_table(joined, step, source, later, context)
    else:
        result = with_stream(joined, step, source, later, rows, context)
    known = rows.within("ON", len(joined.rows.relations) + 1)
    return replace(result, input=filtered(result.input, step.after, context), rows=known)
