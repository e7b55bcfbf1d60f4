"""A few streams and operators that many tests build on."""

from __future__ import annotations

from pathlib import Path

from penstock.model.aggregates import AggregateCall
from penstock.model.expressions import Call, Column, Expression, Literal
from penstock.model.operators import Aggregate, Filter, Input, Operator
from penstock.model.schema import Schema, Shape
from penstock.model.sources import Database, DirectorySource, Stream, Table
from penstock.model.windows import Window

MS = 1_000
S = 1_000_000
MIN = 60 * S

READINGS = "ts timestamp, home string, kwh double, meter int"
DATABASE = Database("sqlite:///ami.db")
HOMES = Table("homes", Schema.parse("home string, area string"), path=Path("homes.csv"))


def shape_of(columns: str, event_time: str | None = None, watermarked: bool = True) -> Shape:
    schema = Schema.parse(columns)
    return Shape.timed(schema, event_time, watermarked) if event_time else Shape(schema)


def stream_of(name: str, columns: str = READINGS, event_time: str | None = "ts") -> Stream:
    lateness_us = None if event_time is None else 0
    source = DirectorySource(Path("in"), "csv")
    return Stream(name, source, shape_of(columns, event_time), lateness_us)


def input_of(stream: Stream | Operator) -> Input:
    if isinstance(stream, Stream):
        return Input(stream.name, stream.shape)
    return Input(stream.name, stream.output)


def read(name: str, columns: str = READINGS, event_time: str | None = "ts") -> Input:
    return input_of(stream_of(name, columns, event_time))


def more(column: str, than: float | int) -> Expression:
    return Call(">", (Column(column), Literal(than)))


def filtered(name: str, input: Input, predicate: Expression | None = None) -> Filter:
    return Filter(name, input, predicate or more("kwh", 1.0))


def counted(name: str, input: Input, window: Window | None = None) -> Aggregate:
    aggregates = (("n", AggregateCall("count")),)
    return Aggregate(name, input, window or Window.of(MIN), (), aggregates)
