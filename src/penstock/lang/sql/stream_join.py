"""Joining with a stream: rows with equal keys that are near enough in time."""

from __future__ import annotations

from dataclasses import replace

from penstock.errors import InputError
from penstock.lang.sql.bounds import TimeLimits, combined, limits, offsets_after
from penstock.lang.sql.conditions import Conditions, JoinedRelation, split_equal, together
from penstock.lang.sql.context import QueryContext
from penstock.lang.sql.joined import Joined, Keys, computed, filtered, join_keys, with_keys
from penstock.lang.sql.scope import Relation, RowScope
from penstock.model.expressions import Column, Expression, transform
from penstock.model.operators import Input, WindowJoin, check_windowable
from penstock.model.windows import TimeBound


def with_stream(
    joined: Joined,
    step: JoinedRelation,
    source: Input,
    later: frozenset[str],
    rows: RowScope,
    context: QueryContext,
) -> Joined:
    """The rows so far with those of one more stream; only columns needed ``later`` are kept.

    Conditions on the new stream alone are checked before the join, those that the time bound
    or the equal keys do not express while joining.
    """
    relation = step.relation
    _check_times(joined, relation, source, context)
    right_time = relation.unique(source.shape.event_time or "")
    alone = tuple(
        condition
        for condition in step.on
        if condition.columns and condition.columns <= set(relation.names)
    )
    shared = tuple(condition for condition in step.on if condition not in alone)
    bound, rest = _bound(joined, shared, right_time, relation, rows, context)
    pairs, residual = split_equal(rest, joined.columns)
    needed = later.union(*(condition.columns for condition in residual), {right_time})
    taken = (*rows.schema.names, *joined.input.schema.names)
    left_keys = join_keys([expression for expression, _ in pairs], "key", taken)
    right_keys = join_keys([other for _, other in pairs], "right_key", taken)
    left = with_keys(joined.input, left_keys, needed, relation.node, context)
    right = _renamed(relation, source, alone, right_keys, needed, context)
    equal = tuple((one, other) for (one, _), (other, _) in zip(left_keys, right_keys, strict=True))
    output = context.add(
        relation.node,
        lambda name: WindowJoin(name, left, right, equal, bound, together(residual), step.join),
    )
    inner = step.join == "inner"
    after = offsets_after(joined.offsets, right_time, bound, output.shape.event_time, inner)
    return replace(joined, input=output, offsets=after)


def _check_times(joined: Joined, relation: Relation, source: Input, context: QueryContext) -> None:
    with context.written.pointing_at(joined.rows.relations[0].node):
        check_windowable(Input(joined.title, joined.input.shape), "a join")
    with context.written.pointing_at(relation.node):
        check_windowable(Input(relation.title, source.shape), "a join")


def _bound(
    joined: Joined,
    given: Conditions,
    right_time: str,
    relation: Relation,
    rows: RowScope,
    context: QueryContext,
) -> tuple[TimeBound, Conditions]:
    """The time bound among the conditions, and the conditions it does not make superfluous."""
    found = [
        (condition, limits(condition.expression, joined.offsets, right_time)) for condition in given
    ]
    whole = combined(limit for _, limit in found if limit is not None)
    with context.written.pointing_at(relation.node):
        bound = whole.bound
    if bound is None:
        left_time = joined.input.shape.event_time or ""
        times = (rows.shown(left_time), rows.shown(right_time))
        raise _unbounded(whole, joined.title, times, relation, context)
    return bound, tuple(condition for condition, limit in found if limit is None or not limit.exact)


def _unbounded(
    found: TimeLimits,
    left_title: str,
    times: tuple[str, str],
    relation: Relation,
    context: QueryContext,
) -> InputError:
    left, right = times
    missing = f"how far apart {left} and {right} may be"
    if found.lower_us is not None:
        missing = f"how much later than {left} {right} may be"
    if found.upper_us is not None:
        missing = f"how much earlier than {left} {right} may be"
    return context.written.error(
        relation.node,
        f"the join of {left_title} and {relation.title} does not say {missing}",
        f"Add to ON for example {right} BETWEEN {left} AND {left} + INTERVAL 1 HOUR.",
    )


def _renamed(
    relation: Relation,
    source: Input,
    alone: Conditions,
    keys: Keys,
    needed: frozenset[str],
    context: QueryContext,
) -> Input:
    """A relation's rows that meet its own conditions, under the names of this SELECT."""

    def own(part: Expression) -> Expression | None:
        return Column(relation.own[part.name]) if isinstance(part, Column) else None

    in_own = tuple(
        replace(condition, expression=transform(condition.expression, own)) for condition in alone
    )
    kept = needed | {name for name, _ in keys}
    columns = [(name, Column(column)) for name, column in relation.own.items() if name in kept]
    added = [(name, transform(key, own)) for name, key in computed(keys)]
    return context.mapped(relation.node, filtered(source, in_own, context), (*columns, *added))
