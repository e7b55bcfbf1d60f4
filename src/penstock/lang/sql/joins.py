"""Joins: conditions go to the earliest place where they can be checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from penstock.errors import InputError
from penstock.lang.sql.bounds import Limits, Offsets, combined, limits, offsets_after
from penstock.lang.sql.context import Context, only
from penstock.lang.sql.expressions import to_expression
from penstock.lang.sql.scope import Relation, RowScope, fresh
from penstock.model.expressions import (
    TRUE,
    Call,
    Column,
    Expression,
    all_of,
    columns_of,
    conjuncts,
    transform,
)
from penstock.model.operators import Input, JoinKind, WindowJoin, check_windowable
from penstock.model.sources import Table

Pairs = tuple[tuple[Expression, Expression], ...]


@dataclass(frozen=True)
class Condition:
    """One thing that must be true, and where it was written."""

    expression: Expression
    node: exp.Expr


Conditions = tuple[Condition, ...]


@dataclass(frozen=True)
class JoinStep:
    """One more relation, how it is joined, and the conditions to check while and after that."""

    relation: Relation
    join: JoinKind
    on: Conditions
    after: Conditions


@dataclass(frozen=True)
class Joined:
    """The relations joined so far, and how far their times are from the event time."""

    input: Input
    titles: tuple[str, ...]
    offsets: Offsets


def conditions(node: exp.Expr | None, scope: RowScope) -> Conditions:
    """The parts of a condition that must all be true."""
    parts = node.flatten() if isinstance(node, exp.And) else [node] if node is not None else []
    return tuple(
        Condition(expression, part)
        for part in parts
        for expression in conjuncts(to_expression(part, scope))
        if expression != TRUE
    )


def join_kind(join: exp.Join, context: Context) -> JoinKind:
    """Whether a join is inner or left; raises for the others."""
    only(context, join, ("this", "on", "side", "kind"), "a join")
    if join.side == "LEFT" and join.kind in ("", "OUTER"):
        return "left"
    if not join.side and join.kind in ("", "INNER", "CROSS"):
        return "inner"
    hints = {"RIGHT": "Swap the two sides and use LEFT JOIN.", "FULL": "Use LEFT JOIN."}
    written = f"{join.side} {join.kind}".strip()
    raise InputError(
        f"{written} JOIN is not supported",
        hint=hints.get(join.side, "Use JOIN or LEFT JOIN."),
        place=context.written.word(written.split()[0], join.this),
    )


def join_steps(
    joins: Sequence[exp.Join], where: exp.Expr | None, rows: RowScope, context: Context
) -> tuple[Conditions, tuple[JoinStep, ...]]:
    """The conditions on the first relation, and the joins with the conditions of each.

    A condition of WHERE or of an inner join holds for the result as a whole, so it is checked
    at the last relation it mentions; of a left join it stays with that join.
    """
    kinds = [join_kind(join, context) for join in joins]
    own = [
        conditions(join.args.get("on"), rows.within("ON", count + 2))
        for count, join in enumerate(joins)
    ]
    overall = [one for kind, on in zip(kinds, own, strict=True) if kind == "inner" for one in on]
    overall += conditions(where, rows.within("WHERE"))
    last = _last_relation(rows)
    steps = []
    for at, (kind, on) in enumerate(zip(kinds, own, strict=True), start=1):
        late = tuple(one for one in overall if last(one) == at)
        inner = kind == "inner"
        step = JoinStep(rows.relations[at], kind, late if inner else on, () if inner else late)
        steps.append(step)
    return tuple(one for one in overall if last(one) == 0), tuple(steps)


def _last_relation(rows: RowScope):  # type: ignore[no-untyped-def]
    index = {name: at for at, relation in enumerate(rows.relations) for name in relation.names}
    return lambda one: max((index[name] for name in columns_of(one.expression)), default=0)


def join_stream(joined: Joined, step: JoinStep, rows: RowScope, context: Context) -> Joined:
    """The rows joined so far with those of one more stream."""
    node, relation = step.relation.node, step.relation
    right = relation.source
    assert isinstance(right, Input)
    _check_times(joined, relation, context)
    right_time = relation.unique(right.shape.event_time or "")
    pushed, rest = _pushed_down(step.on, relation)
    found = [(one, limits(one.expression, joined.offsets, right_time)) for one in rest]
    whole = combined(one for _, one in found if one is not None)
    rest = tuple(one for one, limit in found if limit is None or not limit.exact)
    equal, residual = split_equal(rest, frozenset(joined.input.schema.names))
    with context.written.pointing_at(node):
        bound = whole.bound
    if bound is None:
        raise _unbounded(whole, joined, right_time, relation, rows, context)
    keys = key_names(equal, rows, joined.input)
    left_side = with_keys(joined.input, [(one, key) for (one, _), key in zip(equal, keys)], node, context)
    right_side = _right_side(relation, pushed, [(one, key) for (_, one), key in zip(equal, keys)], context)
    names = tuple(
        (_key(one, f"{key}"), _key(other, f"right_{key}")) for (one, other), key in zip(equal, keys)
    )
    raise NotImplementedError
