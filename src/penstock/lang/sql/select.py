"""One SELECT: what it reads, the columns it computes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from penstock.errors import InputError
from penstock.lang.sql.context import QueryContext, only
from penstock.lang.sql.expressions import ClauseScope, to_expression
from penstock.lang.sql.places import WrittenText
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


def output_columns(select: exp.Select, rows: RowScope, scope: ClauseScope) -> Columns:
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


def _check(item: Item, scope: ClauseScope) -> None:
    """Raises unless a column can have the item's name and type."""
    type = type_of(item.expression, scope.schema)
    Field(item.name, DataType.STRING if type is DataType.NULL else type)


def _twice(item: Item, other: Item, written: WrittenText) -> InputError:
    star = item.node if item.node.find(exp.Star) else other.node
    if star.find(exp.Star):
        hint = "List the columns and rename one of them with AS."
        return written.error(star, f"* gives two columns called {item.name}", hint)
    hint = "Rename one of them with AS."
    return written.error(item.node, f"two columns are called {item.name}", hint)


def _items(select: exp.Select, rows: RowScope, scope: ClauseScope) -> Iterator[Item]:
    for node in select.expressions:
        if isinstance(node, exp.Alias):
            yield Item(node.alias, node.args["alias"], to_expression(node.this, scope))
        elif _is_star(node):
            if scope is not rows:
                raise _star_of_groups(node, scope.written)
            for name, own in _expanded(node, rows):
                yield Item(own, node, Column(name))
        elif isinstance(node, exp.Column):
            expression = to_expression(node, scope)
            yield Item(_column_name(node, rows), node, expression)
        else:
            to_expression(node, scope)
            raise _unnamed(node, scope.written)


def _star_of_groups(node: exp.Expr, written: WrittenText) -> InputError:
    hint = "Name the grouped columns and the aggregates."
    return written.error(node, "* cannot be used with GROUP BY", hint)


def _unnamed(node: exp.Expr, written: WrittenText) -> InputError:
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


def _expanded(node: exp.Expr, rows: RowScope) -> Iterator[tuple[str, str]]:
    """The columns * stands for, less those after EXCEPT: unique name and own name."""
    star = node if isinstance(node, exp.Star) else node.this
    relations = (rows.relation(node.args["table"]),) if star is not node else rows.relations
    left_out = set(_left_out(star, relations, rows))
    for relation in relations:
        for name, own in relation.own.items():
            if name not in left_out:
                yield name, own


def _left_out(star: exp.Expr, relations: tuple[Relation, ...], rows: RowScope) -> Iterator[str]:
    if star.args.get("replace") or star.args.get("rename"):
        raise rows.written.error(star, "* can only be followed by EXCEPT", "List the columns.")
    within = RowScope(rows.written, relations, "EXCEPT")
    for node in star.args.get("except_") or []:
        yield within.column(node if isinstance(node, exp.Column) else exp.column(node))


def used_columns(select: exp.Select, rows: RowScope) -> frozenset[str]:
    """The columns that SELECT, GROUP BY and HAVING read, so that joins need not carry others."""
    clauses = [select.args.get("group"), select.args.get("having")]
    found: set[str] = set()
    for node in [*select.expressions, *(clause for clause in clauses if clause is not None)]:
        if _is_star(node):
            found.update(name for name, _ in _expanded(node, rows))
            continue
        for column in node.find_all(exp.Column):
            if rows.knows(column):
                found.add(rows.column(column))
    return frozenset(found)


def check_parts(select: exp.Select, context: QueryContext) -> None:
    """Raises for every part of a SELECT that has no meaning on a stream."""
    known = ("with_", "expressions", "from_", "joins", "where", "group", "having")
    only(context, select, known, "a query on a stream")
    if not select.args.get("from_"):
        raise context.written.error(
            select, "a query without FROM", "Say which stream it reads: FROM stream."
        )
