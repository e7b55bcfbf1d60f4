"""Flows: streams under construction. Building one executes nothing and checks everything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from penstock.errors import InputError
from penstock.lang.builder.aggregations import Aggregation, aggregate_call
from penstock.lang.builder.joins import (
    Columns,
    Duration,
    Pairs,
    added_columns,
    check_kind,
    equal_columns,
    joining,
    names_apart,
    time_bound,
)
from penstock.lang.builder.steps import Step
from penstock.lang.deployment.ends import AnySink
from penstock.lang.deployment.locations import complete_database
from penstock.lang.deployment.outside import computed_time, is_column_name, with_time
from penstock.lang.notebook import html_code, html_heading, html_table
from penstock.lang.sql import parse_expression
from penstock.model.durations import duration_us
from penstock.model.engines import EngineName, JoinWay, checked_engine
from penstock.model.expressions import Column, Expression
from penstock.model.network import Network
from penstock.model.operators import (
    Aggregate,
    Filter,
    Input,
    JoinKind,
    Map,
    Operator,
    PythonOperator,
    SqlRead,
    SqlWrite,
    Switch,
    TableJoin,
    Union,
    WindowJoin,
)
from penstock.model.partition_groups import PartitionGroups
from penstock.model.parts import JoinSpread
from penstock.model.retime import Retime
from penstock.model.schema import Schema, Shape, checked_name
from penstock.model.sources import ConsoleSink, Stream, Table
from penstock.model.windows import AnyWindow, SessionWindow, TimeBound, Window


@dataclass(frozen=True)
class Outlet:
    """Where a flow's rows go when it is a query, and what is promised about them."""

    sink: AnySink | None = field(default_factory=ConsoleSink)
    max_latency_us: int | None = None
    on: str | None = None
    groups: PartitionGroups | None = None
    engine: EngineName | None = None
    join: JoinWay | None = None
    spread: JoinSpread | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Flow:
    """A stream that is being described; every method gives another one and leaves this as it is.

    Conditions and expressions are SQL over the columns of the flow. They are checked at once:
    whatever is wrong is said where it was written.

    >>> import penstock as ps
    >>> readings = ps.stream("readings", source=ps.generate.meters(days=1), lateness="2 min")
    >>> peaks = readings.filter("kwh > 3").select("home", watts="2000 * kwh").named("peaks")
    >>> print(peaks.schema)
    home string, watts double
    """

    made_by: Stream | Step
    stream: str
    shape: Shape
    outlet: Outlet = Outlet()

    @property
    def schema(self) -> Schema:
        """The columns."""
        return self.shape.schema

    @property
    def event_time(self) -> str | None:
        """The column that says when a row happened, if there is one."""
        return self.shape.event_time

    @property
    def name(self) -> str | None:
        """The name it was given, or that of the stream from outside; None before that."""
        return self.stream if self.made_by.name else None

    def filter(self, condition: str) -> Flow:
        """The rows for which ``condition`` is true."""
        predicate = self._expression(condition, "filter")
        return _flow(Filter(self._label("filter"), self._input, predicate), self)

    def select(self, /, *columns: str, **computed: str) -> Flow:
        """The named columns, then computed ones under new names."""
        chosen = _chosen(columns, self.schema)
        made = [(name, self._expression(text, name)) for name, text in computed.items()]
        return self._map([*chosen, *made])

    def with_columns(self, /, **computed: str) -> Flow:
        """All columns, some computed anew, and computed ones after them."""
        made = {name: self._expression(text, name) for name, text in computed.items()}
        kept = {name: made.pop(name, Column(name)) for name in self.schema.names}
        return self._map([*kept.items(), *made.items()])

    def union(self, /, *others: Flow) -> Flow:
        """The rows of this and the others; columns go by position."""
        inputs, reads = inputs_of(self, *others)
        return flow_of(Step((Union(self._label("union"), inputs),), reads, self._base))

    def apply(self, function: str, schema: str | Schema | None = None) -> Flow:
        """The rows ``module:function`` makes; without a schema the columns stay the same."""
        if not isinstance(function, str):
            raise _no_function_name(function)
        columns = Schema.parse(schema) if isinstance(schema, str) else schema or self.schema
        name = self._label("python")
        return _flow(PythonOperator(name, self._input, function, columns), self)

    def timed(self, event_time: str, *, lateness: Duration) -> Flow:
        """The rows with another event time, a column or an expression, and how late they may be.

        Rows that come later by it are set aside, as where a stream comes in from outside.
        """
        if not is_column_name(event_time):
            name, expression = computed_time(self.stream, self.schema, event_time)
            columns = with_time(self.schema, name, expression)
            return self._map(list(columns)).timed(name, lateness=lateness)
        rows, late_us = self._input, duration_us(lateness)
        return _flow(Retime(self._label("retime"), rows, event_time.strip(), late_us), self)

    def switch(self, name: str | None = None, /, **cases: str) -> Mapping[str, Flow]:
        """Flows by case, each row in that of the first condition that is true.

        With a ``name``, the streams are called ``<name>_<case>``.
        """
        conditions = tuple((case, self._expression(text, case)) for case, text in cases.items())
        operator = Switch(name or self._label("switch"), self._input, conditions)
        step = Step((operator,), {self.stream: self}, self._base, name)
        return MappingProxyType(
            {case: Flow(step, f"{operator.name}_{case}", operator.output) for case in cases}
        )

    def window(self, size: Duration, *, slide: Duration | None = None) -> Windowed:
        """Windows of a size, a new one after every slide; without a slide they do not overlap."""
        slide_us = None if slide is None else duration_us(slide)
        return Windowed(self, Window.of(duration_us(size), slide_us))

    def session(self, gap: Duration) -> Windowed:
        """Windows that end when a group is silent for ``gap``."""
        return Windowed(self, SessionWindow(duration_us(gap)))

    def join(
        self,
        other: Flow,
        on: Columns = (),
        *,
        within: Duration | None = None,
        before: Duration | None = None,
        after: Duration | None = None,
        where: str | None = None,
        how: JoinKind = "inner",
        prefix: str = "right_",
    ) -> Flow:
        """Pairs of rows with equal columns that happened close to each other.

        The other's row may lie at most ``before`` before and ``after`` after this one's, 0 where
        only the other is given; ``before="-5 min"`` asks for at least 5 minutes after. ``within``
        sets both. ``on`` names columns, or maps ours to theirs. Their columns that have the name
        of one of ours get the ``prefix``, or are left out if both are equal anyway.
        """
        bound = time_bound(within, before, after)
        check_kind(how)
        equal = equal_columns(on, self.schema, other.schema)
        new = names_apart(other.schema, self.schema, prefix)
        if any(name != given for name, given in new.items()):
            other = other._map((given, Column(name)) for name, given in new.items())
        pairs = tuple((ours, new[theirs]) for ours, theirs in equal)
        joined = self._joined(other, pairs, bound, where, how)
        doubled = {new[theirs] for ours, theirs in equal if ours == theirs}
        kept = [name for name in joined.schema.names if name not in doubled]
        return joined.select(*kept) if doubled else joined

    def join_table(
        self,
        table: Table,
        on: Columns,
        *,
        columns: Columns | None = None,
        how: JoinKind = "inner",
        prefix: str = "right_",
    ) -> Flow:
        """Rows with columns of the table's rows added where the columns ``on`` are equal.

        ``columns`` names the columns to add, or maps new names to them; without it all are added
        but those compared. Those that have the name of one of ours get the ``prefix``.
        """
        check_kind(how)
        equal = equal_columns(on, self.schema, table.schema)
        added = added_columns(columns, equal, self.schema, table.schema, prefix)
        make = SqlRead if table.database else TableJoin
        name = self._label(make.kind)
        return _flow(make(name, self._input, table, equal, added, how), self)

    def write(self, table: str, database: str) -> Flow:
        """The same rows, each passed on once it is in a database table; a query ends with that.

        To have results written beside the flow, without waiting, use ``.to(ps.sinks.table(…))``.
        """
        place = complete_database(database, Path.cwd())
        return _flow(SqlWrite(self._label("write"), self._input, place, table), self)

    def named(self, name: str) -> Flow:
        """The same rows under a name that queries and files can use."""
        checked_name(name, "query")
        if isinstance(self.made_by, Stream) or self.made_by.label != self.stream:
            return self.select(*self.schema.names).named(name)
        return replace(self, made_by=self.made_by.named(name), stream=name)

    def to(
        self,
        sink: AnySink | None,
        *,
        max_latency: Duration | None = None,
        on: str | None = None,
        engine: str | None = None,
        join: str | Mapping[str, str | int] | None = None,
    ) -> Flow:
        """The same rows with a place to go when this is a query; see ``ps.sinks``.

        ``engine`` is light or native, ``join`` how streams behind it are joined: partitioned or
        native, or shared out to nodes: ``{"spread": 3, "groups": 60}``, where spread may be auto.
        Without them Penstock chooses.
        """
        limit_us = None if max_latency is None else duration_us(max_latency)
        chosen = None if engine is None else checked_engine(engine)
        way, spread = joining(join)
        outlet = Outlet(sink, limit_us, on, self.outlet.groups, chosen, way, spread)
        return replace(self, outlet=outlet)

    def in_groups(self, count: int, *keys: str) -> Flow:
        """The same rows, kept in groups by key when this is a query, for readers to share."""
        groups = PartitionGroups(keys, count)
        groups.check(self.schema)
        return replace(self, outlet=replace(self.outlet, groups=groups))

    def network(self) -> Network:
        """The streams and operators behind this, and this as their only query."""
        from penstock.lang.builder.assembly import assemble

        return assemble([self if self.name else self.named("result")])

    def explain(self) -> str:
        """The operators behind this, as text."""
        from penstock.lang.explain import explain_text

        return explain_text(self.network())

    def sql(self) -> str:
        """A query that gives these rows."""
        from penstock.lang.sql import query_sql

        network = self.network()
        return query_sql(network, network.queries[0].stream)

    def __str__(self) -> str:
        return f"{self.stream}: {self.shape}"

    def __repr__(self) -> str:
        return f"<Flow {self}>"

    def _repr_html_(self) -> str:
        """Columns and SQL, for notebooks."""
        columns = ((field.name, field.type) for field in self.schema)
        told = f"event time {self.event_time}" if self.event_time else "no event time"
        is_outside = isinstance(self.made_by, Stream)
        return "".join(
            (
                html_heading(self.stream, told),
                html_table(("column", "type"), columns),
                "" if is_outside else html_code(self.sql()),
            )
        )

    def _label(self, kind: str) -> str:
        """A name for the time being; of the nearest flow with a name, for people to recognise."""
        return f"{self._base}_{kind}"

    @property
    def _base(self) -> str:
        made = self.made_by
        return made.base if isinstance(made, Step) and made.name is None else self.stream

    @property
    def _input(self) -> Input:
        return Input(self.stream, self.shape)

    def _expression(self, text: str, what: str) -> Expression:
        if not isinstance(text, str):
            raise _no_expression(text, what)
        return parse_expression(text, self.schema, origin=f"{what} of {self.stream}")

    def _joined(
        self, other: Flow, equal: Pairs, bound: TimeBound, where: str | None, how: JoinKind
    ) -> Flow:
        (left, right), reads = inputs_of(self, other)
        name = self._label("join")
        join = WindowJoin(name, left, right, equal, bound, join=how)
        if where is not None:
            condition = parse_expression(where, join.output.schema, origin=f"where of {name}")
            join = replace(join, condition=condition)
        return flow_of(Step((join,), reads, self._base))

    def _map(self, columns: Iterable[tuple[str, Expression]]) -> Flow:
        return _flow(Map(self._label("map"), self._input, tuple(columns)), self)


