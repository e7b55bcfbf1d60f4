"""Streams and queries made from others: what they read, and their operators once that is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from penstock.errors import InputError, Place
from penstock.lang.deployment.ends import AnySink, TableSink, read_schema
from penstock.lang.deployment.outside import computed_time, is_column_name, with_time
from penstock.lang.deployment.yamlfile import Section, Value
from penstock.lang.sql import KnownNames, parse_expression, parse_query, references
from penstock.model.engines import EngineName, JoinWay
from penstock.model.network import Query, unknown_stream
from penstock.model.operators import Input, Map, Operator, PythonOperator, SqlWrite, Switch
from penstock.model.partition_groups import PartitionGroups
from penstock.model.parts import JoinSpread
from penstock.model.retime import Retime
from penstock.model.sources import ConsoleSink


@dataclass(frozen=True)
class Draft:
    """Something made from other streams; ``what`` names it in errors, ``place`` is its key."""

    name: str
    what: str
    place: Place

    @property
    def outputs(self) -> tuple[str, ...]:
        """The streams it gives."""
        return (self.name,)

    @property
    def reads(self) -> frozenset[str]:
        """The streams and tables it reads, as they are written."""
        raise NotImplementedError

    def operators(self, catalog: KnownNames) -> tuple[Operator, ...]:
        """The operators that make it, given what it reads."""
        raise NotImplementedError


@dataclass(frozen=True)
class SqlDraft(Draft):
    """A stream or query written in SQL."""

    sql: str

    @property
    def origin(self) -> str:
        return f"{self.place.origin}, {self.what}"

    @cached_property
    def reads(self) -> frozenset[str]:
        return references(self.sql, self.origin)

    def operators(self, catalog: KnownNames) -> tuple[Operator, ...]:
        return parse_query(self.name, self.sql, catalog, self.origin).operators


@dataclass(frozen=True)
class FromDraft(Draft):
    """A stream made from one other by something that SQL cannot say."""

    source: Value
    settings: Section

    @cached_property
    def reads(self) -> frozenset[str]:
        return frozenset({self.source.text("the name of a stream")})

    def _input(self, catalog: KnownNames) -> Input:
        wanted = self.source.text()
        for name, shape in catalog.shapes.items():
            if name.lower() == wanted.lower():
                return Input(name, shape)
        raise unknown_stream(wanted, catalog.shapes).at(self.source.file.place(self.source.node))


@dataclass(frozen=True)
class PythonDraft(FromDraft):
    """A stream made by a user's function; without a schema its columns stay the same."""

    folder: Path

    def operators(self, catalog: KnownNames) -> tuple[Operator, ...]:
        input = self._input(catalog)
        schema = input.schema
        if "schema" in self.settings:
            schema = read_schema(self.settings["schema"])
        function = self.settings["python"]
        with function.pointing():
            return (PythonOperator(self.name, input, function.text(), schema, self.folder),)


@dataclass(frozen=True)
class SwitchDraft(FromDraft):
    """Streams ``<name>_<case>`` of the rows that fit each case."""

    @cached_property
    def _cases(self) -> Mapping[str, str]:
        cases = self.settings["switch"].entries()
        return {label: case.text("a condition") for label, case in cases.items()}

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(f"{self.name}_{label}" for label in self._cases)

    def operators(self, catalog: KnownNames) -> tuple[Operator, ...]:
        input = self._input(catalog)
        cases = tuple(
            (label, parse_expression(text, input.schema, origin=self._origin(label)))
            for label, text in self._cases.items()
        )
        return (Switch(self.name, input, cases),)

    def _origin(self, label: str) -> str:
        return f"{self.place.origin}, {self.what}, case {label}"


@dataclass(frozen=True)
class TimedDraft(FromDraft):
    """A stream whose rows have an event time of their own, a column or an expression.

    ``made`` makes the rows, under a name of its own; None where they are those of ``source``.
    """

    made: SqlDraft | PythonDraft | None
    event_time: str
    lateness_us: int

    @cached_property
    def reads(self) -> frozenset[str]:
        return super().reads if self.made is None else self.made.reads

    def operators(self, catalog: KnownNames) -> tuple[Operator, ...]:
        made = () if self.made is None else self.made.operators(catalog)
        rows = Input(made[-1].name, made[-1].output) if made else self._input(catalog)
        with self.settings["event_time"].pointing():
            return (*made, *retimed(self.name, rows, self.event_time, self.lateness_us))


def untimed_name(stream: str) -> str:
    """What the rows of a stream are called before they have an event time of their own."""
    return f"{stream}_untimed"


