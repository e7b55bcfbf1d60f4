"""What is known while a query is read: its text, the catalog, its subqueries so far."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from penstock.errors import InputError, Place, listed, suggestion
from penstock.lang.sql.graph import OperatorDrafts
from penstock.lang.sql.places import WrittenText
from penstock.lang.sql.records import KnownNames
from penstock.model.expressions import Expression, all_of, conjuncts
from penstock.model.operators import Filter, Input, Map, Operator
from penstock.model.sources import Table

# Clauses that have no meaning on a stream, by sqlglot's name: the keyword and what to do.
_REFUSED: Mapping[str, tuple[str, str]] = {
    "order": ("ORDER BY", "A stream has no end to sort at; sort its results where you read them."),
    "sort": ("SORT BY", "A stream has no end to sort at; sort its results where you read them."),
    "cluster": ("CLUSTER BY", "Rows are placed by Penstock."),
    "distribute": ("DISTRIBUTE BY", "Rows are placed by Penstock."),
    "limit": ("LIMIT", "A stream has no end; filter with WHERE instead."),
    "offset": ("OFFSET", "A stream has no first row; filter with WHERE instead."),
    "distinct": ("DISTINCT", "Group by the columns and a window(time, 'size') instead."),
    "qualify": ("QUALIFY", "Use HAVING, or WHERE around a subquery."),
    "windows": ("WINDOW", "Use GROUP BY window(time, 'size')."),
    "laterals": ("LATERAL", "Rows cannot be unfolded in SQL; use a Python operator."),
    "pivots": ("PIVOT", "Use one aggregate with FILTER (WHERE …) for each column."),
    "sample": ("TABLESAMPLE", "Filter with WHERE instead."),
    "rollup": ("ROLLUP", "Write a query for each, and UNION ALL between them."),
    "cube": ("CUBE", "Write a query for each, and UNION ALL between them."),
    "hint": ("a hint", "Leave it out; Penstock places operators itself."),
    "using": ("USING", "Write ON one.column = other.column."),
    "method": ("NATURAL", "Write ON one.column = other.column."),
    "overwrite": ("OVERWRITE", "Results are added; write INSERT INTO."),
    "recursive": ("RECURSIVE", "A query cannot read itself."),
    "partition": ("PARTITION", "Give the column a value in the SELECT."),
    "db": ("a name with a dot", "Write the name of the stream or table alone."),
    "all": ("ALL", "List what to group by."),
    "columns": ("a column list", "Name columns with AS in the SELECT."),
}


@dataclass(frozen=True)
class QueryContext:
    """Where a query or a part of it is being read; ``owner`` begins its operators' names."""

    written: WrittenText
    catalog: KnownNames
    draft: OperatorDrafts
    query: str
    owner: str
    subqueries: Mapping[str, Input] = field(default_factory=dict)

    def owned_by(self, part: str) -> QueryContext:
        """The context of a named part of the query."""
        return replace(self, owner=f"{self.owner}_{part.lower()}")

    def knowing(self, name: str, result: Input) -> QueryContext:
        """The context in which ``name`` is also the result of a subquery."""
        return replace(self, subqueries={**self.subqueries, name.lower(): result})

    def add(self, node: exp.Expr, make: Callable[[str], Operator]) -> Input:
        """Adds an operator; errors it raises point at ``node``."""
        with self.written.pointing_at(node):
            return self.draft.add(self.owner, make)

    def filtered(self, node: exp.Expr, input: Input, predicate: Expression) -> Input:
        """The rows of ``input`` for which ``predicate`` is true."""
        flat = all_of(conjuncts(predicate))
        return self.add(node, lambda name: Filter(name, input, flat))

    def mapped(
        self, node: exp.Expr, input: Input, columns: tuple[tuple[str, Expression], ...]
    ) -> Input:
        """Other columns computed from those of ``input``."""
        return self.add(node, lambda name: Map(name, input, columns))

    def lookup(self, node: exp.Table) -> Input | Table:
        """What the relation called like ``node`` is."""
        folded = node.name.lower()
        if folded in self.subqueries:
            return self.subqueries[folded]
        for name, shape in self.catalog.shapes.items():
            if name.lower() == folded:
                return Input(name, shape)
        for name, table in self.catalog.tables.items():
            if name.lower() == folded:
                return table
        raise self._unknown(node)

    def _unknown(self, node: exp.Table) -> InputError:
        if node.name.lower() == self.query.lower():
            return self.written.error(node.this, f"query {self.query} reads itself")
        names = (*self.subqueries, *self.catalog.names)
        what = f"no stream or table {node.name}; there are {listed(names)}"
        return self.written.error(node.this, what, suggestion(node.name, names))


def only(context: QueryContext, node: exp.Expr, known: Collection[str], what: str) -> None:
    """Raises if ``node`` has any part that is not ``known``: nothing is ignored silently."""
    for name, part in node.args.items():
        if not part or name in known:
            continue
        keyword, hint = _REFUSED.get(name, (name.rstrip("_").upper(), ""))
        first = part[0] if isinstance(part, list) else part
        place = _place(context.written, node, first, keyword)
        raise InputError(f"{keyword} is not supported in {what}", hint=hint, place=place)


def _place(written: WrittenText, node: exp.Expr, part: object, keyword: str) -> Place:
    """Where ``keyword`` stands: before the part itself, else before the node's first item."""
    if isinstance(part, exp.Hint):  # read by sqlglot as a text of its own
        return written.at(written.text.find("/*+"), 3)
    if not isinstance(part, exp.Expr):
        return written.word(keyword, node)
    known = any("start" in expression.meta for expression in part.walk())
    return written.word(keyword, part if known else (*node.expressions, node)[0])