@dataclass(frozen=True, eq=False, repr=False)
class Windowed:
    """Rows in windows, and the keys they are grouped by."""

    flow: Flow
    window: AnyWindow
    keys: tuple[tuple[str, Expression], ...] = ()

    def __repr__(self) -> str:
        keys = ", ".join(name for name, _ in self.keys)
        return f"<Windowed {self.flow.stream}, {self.window}{f', by {keys}' if keys else ''}>"

    def group_by(self, /, *columns: str, **computed: str) -> Windowed:
        """Groups by columns, then by computed values under new names."""
        chosen = _chosen(columns, self.flow.schema)
        made = [(name, self.flow._expression(text, name)) for name, text in computed.items()]
        return replace(self, keys=(*self.keys, *chosen, *made))

    def agg(self, /, **aggregates: Aggregation | str) -> Flow:
        """One row for every group and window: keys, window_start, window_end and aggregates."""
        flow = self.flow
        calls = tuple(
            (name, aggregate_call(aggregate, flow.schema)) for name, aggregate in aggregates.items()
        )
        name = flow._label("aggregate")
        return _flow(Aggregate(name, flow._input, self.window, self.keys, calls), flow)


def _chosen(columns: Iterable[str], schema: Schema) -> list[tuple[str, Expression]]:
    for column in columns:
        if not isinstance(column, str):
            raise _no_column_name(column)
    return [(schema[column].name, Column(schema[column].name)) for column in columns]


