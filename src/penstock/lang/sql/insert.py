"""INSERT INTO: the result of a query goes into a table of a database."""

from __future__ import annotations

from sqlglot import exp

from penstock.errors import InputError, listed, suggestion
from penstock.lang.sql.context import QueryContext, only
from penstock.lang.sql.query import plan_query, with_subqueries
from penstock.model.expressions import Cast, Column, Expression
from penstock.model.operators import Input, SqlWrite
from penstock.model.schema import Field
from penstock.model.sources import Table
from penstock.model.types import common_type


def plan_insert(node: exp.Insert, context: QueryContext) -> Input:
    """The rows of a query written to a table, and passed on."""
    only(context, node, ("this", "expression", "with_", "by_name"), "a query on a stream")
    target = node.this.this if isinstance(node.this, exp.Schema) else node.this
    only(context, target, ("this",), "INSERT INTO")
    table = _table(target, context)
    if not node.expression:
        raise context.written.error(target, "INSERT INTO without SELECT", "Add SELECT … FROM …")
    _name_columns(node)
    result = plan_query(node.expression, with_subqueries(node, context))
    columns = _columns(node, target, table, result, context)
    written = context.mapped(target, result, columns)
    database = table.database
    assert database is not None
    return context.add(target, lambda name: SqlWrite(name, written, database, table.stored_name))


def _name_columns(node: exp.Insert) -> None:
    """Lets selected expressions without a name have that of the column they are meant for."""
    select = node.expression
    if not isinstance(node.this, exp.Schema) or not isinstance(select, exp.Select):
        return
    for item, column in zip(list(select.expressions), node.this.expressions, strict=False):
        if item.is_star:
            return
        if not isinstance(item, exp.Alias | exp.Column):
            item.replace(exp.Alias(this=item.copy(), alias=column.copy()))


def _table(target: exp.Expr, context: QueryContext) -> Table:
    tables = {
        name.lower(): table
        for name, table in context.catalog.tables.items()
        if table.database is not None
    }
    found = tables.get(target.name.lower())
    if found is not None:
        return found
    names = [table.name for table in tables.values()]
    known = {name.lower() for name in context.catalog.names}
    if target.name.lower() in known:
        what = f"{target.name} is not a table of a database; there are {listed(names)}"
    else:
        what = f"no database table {target.name}; there are {listed(names)}"
    raise context.written.error(target, what, suggestion(target.name, names))


def _columns(
    node: exp.Insert, target: exp.Expr, table: Table, result: Input, context: QueryContext
) -> tuple[tuple[str, Expression], ...]:
    """The table's columns: by position if they are listed, else by name."""
    if isinstance(node.this, exp.Schema):
        return _by_position(node.this.expressions, table, result, context)
    names = result.schema.names
    for name in names:
        if table.schema.find(name) is None:
            what = f"no column {name} in {table.name}; it has {listed(table.schema.names)}"
            hint = suggestion(name, table.schema.names) or "Rename it with AS, or list the columns."
            raise context.written.error(target, what, hint)
    given = {name.lower(): result.schema[name] for name in names}
    missing = [name for name in table.schema.names if name.lower() not in given]
    if missing:
        raise context.written.error(
            target,
            f"nothing is given for {listed(missing)} of {table.name}",
            f"Select it too, or list what is given: INSERT INTO {table.name} ({listed(names)}).",
        )
    with context.written.pointing_at(target):
        return tuple(_fitting(given[field.name.lower()], field, table) for field in table.schema)


def _by_position(
    listing: list[exp.Expr], table: Table, result: Input, context: QueryContext
) -> tuple[tuple[str, Expression], ...]:
    if len(listing) != len(result.schema):
        counts = f"{len(listing)} columns are listed and {len(result.schema)} selected"
        raise context.written.error(listing[0], counts, "Select one for each.")
    columns = []
    for node, given in zip(listing, result.schema, strict=True):
        wanted = table.schema.find(node.name)
        if wanted is None:
            what = f"no column {node.name} in {table.name}; it has {listed(table.schema.names)}"
            raise context.written.error(node, what, suggestion(node.name, table.schema.names))
        with context.written.pointing_at(node):
            columns.append(_fitting(given, wanted, table))
    return tuple(columns)


def _fitting(given: Field, wanted: Field, table: Table) -> tuple[str, Expression]:
    """The column ``wanted`` of a table, made of the column ``given`` of a query."""
    if given.type is wanted.type:
        return wanted.name, Column(given.name)
    if common_type(given.type, wanted.type) is not wanted.type:
        raise InputError(
            f"{given.name} is a {given.type}, and {wanted.name} of {table.name} a {wanted.type}",
            hint=f"Write CAST({given.name} AS {wanted.type}).",
        )
    return wanted.name, Cast(Column(given.name), wanted.type)
