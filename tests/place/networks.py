"""Random networks of every kind of operator."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

from model.samples import DATABASE, HOMES, MIN, S, stream_of
from penstock.model.aggregates import AggregateCall
from penstock.model.expressions import Call, Column, Expression
from penstock.model.network import Network, Query
from penstock.model.operators import (
    Aggregate,
    Filter,
    Input,
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
from penstock.model.sources import MemorySink, Table
from penstock.model.types import DataType
from penstock.model.windows import TimeBound, Window

STREAMS = tuple(stream_of(name) for name in ("north", "south"))
AREAS = Table("areas", HOMES.schema, database=DATABASE)


@dataclass
class _Builder:
    draw: st.DrawFn
    inputs: list[Input] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)

    def add(self, operator: Operator) -> Operator:
        self.operators.append(operator)
        self.inputs += [Input(name, shape) for name, shape in operator.outputs.items()]
        return operator

    def name(self) -> str:
        return f"o{len(self.operators)}"

    def pick(self) -> Input:
        return self.draw(st.sampled_from(self.inputs))

    def column(self, input: Input, type: DataType | None = None) -> str | None:
        names = [one.name for one in input.schema if type in (None, one.type)]
        return self.draw(st.sampled_from(names)) if names else None

    def condition(self, input: Input) -> Expression:
        column = Column(str(self.column(input)))
        # Names are found in any case.
        written = self.draw(st.sampled_from([column, Column(column.name.upper())]))
        return Call("not", (Call("is_null", (written,)),))

    def filter(self, input: Input) -> None:
        self.add(Filter(self.name(), input, self.condition(input)))

    def switch(self, input: Input) -> None:
        cases = tuple((label, self.condition(input)) for label in ("a", "b"))
        self.add(Switch(self.name(), input, cases))

    def map(self, input: Input) -> None:
        kept = self.draw(st.lists(st.sampled_from(input.schema.names), min_size=1, unique=True))
        self.add(Map(self.name(), input, tuple((name, Column(name)) for name in kept)))

    def rename(self, input: Input) -> Input:
        """The input with columns that no other stream has."""
        name = self.name()
        columns = tuple((f"{name}_{at}", Column(one)) for at, one in enumerate(input.schema.names))
        renamed = self.add(Map(name, input, columns))
        return Input(renamed.name, renamed.output)

    def union(self, input: Input) -> None:
        alike = [stream for stream in self.inputs if stream.schema == input.schema]
        other = self.draw(st.sampled_from(alike))
        self.add(Union(self.name(), (input, other)))

    def python(self, input: Input) -> None:
        self.add(PythonOperator(self.name(), input, "cleaning:drop_spikes", input.schema))

    def write(self, input: Input) -> None:
        self.add(SqlWrite(self.name(), input, DATABASE, "results"))

    def look_up(self, input: Input) -> None:
        home = self.column(input, DataType.STRING)
        if home is None:
            return
        kind, table = self.draw(st.sampled_from([(TableJoin, HOMES), (SqlRead, AREAS)]))
        columns = ((f"area_{self.name()}", "area"),)
        self.add(kind(self.name(), input, table, ((home, "home"),), columns))

    def aggregate(self, input: Input) -> None:
        if input.shape.event_time is None:
            return
        column = str(self.column(input))
        results = ((f"n_{self.name()}", AggregateCall("count", (Column(column),))),)
        self.add(Aggregate(self.name(), input, Window.of(MIN), (), results))

    def join(self, input: Input) -> None:
        timed = [stream for stream in self.inputs if stream.shape.event_time is not None]
        if input not in timed:
            return
        left = self.rename(input)
        right = self.rename(self.draw(st.sampled_from(timed)))
        kind = self.draw(st.sampled_from(["inner", "left"]))
        equal = self.draw(st.sampled_from([(), (left.schema.names[0],)]))
        condition = self.draw(st.sampled_from([None, self.condition(left), self.condition(right)]))
        self.add(
            WindowJoin(
                self.name(),
                left,
                right,
                tuple((one, str(right.shape.event_time)) for one in equal if _is_time(left, one)),
                TimeBound(-S, S),
                condition,
                kind,  # type: ignore[arg-type]
            )
        )


def _is_time(input: Input, column: str) -> bool:
    return input.schema[column].type is DataType.TIMESTAMP


STEPS = ("filter", "switch", "map", "union", "python", "write", "look_up", "aggregate", "join")


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """A network of up to a dozen steps, with queries that somebody or nobody wants."""
    builder = _Builder(draw, [Input(stream.name, stream.shape) for stream in STREAMS])
    for step in draw(st.lists(st.sampled_from(STEPS), max_size=10)):
        getattr(builder, step)(builder.pick())
    results = draw(st.lists(st.sampled_from(builder.inputs), max_size=4))
    sinks = [draw(st.sampled_from([MemorySink(), None])) for _ in results]
    queries = tuple(
        Query(f"q{at}", result.stream, sink)
        for at, (result, sink) in enumerate(zip(results, sinks, strict=True))
    )
    return Network(STREAMS, tuple(builder.operators), queries)


def real_stream(network: Network, stream: str) -> str:
    """The stream whose rows these are: database writes pass rows on."""
    producer = network.producers.get(stream)
    while isinstance(producer, SqlWrite):
        stream = producer.input.stream
        producer = network.producers.get(stream)
    return stream


def wanted_streams(network: Network) -> set[str]:
    """What somebody wants: results that go somewhere, and what is written to databases."""
    sunk = {query.stream for query in network.queries if query.sink is not None}
    written = {
        operator.input.stream for operator in network.operators if isinstance(operator, SqlWrite)
    }
    return {real_stream(network, one) for one in sunk | written}