def _no_column_name(given: object) -> InputError:
    return InputError(
        f"{_shown(given)} is not the name of a column",
        hint='Name columns as in .select("home"), and compute others as in x="2 * kwh".',
    )


def _no_expression(given: object, what: str) -> InputError:
    return InputError(
        f"{what} is given {_shown(given)}, and takes SQL as text",
        hint='Write for example .filter("kwh > 3"). Python runs on batches of rows, by '
        '.apply("module:function").',
    )


def _no_function_name(given: object) -> InputError:
    module, name = getattr(given, "__module__", ""), getattr(given, "__qualname__", "")
    is_there = callable(given) and name.isidentifier() and module not in ("", "__main__")
    example = f"{module}:{name}" if is_there else "module:function"
    return InputError(
        f"apply is given {_shown(given)}, and takes the name of a function",
        hint=f'Nodes import it by its name: write .apply("{example}"), with the function in a '
        "file that they can import.",
    )


def _shown(given: object) -> str:
    """What somebody gave, in a few characters."""
    if callable(given):
        name = getattr(given, "__name__", type(given).__name__)
        return "a lambda" if name == "<lambda>" else f"the function {name}"
    text = repr(given)
    return text if len(text) <= 40 else f"{text[:39]}…"


def _flow(operator: Operator, parent: Flow) -> Flow:
    return flow_of(Step((operator,), {parent.stream: parent}, parent._base))


def flow_of(step: Step) -> Flow:
    """The flow of what a step's last operator gives."""
    return Flow(step, step.label, step.operators[-1].output)


def inputs_of(*flows: Flow) -> tuple[tuple[Input, ...], dict[str, Flow]]:
    """Inputs that read ``flows``, and the flows by the names those inputs use."""
    reads: dict[str, Flow] = {}
    inputs = []
    for flow in flows:
        name = flow.stream
        while name in reads and not _same(reads[name], flow):
            name += "_"
        reads[name] = flow
        inputs.append(Input(name, flow.shape))
    return tuple(inputs), reads


def _same(one: Flow, other: Flow) -> bool:
    return one.made_by is other.made_by and one.stream == other.stream


def check_flow(value: object) -> Flow:
    """``value`` if it is a flow; the error says what to give instead."""
    if isinstance(value, Flow):
        return value
    raise InputError(
        f"{value!r} is not a flow", hint="Give what ps.stream, ps.sql or one of their methods give."
    )
