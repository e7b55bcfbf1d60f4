"""From operators back to SQL.

Operators are folded into as few SELECTs as they make up; what is read more than once, or cannot
be folded, becomes a common table expression. The readable form is checked by reading it back;
should that not give the same operators, every operator gets a SELECT of its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from penstock.errors import InputError
from penstock.lang.sql.blocks import (
    aggregated,
    filtered,
    from_source,
    joined,
    mapped,
    table_joined,
    united,
)
from penstock.lang.sql.expression_text import name_node, node_sql
from penstock.lang.sql.parse import parse_query
from penstock.lang.sql.records import KnownNames
from penstock.lang.sql.scope import fresh
from penstock.lang.sql.select_text import SelectText, Stage, block_text
from penstock.model.canonical import same_operators
from penstock.model.expressions import Column
from penstock.model.network import Network, unknown_stream
from penstock.model.operators import (
    Aggregate,
    Filter,
    Input,
    Map,
    Operator,
    PythonOperator,
    SqlWrite,
    Switch,
    TableJoin,
    Union,
    WindowJoin,
)
from penstock.model.retime import Retime
from penstock.model.sources import Table

_KIND = re.compile(r"\d+|(filter|map|union|aggregate|join|table_join|sql_read)(_\d+)?")


def query_sql(network: Network, stream: str) -> str:
    """The query behind ``stream`` as SQL, reading other queries and outside streams by name."""
    if stream not in network.shapes:
        raise unknown_stream(stream, network.shapes)
    operators = _behind(network, stream)
    if not operators:
        return f"SELECT *\nFROM {node_sql(name_node(stream))}"
    last = operators[-1]
    if isinstance(last, Switch | PythonOperator | Retime):
        raise InputError(
            f"{stream} comes from a {last.kind} operator, which SQL cannot express",
            hint="Ask for a query that reads it.",
        )
    readable = _SqlPrinter(operators, stream, folding=True).text()
    if _reads_back(readable, operators, stream, network):
        return readable
    return _SqlPrinter(operators, stream, folding=False).text()


def _behind(network: Network, stream: str) -> tuple[Operator, ...]:
    """The operators between ``stream`` and what it reads by name, each after what it reads."""
    named = {query.stream for query in network.queries} - {stream}
    wanted = {stream}
    found: list[Operator] = []
    for operator in reversed(network.operators):
        if not wanted & set(operator.outputs):
            continue
        inner = not (named & set(operator.outputs)) and not _is_end(operator)
        if inner or stream in operator.outputs:
            found.append(operator)
            wanted |= {input.stream for input in operator.inputs}
    return tuple(reversed(found))


def _is_end(operator: Operator) -> bool:
    """Whether an operator has no SQL that gives its output, so that it is read by name."""
    return isinstance(operator, Switch | PythonOperator | Retime | SqlWrite)


def _reads_back(text: str, operators: tuple[Operator, ...], stream: str, network: Network) -> bool:
    own = {operator.name for operator in operators}
    shapes = {name: shape for name, shape in network.shapes.items() if name not in own}
    tables = {
        operator.table.name: operator.table
        for operator in operators
        if isinstance(operator, TableJoin)
    }
    last = operators[-1]
    if isinstance(last, SqlWrite):
        tables[last.table] = Table(last.table, last.input.schema, database=last.database)
    try:
        parsed = parse_query(stream, text, KnownNames(shapes, tables))
    except InputError:
        return False
    return same_operators(parsed.operators, operators)


@dataclass
class _SqlPrinter:
    """Writes the operators of one query; ``folding`` puts as many as it can into one SELECT."""

    operators: tuple[Operator, ...]
    stream: str
    folding: bool
    written: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    marks: int = 0

    def __post_init__(self) -> None:
        self.by_stream = {operator.name: operator for operator in self.operators}
        inputs = [stream.stream for operator in self.operators for stream in operator.inputs]
        self.reads = Counter(inputs)

    def text(self) -> str:
        """The whole query."""
        last = self.by_stream[self.stream]
        if isinstance(last, SqlWrite):
            columns = ", ".join(node_sql(name_node(name)) for name in last.input.schema.names)
            head = f"INSERT INTO {node_sql(name_node(last.table))} ({columns})\n"
            body = block_text(self._block(last.input))
        else:
            head, body = "", block_text(self._made(last))
        parts = [
            f"{node_sql(name_node(name))} AS (\n{_indented(text)}\n)"
            for name, text in self.written.items()
        ]
        subqueries = f"WITH {', '.join(parts)}\n" if parts else ""
        return head + subqueries + body

    def _block(self, input: Input) -> SelectText:
        """The SELECT that gives a stream, as far as it is written."""
        operator = self._inner(input)
        return self._named(input) if operator is None else self._made(operator)

    def _inner(self, input: Input) -> Operator | None:
        """The operator behind an input, unless it is to be read by name."""
        by_name = input.stream in self.names or self.reads[input.stream] > 1
        return None if by_name else self.by_stream.get(input.stream)

    def _made(self, operator: Operator) -> SelectText:
        match operator:
            case Filter(input=input):
                return filtered(operator, self._below(input, Stage.FROM, Stage.GROUP))
            case Map(input=input):
                below = self._below(input, *[stage for stage in Stage if stage < Stage.SELECT])
                return mapped(operator, below)
            case Aggregate(input=input):
                return aggregated(operator, self._below(input, Stage.FROM, Stage.WHERE))
            case Union(branches=branches):
                return united([block_text(self._block(branch)) for branch in branches])
            case TableJoin(input=input):
                return table_joined(operator, self._source(input), self._mark())
            case WindowJoin(left=left, right=right):
                first = self._source(left)
                return joined(operator, first, self._right(right, first))
        raise InputError(f"{operator.name} cannot be written as SQL")

    def _below(self, input: Input, *stages: Stage) -> SelectText:
        """The block of an input if its SELECT can go on from there, else a reference to it."""
        if not self.folding:
            return self._named(input)
        block = self._block(input)
        return block if block.stage in stages and not block.union else self._named(input)

    def _source(self, input: Input) -> SelectText:
        """An input as something to join: with its conditions, if they fit into WHERE or ON."""
        operator = self._inner(input)
        if operator is None or not self.folding or not self._is_joinable(input):
            return self._named(input)
        match operator:
            case Map(input=below):
                source = self._source(below)
                return replace(mapped(operator, source), stage=source.stage)
            case Filter(input=below):
                source = self._source(below)
                whole = source.stage is Stage.FROM
                return filtered(operator, source) if whole else self._named(input)
        return self._made(operator)

    def _is_joinable(self, input: Input) -> bool:
        """Whether an input is a stream or a join, perhaps filtered and with columns renamed."""
        operator = self._inner(input)
        match operator:
            case None | WindowJoin() | TableJoin():
                return True
            case Map(input=below, columns=columns):
                plain = all(isinstance(expression, Column) for _, expression in columns)
                return plain and self._is_joinable(below)
            case Filter(input=below):
                return self._is_joinable(below)
        return False

    def _right(self, input: Input, left: SelectText) -> SelectText:
        """An input as the right side of a join, which must be one thing to read.

        Names that only keep the two sides apart are left out of a subquery: reading it gives
        them back.
        """
        block = self._source(input) if self._is_joinable(input) else None
        if block is not None and len(block.sources) == 1:
            return block
        shorter = {}
        if self.folding and self._inner(input) is not None:
            shorter = _without_prefix(input.schema.names, left)
        return self._named(input, shorter)

    def _named(self, input: Input, names: Mapping[str, str] = MappingProxyType({})) -> SelectText:
        """A reference to a stream, which is written as a subquery if it is of this query.

        The subquery calls columns as ``names`` says.
        """
        operator = self.by_stream.get(input.stream)
        if operator is not None and input.stream not in self.names:
            block = self._made(operator)
            columns = {names.get(name, name): node for name, node in block.columns.items()}
            outside = {stream.stream for each in self.operators for stream in each.inputs}
            taken = (*(outside - set(self.by_stream)), *self.names.values(), self.stream)
            self.names[input.stream] = fresh(_short_name(input.stream, self.stream), taken)
            self.written[self.names[input.stream]] = block_text(replace(block, columns=columns))
        name = self.names.get(input.stream, input.stream)
        return from_source(name, self._mark(), input.schema, names)

    def _mark(self) -> str:
        self.marks += 1
        return f"mark_{self.marks}"


def _without_prefix(names: tuple[str, ...], left: SelectText) -> dict[str, str]:
    """Shorter names for columns that clash with none of their own side, but with the left's."""
    short = {name: name.removeprefix("right_") for name in names}
    return {
        name: column
        for name, column in short.items()
        if column in left.columns and column not in names
    }


def _short_name(operator: str, query: str) -> str:
    """An operator's name without the query's before it, if that leaves more than its kind."""
    short = operator.removeprefix(f"{query}_")
    return operator if _KIND.fullmatch(short) else short


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
