"""Columns of a stream, and the shape a stream has: its columns, its event time, its disorder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from penstock.errors import InputError, listed, suggestion
from penstock.model.types import DataType, data_type

NAME_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
MADE_UP = ("operator", "fragment", "reader")
"""What gets its name from the name of something else, with something added."""
_COMMA = re.compile(r",(?![^(]*\))(?=(?:[^`]*`[^`]*`)*[^`]*$)")
_AS_NUMBER = "The time between two is a number as unix_micros(one) - unix_micros(other)."
_LONGEST = 100
_LONGEST_MADE_UP = 200


def checked_name(name: str, what: str) -> str:
    """``name`` if it can name a ``what``: letters, digits and underscores, no leading digit.

    Names become parts of paths and SQL, so nothing else is let in. Two leading underscores are
    kept for columns that Penstock adds itself. Folders and files are called after them, with
    something added, and file systems take 255 bytes.
    """
    if not NAME_PATTERN.fullmatch(name):
        raise InputError(
            f"{name!r} cannot name a {what}",
            hint="Use letters, digits and underscores, starting with a letter.",
        )
    if name.startswith("__"):
        raise InputError(
            f"{name!r} cannot name a {what}: two leading underscores are reserved",
            hint=f"Call it {name.lstrip('_') or what}.",
        )
    longest = _LONGEST_MADE_UP if what in MADE_UP else _LONGEST
    if len(name) > longest:
        raise InputError(
            f"{name[:20]}… cannot name a {what}: it has {len(name)} characters",
            hint=f"Use at most {longest}; files are called after it.",
        )
    return name


@dataclass(frozen=True)
class Field:
    """One column: its name and type."""

    name: str
    type: DataType

    def __post_init__(self) -> None:
        checked_name(self.name, "column")
        if not self.type.is_storable:
            raise InputError(
                f"column {self.name} cannot have the type {self.type}",
                hint=_AS_NUMBER
                if self.type is DataType.INTERVAL
                else "Cast it, for example CAST(… AS string).",
            )

    def __str__(self) -> str:
        return f"{self.name} {self.type}"


@dataclass(frozen=True)
class Schema:
    """Named, typed columns in order; names differ, upper and lower case counting as the same.

    >>> schema = Schema.parse("ts timestamp, home string, kwh double")
    >>> schema["KWH"]
    Field(name='kwh', type=<DataType.DOUBLE: 'double'>)
    >>> print(schema)
    ts timestamp, home string, kwh double
    """

    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        if not self.fields:
            raise InputError("a schema without columns", hint="Name at least one column.")
        seen: set[str] = set()
        for field in self.fields:
            if field.name.lower() in seen:
                raise InputError(f"two columns are called {field.name}", hint="Rename one with AS.")
            seen.add(field.name.lower())

    @classmethod
    def parse(cls, text: str) -> Schema:
        """The schema written as ``name type, name type``."""
        return cls(tuple(_parse_field(part) for part in _COMMA.split(text)))

    @classmethod
    def of(cls, columns: Iterable[tuple[str, DataType]]) -> Schema:
        """The schema of (name, type) pairs."""
        return cls(tuple(Field(name, type) for name, type in columns))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)

    def select(self, names: Iterable[str]) -> Schema:
        """The schema of these columns only, in this order."""
        return Schema(tuple(self[name] for name in names))

    def find(self, name: str) -> Field | None:
        """The column called ``name`` in any case, or None."""
        return self._by_name.get(name.lower())

    @cached_property
    def _by_name(self) -> Mapping[str, Field]:
        return {field.name.lower(): field for field in self.fields}

    def __getitem__(self, name: str) -> Field:
        field = self.find(name)
        if field is None:
            hint = f"It has {listed(self.names)}. {suggestion(name, self.names)}".strip()
            raise InputError(f"no column {name}", hint=hint)
        return field

    def __contains__(self, name: str) -> bool:
        return self.find(name) is not None

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __str__(self) -> str:
        return ", ".join(map(str, self.fields))


def _parse_field(text: str) -> Field:
    words = text.split(None, 1)
    if len(words) != 2:
        raise InputError(
            f"{text.strip()!r} is not a column",
            hint="Write its name and its type, for example kwh double.",
        )
    name = words[0]
    if name.startswith("`"):
        name, quote, rest = text.strip()[1:].partition("`")
        words = [name, rest.strip()] if quote else words
    if not NAME_PATTERN.fullmatch(name):
        raise InputError(
            f"{name!r} cannot name a column",
            hint="Use letters, digits and underscores, starting with a letter, and say what is "
            f"meant: columns: {{{name!r}: {_plain(name)}}}.",
        )
    return Field(name, data_type(words[1]))


def _plain(name: str) -> str:
    """A name that can name a column, made of one that cannot."""
    plain = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_").lower()
    return plain if NAME_PATTERN.fullmatch(plain) else f"column_{plain}".rstrip("_")


@dataclass(frozen=True)
class TimeColumn:
    """A timestamp column that a stream's watermark says something about.

    Rows still to come have this column at or after the stream's watermark less ``behind_us``.
    """

    column: str
    behind_us: int = 0


@dataclass(frozen=True)
class Shape:
    """What flows through a stream: its columns, and what is known about their times.

    ``times`` lists the columns bounded by the stream's watermark; the first is *the* event time,
    and the watermark is counted in it (so it is never behind). ``watermarked`` says whether
    anybody promised how far rows may be out of order: without that no window ever closes.

    >>> print(Shape.timed(Schema.parse("ts timestamp, kwh double"), "ts"))
    ts timestamp, kwh double; event time ts
    """

    schema: Schema
    times: tuple[TimeColumn, ...] = ()
    watermarked: bool = True

    def __post_init__(self) -> None:
        times = []
        for time in self.times:
            column = self.schema[time.column]
            if column.type is not DataType.TIMESTAMP:
                raise InputError(
                    f"event time {column.name} is a {column.type}, not a timestamp",
                    hint="Declare the column as timestamp, or cast it in a query.",
                )
            times.append(TimeColumn(column.name, time.behind_us))
        object.__setattr__(self, "times", tuple(times))
        if self.times and self.times[0].behind_us != 0:
            raise ValueError("a watermark is counted in the first time column")

    @classmethod
    def timed(cls, schema: Schema, event_time: str, watermarked: bool = True) -> Shape:
        """A shape with one event-time column."""
        return cls(schema, (TimeColumn(schema[event_time].name),), watermarked)

    @property
    def event_time(self) -> str | None:
        """The name of the event-time column, if there is one."""
        return self.times[0].column if self.times else None

    def __str__(self) -> str:
        if not self.times:
            return str(self.schema)
        note = "" if self.watermarked else " (no lateness given)"
        return f"{self.schema}; event time {self.event_time}{note}"


def leading(times: Iterable[TimeColumn]) -> tuple[tuple[TimeColumn, ...], int]:
    """Time columns counted from the least delayed one, and by how much that is behind.

    >>> leading([TimeColumn("start", 60), TimeColumn("end", 10)])
    ((TimeColumn(column='end', behind_us=0), TimeColumn(column='start', behind_us=50)), 10)
    """
    ordered = sorted(times, key=lambda time: time.behind_us)
    if not ordered:
        return (), 0
    delay_us = ordered[0].behind_us
    return tuple(
        TimeColumn(time_column.column, time_column.behind_us - delay_us) for time_column in ordered
    ), delay_us
