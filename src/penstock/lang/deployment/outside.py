"""Streams from outside, described by what people write about them."""

from __future__ import annotations

from penstock.errors import InputError
from penstock.model.schema import Field, Schema, Shape
from penstock.model.sources import GeneratorSource, Source, Stream


def outside_stream(
    name: str,
    source: Source,
    schema: Schema | None = None,
    event_time: str | None = None,
    lateness_us: int | None = None,
    idle_timeout_us: int | None = None,
) -> Stream:
    """The stream; a generator says itself which columns and which event time it gives.

    >>> readings = outside_stream("readings", GeneratorSource("meters", {"days": 1}))
    >>> print(readings.shape)
    ts timestamp, home string, district string, kwh double; event time ts (no lateness given)
    """
    if isinstance(source, GeneratorSource):
        given, its_time = _generated(source)
        schema = _same_columns(name, source, schema, given)
        event_time = event_time or its_time
    if schema is None:
        raise InputError(
            f"stream {name} has no schema", hint="Name its columns: schema: ts timestamp, …"
        )
    if event_time is None:
        shape = Shape(schema)
    else:
        shape = Shape.timed(schema, event_time, watermarked=lateness_us is not None)
    return Stream(name, source, shape, lateness_us, idle_timeout_us)


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
