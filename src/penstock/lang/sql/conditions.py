"""Conditions of WHERE and ON, taken apart and given to the joins that can check them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from penstock.errors import InputError
from penstock.lang.sql.context import QueryContext, only
from penstock.lang.sql.expressions import to_expression
from penstock.lang.sql.scope import Relation, RowScope
from penstock.model.expressions import (
    TRUE,
    Call,
    Column,
    Expression,
    all_of,
    columns_of,
    conjuncts,
)
from penstock.model.operators import JoinKind

Pairs = tuple[tuple[Expression, Expression], ...]
_JOIN_HINTS = {"RIGHT": "Swap the two sides and use LEFT JOIN.", "FULL": "Use LEFT JOIN."}


@dataclass(frozen=True)
class Condition:
    """One thing that must be true, and where it was written."""

    expression: Expression
    node: exp.Expr

    @property
    def columns(self) -> frozenset[str]:
        return columns_of(self.expression)


Conditions = tuple[Condition, ...]


@dataclass(frozen=True)
class JoinedRelation:
    """One more relation, how it is joined, and the conditions to check while and after that."""

    relation: Relation
    join: JoinKind
    on: Conditions
    after: Conditions


def conditions(node: exp.Expr | None, scope: RowScope) -> Conditions:
    """The parts of a condition that must all be true."""
    if node is None:
        return ()
    return tuple(
        Condition(expression, part)
        for part in (node.flatten() if isinstance(node, exp.And) else (node,))
        for expression in conjuncts(to_expression(part, scope))
        if expression != TRUE
    )


def together(conditions: Iterable[Condition]) -> Expression | None:
    """One expression for several conditions, or None for none."""
    parts = tuple(condition.expression for condition in conditions)
    return all_of(parts) if parts else None


def join_steps(
    joins: Sequence[exp.Join], where: exp.Expr | None, rows: RowScope, context: QueryContext
) -> tuple[Conditions, tuple[JoinedRelation, ...]]:
    """The conditions on the first relation alone, and the joins with the conditions of each.

    A condition of WHERE or of an inner join holds for the result as a whole, so it is checked
    at the last relation it mentions; a condition of a left join stays with that join.
    """
    kinds = [_kind(join, context) for join in joins]
    own = [
        conditions(join.args.get("on"), rows.within("ON", at + 2)) for at, join in enumerate(joins)
    ]
    inner = [
        condition
        for kind, on in zip(kinds, own, strict=True)
        if kind == "inner"
        for condition in on
    ]
    overall = (*inner, *conditions(where, rows.within("WHERE")))
    by_relation = [_mentioning(overall, rows, at) for at in range(len(rows.relations))]
    steps = (
        JoinedRelation(relation, kind, *((late, ()) if kind == "inner" else (on, late)))
        for relation, kind, on, late in zip(
            rows.relations[1:], kinds, own, by_relation[1:], strict=True
        )
    )
    return by_relation[0], tuple(steps)


def _mentioning(overall: Conditions, rows: RowScope, at: int) -> Conditions:
    """The conditions whose last relation is the one at ``at``."""
    index = {name: at for at, relation in enumerate(rows.relations) for name in relation.names}
    return tuple(
        condition
        for condition in overall
        if max((index[name] for name in condition.columns), default=0) == at
    )


def _kind(join: exp.Join, context: QueryContext) -> JoinKind:
    """Whether a join is inner or left; raises for the others."""
    only(context, join, ("this", "on", "side", "kind"), "a join")
    if join.side == "LEFT" and join.kind in ("", "OUTER"):
        return "left"
    if not join.side and join.kind in ("", "INNER", "CROSS"):
        return "inner"
    written = f"{join.side} {join.kind}".strip()
    raise InputError(
        f"{written} JOIN is not supported",
        hint=_JOIN_HINTS.get(join.side, "Use JOIN or LEFT JOIN."),
        place=context.written.word(written.split()[0], join.this),
    )


def split_equal(
    given: Conditions, left: frozenset[str], plain: bool = False
) -> tuple[Pairs, Conditions]:
    """Equalities between something of the left and something of the right, and the rest.

    ``plain`` asks for a bare column on the right: a table's columns cannot be computed with.
    """
    pairs: dict[tuple[Expression, Expression], None] = {}
    rest = []
    for condition in given:
        pair = _pair(condition.expression, left)
        if pair is None or (plain and not isinstance(pair[1], Column)):
            rest.append(condition)
        else:
            pairs[pair] = None
    return tuple(pairs), tuple(rest)


def _pair(expression: Expression, left: frozenset[str]) -> tuple[Expression, Expression] | None:
    if not isinstance(expression, Call) or expression.function != "=":
        return None
    first, second = expression.arguments
    for part, other in ((first, second), (second, first)):
        ours, theirs = columns_of(part), columns_of(other)
        if ours and theirs and ours <= left and not theirs & left:
            return part, other
    return None
