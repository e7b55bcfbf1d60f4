"""The doors of the SQL front end: from text to operators, expressions and names."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from penstock.lang.sql.aggregates import aggregate_call, is_aggregate
from penstock.lang.sql.context import QueryContext
from penstock.lang.sql.expressions import to_expression
from penstock.lang.sql.graph import OperatorDrafts
from penstock.lang.sql.insert import plan_insert
from penstock.lang.sql.naming import named
from penstock.lang.sql.places import WrittenText
from penstock.lang.sql.query import plan_query
from penstock.lang.sql.records import KnownNames, ParsedQuery
from penstock.lang.sql.scope import Relation, RowScope
from penstock.lang.sql.syntax import not_too_deep, parse_condition, parse_statement
from penstock.lang.sql.tidy import PASSES
from penstock.model.aggregates import AggregateCall
from penstock.model.expressions import Expression
from penstock.model.operators import Input
from penstock.model.schema import Schema, Shape, checked_name


def parse_query(name: str, text: str, catalog: KnownNames, origin: str = "query") -> ParsedQuery:
    """The operators of the query ``text``, the last of which is called ``name``.

    >>> readings = Shape.timed(Schema.parse("ts timestamp, home string, kwh double"), "ts")
    >>> query = parse_query(
    ...     "busy",
    ...     "SELECT home, sum(kwh) AS kwh FROM readings GROUP BY home, window(ts, '1 hour')",
    ...     KnownNames({"readings": readings}),
    ... )
    >>> for operator in query.operators:
    ...     print(operator.name, operator.details, sep=": ")
    busy_aggregate: sum(`kwh`) AS kwh by home, every 1 hour
    busy: home, kwh
    """
    checked_name(name, "query")
    written = WrittenText(origin, text)
    tree = parse_statement(written)
    draft = OperatorDrafts(catalog.names)
    context = QueryContext(written, catalog, draft, name, name)
    with not_too_deep(written):
        if isinstance(tree, exp.Insert):
            result = plan_insert(tree, context)
        else:
            result = plan_query(tree, context)
    graph = draft.graph(result, name)
    for simplify in PASSES:
        graph = simplify(graph)
    return ParsedQuery(named(graph, name, catalog.names), name)


def references(text: str, origin: str = "query") -> frozenset[str]:
    """The streams and tables a query reads, as it spells them.

    >>> sorted(references("WITH a AS (SELECT * FROM s) SELECT * FROM a JOIN t ON a.x = t.x"))
    ['s', 't']
    """
    tree = parse_statement(WrittenText(origin, text))
    return frozenset(_references(tree, frozenset()))


def _references(node: exp.Expr, own: frozenset[str]) -> Iterator[str]:
    """The names read below ``node`` that are not among its ``own`` subqueries."""
    for part in getattr(node.args.get("with_"), "expressions", []):
        yield from _references(part.this, own)
        own |= {part.alias.lower()}
    for name, child in node.args.items():
        is_target = isinstance(node, exp.Insert) and name == "this"
        for below in child if isinstance(child, list) else [child]:
            if isinstance(below, exp.Expr) and name != "with_" and not is_target:
                yield from _references(below, own)
    if isinstance(node, exp.Table) and node.name.lower() not in own and node.name:
        yield node.name


def parse_expression(text: str, schema: Schema, origin: str = "expression") -> Expression:
    """The expression ``text`` over the columns of ``schema``.

    >>> parse_expression("KWH > 9", Schema.parse("kwh double"))
    Call(function='>', arguments=(Column(name='kwh'), Literal(value=9)))
    """
    written = WrittenText(origin, text)
    tree = parse_condition(written)
    with not_too_deep(written):
        return to_expression(tree, _rows(written, schema, tree))


def parse_aggregate(text: str, schema: Schema, origin: str = "expression") -> AggregateCall:
    """The aggregate ``text`` over the columns of ``schema``.

    >>> parse_aggregate("sum(kwh)", Schema.parse("kwh double"))
    AggregateCall(function='sum', arguments=(Column(name='kwh'),))
    """
    written = WrittenText(origin, text)
    tree = parse_condition(written)
    if not is_aggregate(tree):
        raise written.error(
            tree, f"{written.quoted(tree)} is not an aggregate", "Write for example sum(column)."
        )
    return aggregate_call(tree, _rows(written, schema, tree, "an aggregate"))


def _rows(
    written: WrittenText, schema: Schema, node: exp.Expr, clause: str = "an expression"
) -> RowScope:
    """The scope of an expression that stands alone: one relation without a name."""
    input = Input("input", Shape(schema))
    relation = Relation("", "the input", input, node, schema.names)
    return RowScope(written, (relation,), clause)
