"""What names mean after GROUP BY: keys, aggregates, and the ends of the window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from penstock.errors import InputError
from penstock.lang.sql.aggregates import aggregate_call, aggregate_nodes, is_aggregate
from penstock.lang.sql.expressions import to_expression
from penstock.lang.sql.functions import WINDOWS
from penstock.lang.sql.places import WrittenText
from penstock.lang.sql.scope import RowScope
from penstock.model.aggregates import AggregateCall
from penstock.model.expressions import Column, Expression
from penstock.model.operators import WINDOW_END, WINDOW_START
from penstock.model.schema import Schema

_ENDS = {"start": WINDOW_START, "end": WINDOW_END}


@dataclass(frozen=True)
class GroupedScope:
    """Names in SELECT and HAVING after grouping; ``schema`` is that of the groups."""

    rows: RowScope
    schema: Schema
    keys: Mapping[Expression, str]
    calls: Mapping[AggregateCall, str]
    window: exp.Expr
    aliases: Mapping[str, exp.Expr] = field(default_factory=dict)

    @property
    def written(self) -> WrittenText:
        return self.rows.written

    def with_aliases(self, aliases: Mapping[str, exp.Expr]) -> GroupedScope:
        """The scope of HAVING, which also knows the names of the SELECT list."""
        return replace(self, aliases=aliases)

    def meaning(self, node: exp.Expr) -> Expression | None:
        if is_aggregate(node):
            return Column(self.calls[aggregate_call(node, self.rows.within("an aggregate"))])
        end = self._window_end(node)
        if end is not None:
            return Column(end)
        if isinstance(node, exp.Column):
            return self._column(node)
        return None if self._has_groups(node) else self._key(node)

    def refuse_aggregate(self, node: exp.Expr) -> InputError:
        return self.rows.refuse_aggregate(node)

    def _has_groups(self, node: exp.Expr) -> bool:
        """Whether a node can only be understood part by part."""
        if any(aggregate_nodes(node)) or node.find(exp.Select, exp.Window):
            return True
        columns = list(node.find_all(exp.Column, exp.Dot))
        return any(self._window_end(column) or self._is_alias(column) for column in columns)

    def _key(self, node: exp.Expr) -> Expression | None:
        """The column of the key that ``node`` is, if it is one."""
        name = self.keys.get(to_expression(node, self.rows))
        return None if name is None else Column(name)

    def _is_alias(self, node: exp.Expr) -> bool:
        if not isinstance(node, exp.Column) or node.table:
            return False
        known = self.rows.has(node.name) and self._key(node) is not None
        return node.name.lower() in self.aliases and not known

    def _column(self, node: exp.Column) -> Expression:
        if self._is_alias(node):
            return to_expression(self.aliases[node.name.lower()], replace(self, aliases={}))
        if node.name.lower() in WINDOWS and not node.table and not self.rows.has(node.name):
            name = self.window.name.lower()
            hint = f"Write {name}.start or {name}.end."
            raise self.written.error(node, f"{node.name} is not a single value", hint)
        found = self._key(node)
        if found is None:
            name = node.name
            raise self.written.error(
                node,
                f"{name} is neither grouped by nor inside an aggregate",
                f"Add it to GROUP BY, or use for example max({name}).",
            )
        return found

    def _window_end(self, node: exp.Expr) -> str | None:
        """The column of ``window.start`` or ``window.end``; None if the node is neither."""
        if isinstance(node, exp.Dot) and isinstance(node.this, exp.Anonymous):
            named = self._names(node.this)
            return self._end(node, node.this, node.expression.name) if named else None
        if isinstance(node, exp.Column) and node.table and self._names(node.args["table"]):
            return self._end(node, node.args["table"], node.name)
        return None

    def _names(self, node: exp.Expr) -> bool:
        aliases = [relation.alias.lower() for relation in self.rows.relations]
        return node.name.lower() in WINDOWS and node.name.lower() not in aliases

    def _end(self, node: exp.Expr, window: exp.Expr, end: str) -> str:
        name = self.window.name.lower()
        same = window.name.lower() == name
        if isinstance(window, exp.Anonymous):
            same = window == self.window
        if not same or end.lower() not in _ENDS:
            what = f"{self.written.quoted(node)} is not part of the window grouped by"
            raise self.written.error(node, what, f"There are {name}.start and {name}.end.")
        return _ENDS[end.lower()]
