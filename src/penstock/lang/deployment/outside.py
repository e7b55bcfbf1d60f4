"""Streams from outside, described by what people write about them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from penstock.errors import InputError
from penstock.lang.sql import expression_sql, parse_expression
from penstock.model.expressions import Column, Expression, type_of
from penstock.model.schema import NAME_PATTERN, Field, Schema, Shape
from penstock.model.sources import (
    DirectorySource,
    GeneratorSource,
    KafkaSource,
    Parsing,
    ReplaySource,
    RunningSource,
    Source,
    Stream,
)
from penstock.model.types import DataType

_NAMED = re.compile(r"(?P<expression>.*\S)\s+AS\s+(?P<name>\w+)\s*", re.IGNORECASE | re.DOTALL)
COMPUTED = "event_time"
"""What a computed event time is called if nothing else is said."""


def outside_stream(
    name: str,
    source: Source,
    schema: Schema | None = None,
    event_time: str | None = None,
    lateness_us: int | None = None,
    idle_timeout_us: int | None = None,
    ahead_us: int | None = None,
    columns: Mapping[str, str] | None = None,
    time_format: str = "",
    on: str | None = None,
) -> Stream:
    """The stream; a generator says itself which columns and which event time it gives.

    ``event_time`` is a column or an expression over the columns, which becomes a column of its own.
    ``columns`` says which column is meant by a name in the source, ``on`` at which node the rows
    come in.

    >>> readings = outside_stream("readings", GeneratorSource("meters", {"days": 1}))
    >>> print(readings.shape)
    ts timestamp, home string, district string, kwh double; event time ts (no lateness given)
    >>> clicks = outside_stream(
    ...     "clicks",
    ...     KafkaSource("host:9092", "clicks"),
    ...     Schema.parse("ms bigint, page string"),
    ...     "timestamp_millis(ms) AS at",
    ... )
    >>> print(clicks.shape)
    ms bigint, page string, at timestamp; event time at (no lateness given)
    """
    if isinstance(source, GeneratorSource):
        given, its_time = _generated(source)
        schema = _same_columns(name, source, schema, given)
        event_time = event_time or its_time
    schema = schema or _lines(name, source)
    computed = _computed(name, schema, event_time)
    names = {column: written for written, column in (columns or {}).items()}
    _check_source(name, source, schema, names, time_format, computed)
    parsing = Parsing(tuple(names.items()), time_format, computed)
    if computed is not None:
        event_time = computed[0]
        schema = Schema((*schema.fields, Field(event_time, DataType.TIMESTAMP)))
    if event_time is None:
        shape = Shape(schema)
    else:
        shape = Shape.timed(schema, event_time, watermarked=lateness_us is not None)
    return Stream(name, source, shape, lateness_us, idle_timeout_us, ahead_us, parsing, on)


def event_time_text(stream: Stream) -> str:
    """The event time of a stream as it is written: a column, or an expression and its name."""
    if stream.parsing.event_time is None:
        return stream.shape.event_time or ""
    name, expression = stream.parsing.event_time
    return f"{expression_sql(expression)} AS {name}"


def _lines(name: str, source: Source) -> Schema:
    if isinstance(source, DirectorySource | ReplaySource) and source.format == "text":
        return Schema.parse("line string")
    raise InputError(
        f"stream {name} has no schema", hint="Name its columns: schema: ts timestamp, …"
    )


def with_time(
    schema: Schema, name: str, expression: Expression
) -> tuple[tuple[str, Expression], ...]:
    """All columns, with a computed event time after them."""
    kept = [column for column in schema.names if column.lower() != name.lower()]
    return (*((column, Column(column)) for column in kept), (name, expression))


def is_column_name(written: str) -> bool:
    """Whether an event time is a column rather than an expression."""
    return NAME_PATTERN.fullmatch(written.strip()) is not None


def _computed(stream: str, schema: Schema, event_time: str | None) -> tuple[str, Expression] | None:
    """The name of an event time that is an expression, and what it is computed from."""
    if event_time is None or is_column_name(event_time):
        return None
    from penstock.feeds.event_times import check_event_time

    name, expression = computed_time(stream, schema, event_time)
    check_event_time(expression)
    return name, expression


def computed_time(stream: str, schema: Schema, written: str) -> tuple[str, Expression]:
    """The name of a computed event time, and the expression; raises if that is no time.

    >>> computed_time("clicks", Schema.parse("ms bigint"), "timestamp_millis(ms) AS at")[0]
    'at'
    """
    named = _NAMED.fullmatch(written)
    text, name = (named["expression"], named["name"]) if named else (written, COMPUTED)
    expression = parse_expression(text, schema, f"event_time of stream {stream}")
    given = type_of(expression, schema)
    if given is not DataType.TIMESTAMP:
        raise InputError(
            f"the event time {text} is a {given}, not a timestamp",
            hint="Make it one: to_timestamp(text, 'pattern'), timestamp_millis(number), …",
        )
    return name, expression


def _check_source(
    name: str,
    source: Source,
    schema: Schema,
    names: Mapping[str, str],
    time_format: str,
    computed: tuple[str, Expression] | None,
) -> None:
    if isinstance(source, GeneratorSource) and (names or time_format or computed):
        raise InputError(
            f"stream {name} is made by a generator, which has its own columns and times",
            hint="Rename and compute columns in a query.",
        )
    if isinstance(source, KafkaSource | GeneratorSource | RunningSource):
        return
    if source.format == "text" and [field.type for field in schema] != [DataType.STRING]:
        raise InputError(
            f"stream {name} has text files and the columns {schema}",
            hint="Lines are one string: schema: line string. Take them apart in a query.",
        )
    if names and source.format == "csv" and not source.layout.header:
        raise InputError(
            f"stream {name} has columns and files without a header",
            hint="Without names in the file, those of the schema are taken in their order.",
        )


def _same_columns(
    name: str, source: GeneratorSource, written: Schema | None, given: Schema
) -> Schema:
    if written is not None and written != given:
        raise InputError(
            f"stream {name} is declared as {written}, but generator {source.generator} "
            f"gives {given}",
            hint="Leave the schema out, or rename columns in a query.",
        )
    return given


def _generated(source: GeneratorSource) -> tuple[Schema, str]:
    # Imported here because feeds bring Arrow along, and most of this package works without it.
    from penstock.feeds.arrow import ARROW_TYPES
    from penstock.feeds.generators import generator

    feed = generator(source.generator, source.options)
    types = {arrow: type for type, arrow in ARROW_TYPES.items()}
    fields = (Field(field.name, types[field.type]) for field in feed.schema)
    return Schema(tuple(fields)), feed.event_time
