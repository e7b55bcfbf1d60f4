"""Sources, sinks and operators in a few words each."""

from __future__ import annotations

import re

from penstock.errors import listed
from penstock.model.devices import DeviceSection
from penstock.model.durations import duration_text
from penstock.model.network import Network, Query
from penstock.model.operators import Operator, SqlWrite
from penstock.model.parts import JoinSpread
from penstock.model.schema import Shape
from penstock.model.sources import (
    ConsoleSink,
    DirectorySource,
    FileSink,
    GeneratorSource,
    KafkaSink,
    KafkaSource,
    MemorySink,
    ReplaySource,
    RunningSource,
    Sink,
    Source,
    Stream,
)

_JOINED = {"partitioned": "by sorted runs", "native": "by Spark's own join"}


def source_words(source: Source) -> str:
    """Where rows come from.

    >>> source_words(GeneratorSource("meters", {"homes": 300, "every": "30min"}))
    'generator meters: homes 300, every 30min'
    """
    match source:
        case GeneratorSource(name, options):
            given = ", ".join(f"{key} {value}" for key, value in options.items())
            return f"generator {name}: {given}" if given else f"generator {name}"
        case DirectorySource(path, format):
            end = ", which end" if source.finished else ""
            return f"{format} files {source.pattern} arriving in {path}{end}"
        case ReplaySource(path, format):
            return f"replay of the {format} file {path}, {_pace(source.speedup)}"
        case KafkaSource(brokers, topic):
            end = ", up to its present end" if source.finished else ""
            return f"Kafka topic {topic} at {brokers}{end}"
        case RunningSource():
            return "the running system"


def _pace(speedup: float | None) -> str:
    return "all at once" if speedup is None else f"{speedup:g} times as fast as recorded"


def sink_words(sink: Sink | None) -> str:
    """Where results go.

    >>> sink_words(ConsoleSink()), sink_words(None)
    ('to the console', 'read by others only')
    """
    match sink:
        case None:
            return "read by others only"
        case ConsoleSink():
            return "to the console"
        case MemorySink():
            return "kept in memory"
        case FileSink(path, format):
            return f"to {format} files in {path}"
        case KafkaSink(brokers, topic):
            return f"to Kafka topic {topic} at {brokers}"


def stream_time_words(stream: Stream) -> str:
    """What is known about the time of a stream from outside."""
    parts = [shape_time_words(stream.shape)]
    # Of a stream that runs already others know how late its rows may be.
    if stream.lateness_us is not None and not isinstance(stream.source, RunningSource):
        parts.append(f"rows up to {duration_text(stream.lateness_us)} late")
    if stream.idle_timeout_us is not None:
        parts.append(f"idle after {duration_text(stream.idle_timeout_us)}")
    if stream.ahead_us is not None:
        parts.append(f"at most {duration_text(stream.ahead_us)} ahead")
    if stream.on is not None:
        parts.append(f"comes in at {stream.on}")
    return ", ".join(parts)


def shape_time_words(shape: Shape) -> str:
    """The event time of a stream and the columns that follow it.

    >>> from penstock.model.schema import Schema
    >>> shape_time_words(Shape(Schema.parse("kwh double")))
    'no event time'
    """
    if not shape.times:
        return "no event time"
    head = f"event time {shape.event_time}"
    for time in shape.times[1:]:
        head += f", {time.column} up to {duration_text(time.behind_us)} behind"
    return head if shape.watermarked else f"{head}, without a watermark"


def manner_words(operator: Operator) -> str:
    """Whether an operator keeps state, may move, and how long it holds results back."""
    parts = ["keeps state" if operator.stateful else "no state"]
    parts.append("movable" if operator.movable else "stays on its node")
    if operator.opaque:
        parts.append("opaque")
    if operator.delay_us:
        parts.append(f"delay {duration_text(operator.delay_us)}")
    return ", ".join(parts)


def details_words(operator: Operator) -> str:
    """What an operator does, without the quotes that names do not need."""
    return re.sub(r"`(\w+)`", r"\1", operator.details)


def query_words(query: Query, network: Network, devices: DeviceSection | None = None) -> str:
    """Where a query's results go and what is promised about them; ``devices`` may hear them."""
    tables = [
        f"to table {sql_write.table} of {sql_write.database.shown}"
        for sql_write in _writes(query, network)
    ]
    heard = devices.query(query.name) if devices is not None else None
    where = sink_words(query.sink) if heard is None else f"to devices {listed(heard.devices)}"
    parts = tables if tables and query.sink is None else [where, *tables]
    if query.stream != query.name:
        parts.append(f"the rows of {query.stream}")
    if query.max_latency_us is not None:
        parts.append(f"within {duration_text(query.max_latency_us)}")
    if query.on is not None:
        parts.append(f"on node {query.on}")
    if query.groups is not None:
        parts.append(f"in {query.groups.count} groups by {listed(query.groups.keys)}")
    if query.engine is not None:
        parts.append(f"by the {query.engine} engine")
    if query.join is not None:
        parts.append(f"streams joined {_JOINED[query.join]}{_spread_words(query.spread)}")
    return ", ".join(parts)


def _spread_words(spread: JoinSpread | None) -> str:
    if spread is None:
        return ""
    parts = f"up to {spread.most_parts}" if spread.parts is None else f"{spread.parts}"
    return f" in {parts} parts of {spread.groups} groups"


def _writes(query: Query, network: Network) -> list[SqlWrite]:
    """The operators that write a query's results to a database, itself or beside it."""
    near = [network.producers.get(query.stream), *network.readers[query.stream]]
    return [operator for operator in near if isinstance(operator, SqlWrite)]
