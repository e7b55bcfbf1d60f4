"""What the names in one SELECT mean: its relations and their columns.

Every column of every relation gets a name that is unique in the SELECT; expressions are over
those names, so that joins need not care which relation a column came from. The first relation
keeps its names; a later one's column that would clash is called ``right_<name>``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from sqlglot import exp

from penstock.errors import InputError, listed, suggestion
from penstock.lang.sql.functions import WINDOWS, refused
from penstock.lang.sql.places import WrittenText
from penstock.model.expressions import Column, Expression
from penstock.model.operators import Input
from penstock.model.schema import Schema
from penstock.model.sources import Table
from penstock.model.types import DataType

_AGGREGATE_HINTS = {
    "WHERE": "Conditions on aggregates go into HAVING.",
    "ON": "Aggregate in a subquery and join with its result.",
    "GROUP BY": "Group by columns and one window.",
    "an aggregate": "Aggregate in a subquery first.",
}


@dataclass(frozen=True)
class Relation:
    """Something a SELECT reads: what it is called there, where it is, its unique column names."""

    alias: str
    title: str
    source: Input | Table
    node: exp.Expr
    names: tuple[str, ...]

    @property
    def schema(self) -> Schema:
        """The relation's columns under their own names."""
        return self.source.schema

    @cached_property
    def fields(self) -> tuple[tuple[str, DataType], ...]:
        """The relation's columns under the names they have in this SELECT."""
        return tuple(
            (name, field.type) for name, field in zip(self.names, self.schema, strict=True)
        )

    @cached_property
    def own(self) -> dict[str, str]:
        """The relation's own name of each column."""
        return dict(zip(self.names, self.schema.names, strict=True))

    def unique(self, column: str) -> str:
        """The name a column of the relation has in this SELECT."""
        return self.names[self.schema.names.index(column)]


def fresh(wanted: str, taken: Iterable[str]) -> str:
    """``wanted``, or with a number after it if that is taken.

    >>> fresh("kwh", ["KWH", "kwh_2"])
    'kwh_3'
    """
    folded = {name.lower() for name in taken}
    name, count = wanted, 1
    while name.lower() in folded:
        count += 1
        name = f"{wanted}_{count}"
    return name


def unique_names(
    schema: Schema, taken: Collection[str], wished: Mapping[str, str]
) -> tuple[str, ...]:
    """Names for the columns of a further relation that clash with none in ``taken``.

    A column has the name that is wished for it, else its own, else ``right_<name>``.
    """
    names: dict[str, str] = {}
    for source in (wished, {column: column for column in schema.names}):
        for own, name in source.items():
            if own not in names and fresh(name, (*taken, *names.values())) == name:
                names[own] = name
    for own in schema.names:
        if own not in names:
            names[own] = fresh(f"right_{own}", (*taken, *names.values()))
    return tuple(names[own] for own in schema.names)


@dataclass(frozen=True)
class RowScope:
    """Names in a clause over rows: the relations read so far, and which clause it is."""

    written: WrittenText
    relations: tuple[Relation, ...]
    clause: str = "an expression"

    @cached_property
    def schema(self) -> Schema:
        return Schema.of(field for relation in self.relations for field in relation.fields)

    def within(self, clause: str, count: int | None = None) -> RowScope:
        """The scope of another clause, over the first ``count`` relations only."""
        return replace(self, clause=clause, relations=self.relations[:count])

    def meaning(self, node: exp.Expr) -> Expression | None:
        return Column(self.column(node)) if isinstance(node, exp.Column) else None

    def refuse_aggregate(self, node: exp.Expr) -> InputError:
        what = f"the aggregate {node.name.lower()} cannot be used in {self.clause}"
        return self.written.error(node, what, _AGGREGATE_HINTS.get(self.clause, ""))

    def column(self, node: exp.Column) -> str:
        """The unique name of the column ``node`` stands for."""
        if node.args.get("db"):
            raise self.written.error(
                node, f"{node.sql()} has too many parts", "Write column or relation.column."
            )
        if isinstance(node.this, exp.Star):
            raise self.written.error(node, "* stands for no single value here", "Name a column.")
        if node.args.get("table"):
            return self._qualified(node)
        found = list(self._called(node.name))
        if len(found) > 1:
            options = listed(f"{relation.alias}.{column}" for relation, column in found)
            raise self.written.error(
                node, f"{node.name} may be one of {options}", "Write which one is meant."
            )
        if not found:
            raise self._no_column(node)
        return found[0][0].unique(found[0][1])

    def has(self, name: str) -> bool:
        """Whether any relation has a column called ``name``."""
        return any(True for _ in self._called(name))

    def knows(self, node: exp.Column) -> bool:
        """Whether ``node`` is a column of one relation, rather than * or an end of a window."""
        aliases = [relation.alias.lower() for relation in self.relations]
        if node.table:
            return node.table.lower() in aliases and not isinstance(node.this, exp.Star)
        return len(list(self._called(node.name))) == 1

    def shown(self, column: str) -> str:
        """A unique name as the person would write it."""
        own = self.own_name(Column(column)) or column
        for relation in self.relations:
            if column in relation.own and len(self.relations) > 1:
                return f"{relation.alias}.{own}"
        return own

    def own_name(self, expression: Expression) -> str:
        """The name a column has in its relation; nothing for other expressions."""
        for relation in self.relations:
            if isinstance(expression, Column) and expression.name in relation.own:
                return relation.own[expression.name]
        return ""

    def relation(self, node: exp.Expr) -> Relation:
        """The relation called like the identifier ``node``."""
        for relation in self.relations:
            if relation.alias.lower() == node.name.lower():
                return relation
        raise self._no_relation(node)

    def _called(self, name: str) -> Iterator[tuple[Relation, str]]:
        for relation in self.relations:
            field = relation.schema.find(name)
            if field:
                yield relation, field.name

    def _qualified(self, node: exp.Column) -> str:
        relation = self.relation(node.args["table"])
        field = relation.schema.find(node.name)
        if field is None:
            raise self._missing(node.this, relation.title, relation.schema.names, "it has")
        return relation.unique(field.name)

    def _no_column(self, node: exp.Column) -> InputError:
        function = refused(node.name)
        if function:  # some functions are called without parentheses
            function.place = self.written.place(node)
            return function
        titles = " and ".join(relation.title for relation in self.relations)
        names = [name for relation in self.relations for name in relation.schema.names]
        verb = "it has" if len(self.relations) == 1 else "they have"
        return self._missing(node.this, titles, tuple(dict.fromkeys(names)), verb)

    def _missing(self, node: exp.Expr, title: str, names: tuple[str, ...], verb: str) -> InputError:
        what = f"no column {node.name} in {title}; {verb} {listed(names)}"
        return self.written.error(node, what, suggestion(node.name, names))

    def _no_relation(self, node: exp.Expr) -> InputError:
        name = node.name
        if name.lower() in WINDOWS:
            return self.written.error(
                node.parent or node,
                f"{name} has no meaning in {self.clause}",
                f"Write GROUP BY {name.lower()}(time, 'size'); "
                f"then SELECT and HAVING know {name.lower()}.start and {name.lower()}.end.",
            )
        aliases = [relation.alias for relation in self.relations if relation.alias]
        if not aliases:
            return self.written.error(node, f"nothing called {name} here", "Name the column alone.")
        what = f"nothing called {name} is read here, only {listed(aliases)}"
        return self.written.error(node, what, suggestion(name, aliases))
