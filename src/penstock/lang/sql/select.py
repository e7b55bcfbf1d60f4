"""One SELECT: what it reads, the columns it computes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from penstock.errors import InputError
from penstock.lang.sql.context import Context, only
from penstock.lang.sql.expressions import Scope, to_expression
from penstock.lang.sql.places import Written
from penstock.lang.sql.scope import Relation, RowScope
from penstock.model.expressions import Column, Expression, type_of
from penstock.model.schema import Field
from penstock.model.types import DataType

Columns = tuple[tuple[str, Expression], ...]


@dataclass(frozen=True)
class Item:
    """One output column: its name and where it was written."""

    name: str
    node: exp.Expr
    expression: Expression


def output_columns(select: exp.Select, rows: RowScope, scope: Scope) -> Columns:
    """The columns of a SELECT list; names must differ."""
    seen: dict[str, Item] = {}
    for item in _items(select, rows, scope):
        folded = item.name.lower()
        if folded in seen:
            raise _twice(item, seen[folded], rows.written)
        with rows.written.pointing_at(item.node):
            _check(item, scope)
        seen[folded] = item
    return tuple((item.name, item.expression) for item in seen.values())


def _check(item: Item, scope: Scope) -> None:
    """Raises unless a column can have the item's name and type."""
    type = type_of(item.expression, scope.schema)
    Field(item.name, DataType.STRING if type is DataType.NULL else type)


def _twice(item: Item, other: Item, written: Written) -> InputError:
    star = item.node if item.node.find(exp.Star) else other.node
    if star.find(exp.Star):
        hint = "List the columns and rename one of them with AS."
        return written.error(star, f"* gives two columns called {item.name}", hint)
    hint = "Rename one of them with AS."
    return written.error(item.node, f"two columns are called {item.name}", hint)


def _items(select: exp.Select, rows: RowScope, scope: Scope) -> Iterator[Item]:
    for node in select.expressions:
        if isinstance(node, exp.Alias):
            yield Item(node.alias, node.args["alias"], to_expression(node.this, scope))
        elif _is_star(node):
            yield from _expanded(node, rows, scope)
        elif isinstance(node, exp.Column):
            expression = to_expression(node, scope)
            yield Item(_column_name(node, rows), node, expression)
        else:
            to_expression(node, scope)
            raise _unnamed(node, scope.written)


def _unnamed(node: exp.Expr, written: Written) -> InputError:
    hint = f"Write {written.quoted(node)} AS name."
    return written.error(node, "this column has no name", hint)


def _column_name(node: exp.Column, rows: RowScope) -> str:
    """A column's name in the spelling of its relation; of window.start it is start."""
    for relation in rows.relations:
        field = relation.schema.find(node.name)
        if field and node.table.lower() in ("", relation.alias.lower()):
            return field.name
    return node.name.lower()


def _is_star(node: exp.Expr) -> bool:
    return isinstance(node, exp.Star) or isinstance(node.this, exp.Star)


def _expanded(node: exp.Expr, rows: RowScope, scope: Scope) -> Iterator[Item]:
    """The columns * stands for, less those after EXCEPT."""
    if scope is not rows:
        raise scope.written.error(
            node, "* cannot be used with GROUP BY", "Name the grouped columns and the aggregates."
        )
    star = node if isinstance(node, exp.Star) else node.this
    relations = (rows.relation(node.args["table"]),) if star is not node else rows.relations
    left_out = {one.name for one in _left_out(star, relations, scope)}
    for relation in relations:
        for name, own in relation.own.items():
            if name not in left_out:
                yield Item(own, node, Column(name))


def _left_out(star: exp.Expr, relations: tuple[Relation, ...], scope: Scope) -> Iterator[Column]:
    assert isinstance(scope, RowScope)
    if star.args.get("replace") or star.args.get("rename"):
        raise scope.written.error(star, "* can only be followed by EXCEPT", "List the columns.")
    within = RowScope(scope.written, relations, "EXCEPT")
    for node in star.args.get("except_") or []:
        column = node if isinstance(node, exp.Column) else exp.column(node)
        yield Column(within.column(column))


def check_parts(select: exp.Select, context: Context) -> None:
    """Raises for every part of a SELECT that has no meaning on a stream."""
    known = ("with_", "expressions", "from_", "joins", "where", "group", "having")
    only(context, select, known, "a query on a stream")
    if not select.args.get("from_"):
        raise context.written.error(
            select, "a query without FROM", "Say which stream it reads: FROM stream."
        )
