"""A whole query: WITH, SELECT, UNION ALL, and the relations they read."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from penstock.errors import InputError
from penstock.lang.sql.context import QueryContext, only
from penstock.lang.sql.grouping import is_grouped, plan_grouped
from penstock.lang.sql.joins import join_relations
from penstock.lang.sql.scope import Relation, RowScope, unique_names
from penstock.lang.sql.select import check_parts, output_columns, used_columns
from penstock.model.operators import Input, Union
from penstock.model.sources import Table
from penstock.model.types import common_type


def plan_query(node: exp.Expr, context: QueryContext) -> Input:
    """The result of a query; its operators are added to the draft."""
    context = with_subqueries(node, context)
    if isinstance(node, exp.Subquery):
        only(context, node, ("this", "with_"), "a subquery")
        return plan_query(node.this, context)
    if isinstance(node, exp.Union):
        return _plan_union(node, context)
    if isinstance(node, exp.Select):
        return _plan_select(node, context)
    raise _not_a_query(node, context)


def _not_a_query(node: exp.Expr, context: QueryContext) -> InputError:
    keyword, hint = "this", "Begin with SELECT."
    if isinstance(node, exp.Except):
        keyword, hint = "EXCEPT", "Use LEFT JOIN, and WHERE … IS NULL."
    elif isinstance(node, exp.Intersect):
        keyword, hint = "INTERSECT", "Use JOIN."
    elif isinstance(node, exp.Values):
        keyword = "VALUES"
    near = node.expression if isinstance(node, exp.SetOperation) else node
    return InputError(
        f"{keyword} is not supported in a query on a stream",
        hint=hint,
        place=context.written.word(keyword, near),
    )


def with_subqueries(node: exp.Expr, context: QueryContext) -> QueryContext:
    """The context in which the common table expressions of ``node`` are known."""
    clause = node.args.get("with_")
    if not clause:
        return context
    only(context, clause, ("expressions",), "a query on a stream")
    for part in clause.expressions:
        only(context, part, ("this", "alias"), "a query on a stream")
        name = _alias(part, context)
        if name.lower() in context.subqueries:
            raise context.written.error(
                part.args["alias"], f"a second subquery is called {name}", "Rename one of them."
            )
        context = context.knowing(name, _plan_part(part.this, name, context))
    return context


def _plan_part(node: exp.Expr, name: str, context: QueryContext) -> Input:
    part = context.owned_by(name)
    result = plan_query(node, part)
    context.draft.wish(result.stream, part.owner)
    return result


def _alias(node: exp.Expr, context: QueryContext) -> str:
    alias = node.args.get("alias")
    if not alias:
        return ""
    only(context, alias, ("this",), "a query on a stream")
    return str(alias.name)


def _plan_union(node: exp.Union, context: QueryContext) -> Input:
    nodes = list(_branches(node, context))
    branches = tuple(plan_query(expression, context) for expression in nodes)
    for expression, branch in zip(nodes[1:], branches[1:], strict=True):
        _check_alike(branches[0], branch, expression, context)
    return context.add(node, lambda name: Union(name, branches))


def _branches(node: exp.Expr, context: QueryContext, inner: bool = False) -> Iterator[exp.Expr]:
    """The queries of a union, those of unions inside it included unless they begin with WITH."""
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Union) and node.is_wrapper:
        node = node.this
    if not isinstance(node, exp.Union) or (inner and node.args.get("with_")):
        yield node
        return
    only(context, node, ("with_", "this", "expression", "distinct"), "a union")
    if node.args.get("distinct"):
        raise InputError(
            "UNION would have to remember every row",
            hint="Use UNION ALL.",
            place=context.written.word("UNION", node.expression),
        )
    yield from _branches(node.this, context, inner=True)
    yield from _branches(node.expression, context, inner=True)


def _check_alike(first: Input, other: Input, node: exp.Expr, context: QueryContext) -> None:
    pairs = list(zip(first.schema, other.schema, strict=False))
    differ = [(field, two) for field, two in pairs if common_type(field.type, two.type) is None]
    hint = "Select as many columns of the same types on both sides."
    if len(first.schema) != len(other.schema):
        counts = f"{len(first.schema)} and {len(other.schema)}"
        raise context.written.error(node, f"the sides of UNION ALL have {counts} columns", hint)
    for field, two in differ:
        what = f"UNION ALL puts {two.name}, a {two.type}, under {field.name}, a {field.type}"
        raise context.written.error(node, what, hint)


def _plan_select(select: exp.Select, context: QueryContext) -> Input:
    check_parts(select, context)
    rows = RowScope(context.written, _relations(select, context), "SELECT")
    input = join_relations(select, rows, used_columns(select, rows), context)
    if is_grouped(select):
        return plan_grouped(select, rows, input, context)
    return context.mapped(select, input, output_columns(select, rows, rows))


def _relations(select: exp.Select, context: QueryContext) -> tuple[Relation, ...]:
    """What a SELECT reads, with column names that are unique in it."""
    nodes = [select.args["from_"].this, *(arg.this for arg in select.args.get("joins") or [])]
    relations: list[Relation] = []
    for node in nodes:
        taken = tuple(name for known in relations for name in known.names)
        relation = _relation(node, taken, select, context)
        if relation.alias.lower() in [known.alias.lower() for known in relations]:
            raise context.written.error(
                node, f"{relation.alias} is read twice", "Give one of them another name with AS."
            )
        relations.append(relation)
    return tuple(relations)


def _relation(
    node: exp.Expr, taken: tuple[str, ...], select: exp.Select, context: QueryContext
) -> Relation:
    source: Input | Table
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query):
        only(context, node, ("this", "alias", "with_"), "a subquery")
        title = _alias(node, context)
        if not title:
            raise context.written.error(
                node, "a subquery without a name", "Write (SELECT …) AS name."
            )
        source = _plan_part(node.this, title, with_subqueries(node, context))
        alias = title
    elif isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
        only(context, node, ("this", "alias"), "FROM")
        source = context.lookup(node)
        title = _title(node, source)
        alias = _alias(node, context) or title
    else:
        raise context.written.error(
            node, "FROM reads streams, tables and subqueries only", "Name one of them."
        )
    wished = _selected_as(select, alias, source) if isinstance(source, Table) else {}
    return Relation(alias, title, source, node, unique_names(source.schema, taken, wished))


def _selected_as(select: exp.Select, alias: str, table: Table) -> dict[str, str]:
    """The names a SELECT list gives to columns of a table, which can have them from the start."""
    names: dict[str, str] = {}
    for item in select.expressions:
        column = item.this
        if isinstance(item, exp.Alias) and isinstance(column, exp.Column):
            field = table.schema.find(column.name)
            if field is not None and column.table.lower() == alias.lower():
                names.setdefault(field.name, item.alias)
    return names


def _title(node: exp.Table, source: Input | Table) -> str:
    """A relation's name in the spelling of the catalog, unless it is a subquery."""
    name = source.name if isinstance(source, Table) else source.stream
    return name if name.lower() == node.name.lower() else node.name
