"""The relations of a SELECT that are joined so far, and the keys further ones are joined by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from penstock.lang.sql.bounds import Offsets
from penstock.lang.sql.conditions import Conditions, together
from penstock.lang.sql.context import QueryContext
from penstock.lang.sql.scope import RowScope, fresh
from penstock.model.expressions import Column, Expression
from penstock.model.operators import Input

Keys = tuple[tuple[str, Expression], ...]


@dataclass(frozen=True)
class Joined:
    """The relations joined so far, and how far their times are from the event time."""

    input: Input
    rows: RowScope
    offsets: Offsets

    @property
    def title(self) -> str:
        return " and ".join(relation.title for relation in self.rows.relations)

    @property
    def columns(self) -> frozenset[str]:
        return frozenset(self.input.schema.names)


def filtered(input: Input, conditions: Conditions, context: QueryContext) -> Input:
    """The rows that meet all conditions."""
    predicate = together(conditions)
    if predicate is None:
        return input
    return context.filtered(conditions[0].node, input, predicate)


def join_keys(expressions: Iterable[Expression], wanted: str, taken: Iterable[str]) -> Keys:
    """Names for what a join compares: a column's own, new ones for other expressions."""
    keys: list[tuple[str, Expression]] = []
    for expression in expressions:
        used = (*taken, *(name for name, _ in keys))
        keys.append(
            (expression.name if isinstance(expression, Column) else fresh(wanted, used), expression)
        )
    return tuple(keys)


def computed(keys: Keys) -> Keys:
    """The keys that are not columns already."""
    return tuple(key for key in keys if not isinstance(key[1], Column))


def with_keys(
    input: Input, keys: Keys, needed: frozenset[str], node: exp.Expr, context: QueryContext
) -> Input:
    """The input with the keys of a join, and without what is not needed any more."""
    kept = needed | {name for name, _ in keys} | {input.shape.event_time}
    columns = [(name, Column(name)) for name in input.schema.names if name in kept]
    return context.mapped(node, input, (*columns, *computed(keys)))
