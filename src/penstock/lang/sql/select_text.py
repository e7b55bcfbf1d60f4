"""The text of one SELECT, put together clause by clause."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from sqlglot import exp

from penstock.lang.sql.expression_text import name_node, node_sql
from penstock.lang.sql.functions import WINDOWS
from penstock.lang.sql.scope import fresh

_WIDTH = 92

Text = Callable[[exp.Expr], str]


class Stage(IntEnum):
    """How far a SELECT is written; what comes later cannot be read by what comes before."""

    FROM = 0
    WHERE = 1
    GROUP = 2
    HAVING = 3
    SELECT = 4


@dataclass(frozen=True)
class Source:
    """Something a SELECT reads; ``mark`` stands for its alias until the text is written."""

    name: str
    mark: str
    join: str = ""
    on: tuple[exp.Expr, ...] = ()


@dataclass(frozen=True)
class SelectText:
    """A SELECT that is being written: its clauses, and what each column of its result is."""

    sources: tuple[Source, ...]
    columns: Mapping[str, exp.Expr]
    where: tuple[exp.Expr, ...] = ()
    group: tuple[exp.Expr, ...] = ()
    having: tuple[exp.Expr, ...] = ()
    stage: Stage = Stage.FROM
    union: tuple[str, ...] = ()

    def column(self, name: str) -> exp.Expr:
        """What the column ``name`` is, in terms of what the block reads."""
        return self.columns[name].copy()


def block_text(block: SelectText) -> str:
    """The block as text, one clause a line."""
    if block.union:
        return "\nUNION ALL\n".join(block.union)
    aliases = _aliases(block.sources)
    qualified = len(block.sources) > 1

    def text(node: exp.Expr) -> str:
        return node_sql(_with_aliases(node, aliases, qualified))

    lines = [_line("SELECT ", _select_list(block, text))]
    for source in block.sources:
        lines.append(_source_line(source, aliases[source.mark], text))
    if block.where:
        lines.append(_line("WHERE ", _all_of(block.where, text), " AND "))
    if block.group:
        lines.append(_line("GROUP BY ", [text(node) for node in block.group]))
    if block.having:
        lines.append(_line("HAVING ", _all_of(block.having, text), " AND "))
    return "\n".join(lines)


def _all_of(nodes: tuple[exp.Expr, ...], text: Text) -> list[str]:
    """Conditions to be written with AND between them."""
    alternative = len(nodes) > 1
    return [
        f"({text(node)})" if alternative and isinstance(node, exp.Or) else text(node)
        for node in nodes
    ]


def _select_list(block: SelectText, text: Text) -> list[str]:
    if _is_whole(block):
        return ["*"]
    items = []
    for name, node in block.columns.items():
        own = isinstance(node, exp.Column) and node.name == name
        items.append(text(node) if own else f"{text(node)} AS {node_sql(name_node(name))}")
    return items


def _is_whole(block: SelectText) -> bool:
    """Whether the result has just the columns of the one thing read."""
    return block.stage <= Stage.WHERE and len(block.sources) == 1


def _source_line(source: Source, alias: str, text: Text) -> str:
    named = node_sql(name_node(source.name))
    if alias.lower() != source.name.lower():
        named = f"{named} AS {alias}"
    if not source.join:
        return f"FROM {named}"
    return _line(f"{source.join} {named} ON ", _all_of(source.on, text), " AND ")


def _aliases(sources: Iterable[Source]) -> dict[str, str]:
    """What each source is called: its name, with a number if it is read twice."""
    aliases: dict[str, str] = {}
    for source in sources:
        aliases[source.mark] = fresh(source.name, (*aliases.values(), *WINDOWS))
    return aliases


def _with_aliases(node: exp.Expr, aliases: Mapping[str, str], qualified: bool) -> exp.Expr:
    def named(part: exp.Expr) -> exp.Expr:
        if isinstance(part, exp.Column) and part.table in aliases:
            table = name_node(aliases[part.table]) if qualified else None
            return exp.Column(this=part.this, table=table)
        return part

    return node.transform(named)


def _line(keyword: str, items: list[str], separator: str = ", ") -> str:
    """A clause; where it is too long it goes on under its first item."""
    lines = [keyword]
    for at, item in enumerate(items):
        joined = separator if at < len(items) - 1 else ""
        if len(lines[-1]) + len(item) > _WIDTH and at:
            lines[-1] = lines[-1].rstrip()
            lines.append(" " * 2)
        lines[-1] += item + joined
    return "\n".join(lines)
