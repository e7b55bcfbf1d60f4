"""Which operators of a network are written together: a query with all that only it needs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from penstock.errors import InputError, PenstockError
from penstock.lang.deployment.drafts import write_name
from penstock.lang.sql import KnownNames, parse_query, query_sql, references
from penstock.model.network import Network, Query
from penstock.model.operators import Operator, PythonOperator, SqlWrite, Switch, TableJoin
from penstock.model.retime import Retime
from penstock.model.schema import Schema, Shape
from penstock.model.sources import GeneratorSource, Stream, Table

_APART = (Switch, PythonOperator, Retime)
_INSERT = re.compile(r"\bINSERT\s+INTO\s+(?:TABLE\s+)?`?(?P<name>\w+)", re.IGNORECASE)


@dataclass(frozen=True)
class Group:
    """Operators that make one named thing: the last gives it, nobody else reads the others.

    ``streams`` are the shapes of what they read, ``write`` the side branch that writes the result
    to a database table.
    """

    operators: tuple[Operator, ...]
    streams: Mapping[str, Shape]
    write: SqlWrite | None = None

    @property
    def root(self) -> Operator:
        return self.operators[-1]

    @cached_property
    def sql(self) -> str:
        """A query that gives the same."""
        outside = tuple(_stand_in(name, shape) for name, shape in self.streams.items())
        return query_sql(Network(outside, self.operators), self.root.name)

    def reads_back(self) -> bool:
        """Whether the SQL means exactly these operators, names included."""
        tables = {joined_table.name: joined_table for joined_table in joined_tables(self.operators)}
        if isinstance(self.root, SqlWrite):
            tables.setdefault(self.root.table, _target(self.root, self.root.table))
        try:
            read = parse_query(self.root.name, self.sql, KnownNames(self.streams, tables))
        except PenstockError:
            return False
        return {operator.name: operator for operator in read.operators} == {
            operator.name: operator for operator in self.operators
        }


def _stand_in(name: str, shape: Shape) -> Stream:
    """A stream from outside of this shape; where it comes from does not matter here."""
    timed = bool(shape.times) and shape.watermarked
    return Stream(name, GeneratorSource(name), shape, 0 if timed else None)


def groups_of(network: Network) -> tuple[Group, ...]:
    """The groups, each after those it reads; every operator is in one of them.

    What a query's own text names is a group of its own, and so is what SQL cannot say. A group
    whose SQL would not read back is split into its operators.
    """
    roots = _must_be_roots(network)
    while True:
        groups = grouped(network, roots)
        unclear = [
            group for group in groups if len(group.operators) > 1 and not _is_clear(group, network)
        ]
        if not unclear:
            return groups
        roots |= {operator.name for group in unclear for operator in group.operators}


def _is_clear(group: Group, network: Network) -> bool:
    texts = {query.stream: query.text for query in network.queries}
    return bool(texts.get(group.root.name)) or group.reads_back()


def grouped(network: Network, roots: Iterable[str]) -> tuple[Group, ...]:
    """The groups that end in ``roots``, wherever else they must end."""
    named = set(roots)
    owner: dict[str, str] = {}
    for operator in reversed(network.operators):
        owner[operator.name] = _owner(operator, network, named, owner)
    members: dict[str, list[Operator]] = {}
    writes = {
        operator.name: operator for operator in network.operators if is_write(operator, network)
    }
    for operator in network.operators:
        if operator.name not in writes:
            members.setdefault(owner[operator.name], []).append(operator)
    return tuple(
        _group(members[operator.name], network, writes)
        for operator in network.operators
        if operator.name in members
    )


def _owner(operator: Operator, network: Network, roots: set[str], owner: Mapping[str, str]) -> str:
    readers = network.readers.get(operator.name, ())
    owners = {owner[reader.name] for reader in readers}
    if operator.name in roots or len(owners) != 1 or isinstance(operator, _APART):
        return operator.name
    (only,) = owners
    return only if operator.name.startswith(f"{only}_") else operator.name


def _group(operators: list[Operator], network: Network, writes: Mapping[str, Operator]) -> Group:
    own = {operator.name for operator in operators}
    read = [stream.stream for operator in operators for stream in operator.inputs]
    streams = {name: network.shapes[name] for name in read if name not in own}
    write = writes.get(write_name(operators[-1].name))
    return Group(tuple(operators), streams, write if isinstance(write, SqlWrite) else None)


def is_write(operator: Operator, network: Network) -> bool:
    """Whether the operator is a query's side branch into a database table."""
    if not isinstance(operator, SqlWrite):
        return False
    queries = {query.stream for query in network.queries if query.stream == query.name}
    stream = operator.input.stream
    return stream in queries and operator.name == write_name(stream)


def _must_be_roots(network: Network) -> set[str]:
    roots = {query.stream for query in network.queries}
    spelled = {name.lower(): name for name in network.shapes}
    for query in network.queries:
        read = references(query.text) if query.text else ()
        roots |= {spelled[name.lower()] for name in read if name.lower() in spelled}
    for operator in network.operators:
        if isinstance(operator, _APART):
            roots |= {input.stream for input in operator.inputs}
        if is_write(operator, network):
            roots.add(operator.name)
    return roots


def own_stream(query: Query, network: Network) -> str:
    """The stream of a query, which must be made by it and called like it to be written down."""
    if query.stream != query.name or query.stream not in network.producers:
        raise InputError(
            f"query {query.name} is no more than the stream {query.stream}",
            hint="Give the query an operator of its own.",
        )
    return query.stream


def joined_tables(operators: Iterable[Operator]) -> tuple[Table, ...]:
    """The tables that operators join with, in the order of their names."""
    tables: dict[str, Table] = {}
    for operator in operators:
        if not isinstance(operator, TableJoin):
            continue
        table = operator.table
        if tables.setdefault(table.name, table) != table:
            raise _two_tables(table.name)
    return tuple(tables[name] for name in sorted(tables))


def _two_tables(name: str) -> InputError:
    return InputError(f"two different tables are called {name}", hint="Rename one of them.")


def written_tables(network: Network) -> tuple[Table, ...]:
    """The tables that a file must declare, in the order of their names.

    Those joined with, and those of INSERT INTO, under the names that the queries' texts use.
    """
    tables = {table.name: table for table in joined_tables(network.operators)}
    texts = {query.stream: query.text for query in network.queries}
    for operator in network.operators:
        if isinstance(operator, SqlWrite) and not is_write(operator, network):
            target = _INSERT.search(texts.get(operator.name, ""))
            table = _target(operator, target["name"] if target else operator.table)
            tables[table.name] = _widened(tables.get(table.name, table), table)
    return tuple(tables[name] for name in sorted(tables))


def _target(write: SqlWrite, name: str) -> Table:
    stored = "" if name == write.table else write.table
    return Table(name, write.input.schema, database=write.database, table=stored)


def _widened(table: Table, other: Table) -> Table:
    """The table with columns that another query writes added to it."""
    if (table.database, table.stored_name) != (other.database, other.stored_name):
        raise _two_tables(table.name)
    more = tuple(field for field in other.schema if field.name not in table.schema)
    return replace(table, schema=Schema((*table.schema.fields, *more))) if more else table
