"""Joining with a table: its columns added to the rows that have equal keys."""

from __future__ import annotations

from dataclasses import replace

from penstock.lang.sql.conditions import JoinedRelation, split_equal
from penstock.lang.sql.context import QueryContext
from penstock.lang.sql.joined import Joined, computed, filtered, join_keys, with_keys
from penstock.model.expressions import Column
from penstock.model.operators import SqlRead, TableJoin
from penstock.model.sources import Table


def with_table(
    joined: Joined, step: JoinedRelation, table: Table, later: frozenset[str], context: QueryContext
) -> Joined:
    """The rows so far with the columns of a table's rows that are needed ``later``.

    Conditions other than equal columns are checked afterwards.
    """
    relation = step.relation
    pairs, rest = split_equal(step.on, joined.columns, plain=True)
    if rest and step.join == "left":
        raise context.written.error(
            rest[0].node,
            f"a LEFT JOIN with the table {relation.title} can only compare its columns with =",
            "Use JOIN, or move the condition into a subquery that reads the stream.",
        )
    keys = join_keys([expression for expression, _ in pairs], "key", joined.input.schema.names)
    needed = later.union(*(condition.columns for condition in rest))
    input = joined.input
    if computed(keys):
        input = with_keys(input, keys, needed, relation.node, context)
    compared = [other.name for _, other in pairs if isinstance(other, Column)]
    equal = tuple(
        (key, relation.own[column]) for (key, _), column in zip(keys, compared, strict=True)
    )
    kind = TableJoin if table.database is None else SqlRead
    columns = tuple(pair for pair in relation.own.items() if pair[0] in needed)
    output = context.add(
        relation.node, lambda name: kind(name, input, table, equal, columns, step.join)
    )
    return replace(joined, input=filtered(output, rest, context))