def retimed(name: str, rows: Input, event_time: str, lateness_us: int) -> tuple[Operator, ...]:
    """The operators that give rows another event time, which is a column or an expression."""
    if is_column_name(event_time):
        return (Retime(name, rows, event_time.strip(), lateness_us),)
    column, expression = computed_time(name, rows.schema, event_time)
    computed = Map(f"{name}_computed", rows, with_time(rows.schema, column, expression))
    return (computed, Retime(name, Input(computed.name, computed.output), column, lateness_us))


@dataclass(frozen=True)
class QueryDraft(Draft):
    """A query: how it is made, where its results go, and what is promised about it.

    ``sink`` is None for none, and ``sink_place`` None where nothing was written about it.
    """

    made: SqlDraft | PythonDraft | TimedDraft
    sink: AnySink | None = None
    sink_place: Place | None = None
    max_latency_us: int | None = None
    on: str | None = None
    groups: PartitionGroups | None = None
    engine: EngineName | None = None
    join: JoinWay | None = None
    spread: JoinSpread | None = None

    @property
    def reads(self) -> frozenset[str]:
        return self.made.reads

    def operators(self, catalog: KnownNames) -> tuple[Operator, ...]:
        made = self.made.operators(catalog)
        if isinstance(made[-1], SqlWrite):
            self._check_no_other_sink(made[-1])
        return (*made, *table_write(self.name, Input(self.name, made[-1].output), self.sink))

    def query(self, result: Operator) -> Query:
        """The record of the query whose result the operator ``result`` gives."""
        default = None if isinstance(result, SqlWrite) else ConsoleSink()
        sink = default if self.sink_place is None else self.sink
        if self.groups is not None:
            self._check_groups(self.groups, result)
        return Query(
            self.name,
            self.name,
            None if isinstance(sink, TableSink) else sink,
            self.max_latency_us,
            self.on,
            self.made.sql.strip() if isinstance(self.made, SqlDraft) else "",
            self.groups,
            self.engine,
            self.join,
            self.spread,
        )

    def _check_groups(self, groups: PartitionGroups, result: Operator) -> None:
        try:
            groups.check(result.output.schema)
        except InputError as error:
            raise error.at(self.place) from None

    def _check_no_other_sink(self, made: SqlWrite) -> None:
        if self.sink is not None:
            raise InputError(
                f"{self.what} already goes to table {made.table} by its INSERT INTO",
                hint="Remove to, or the INSERT INTO.",
                place=self.sink_place,
            )


def table_write(name: str, result: Input, sink: AnySink | None) -> tuple[SqlWrite, ...]:
    """The operator that writes a query's results to a table, if that is where they go.

    It is a side branch: who else reads the query does not wait for the database.
    """
    if not isinstance(sink, TableSink):
        return ()
    return (SqlWrite(write_name(name), result, sink.database, sink.table),)


def write_name(query: str) -> str:
    """The name of the operator that writes the query's results to a table."""
    return f"{query}_write"


def in_reading_order(drafts: Iterable[Draft], known: Iterable[str]) -> list[Draft]:
    """The drafts so that each comes after all it reads.

    Those that read something unknown come last, when everything that exists can be listed.
    """
    behind = {output.lower(): draft.name for draft in drafts for output in draft.outputs}
    by_name = {draft.name: draft for draft in drafts}
    outside = {name.lower() for name in known}
    unknown: set[str] = set()
    order = _sorted(by_name, behind)
    for draft in order:
        for read in map(str.lower, draft.reads):
            if behind.get(read) in unknown or (read not in behind and read not in outside):
                unknown.add(draft.name)
    return sorted(order, key=lambda draft: draft.name in unknown)


def _sorted(by_name: Mapping[str, Draft], behind: Mapping[str, str]) -> list[Draft]:
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for name, draft in by_name.items():
        sorter.add(name, *(behind[read] for read in _folded(draft.reads) if read in behind))
    try:
        return [by_name[name] for name in sorter.static_order()]
    except CycleError as error:
        circle: list[str] = error.args[1]
        start = min(range(len(circle) - 1), key=lambda at: list(by_name).index(circle[at]))
        turned = [*circle[start:-1], *circle[: start + 1]]
        raise InputError(
            f"these read each other in a circle: {' -> '.join(turned)}",
            hint="Break it by reading from a stream instead.",
            place=by_name[turned[0]].place,
        ) from None


def _folded(names: Iterable[str]) -> list[str]:
    return sorted(name.lower() for name in names)
