"""Where rows of a stream come from and where results go: descriptions only, nothing is opened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from penstock.errors import InputError, listed, suggestion
from penstock.model.expressions import Expression
from penstock.model.schema import Schema, Shape, checked_name
from penstock.model.time_patterns import time_pattern

FileFormat = Literal["csv", "json", "parquet", "text"]
FILE_FORMATS: tuple[FileFormat, ...] = ("csv", "json", "parquet", "text")

Options = Mapping[str, object]


def _frozen(options: Options) -> Options:
    return MappingProxyType(dict(options))


def checked_format(written: str) -> FileFormat:
    """``written`` as a file format; raises with the list of formats."""
    for known in FILE_FORMATS:
        if written.lower() in (known, {"json": "jsonl"}.get(known)):
            return known
    hint = f"The formats are {listed(FILE_FORMATS)}. {suggestion(written, FILE_FORMATS)}".strip()
    raise InputError(f"no file format {written}", hint=hint)


@dataclass(frozen=True)
class GeneratorSource:
    """Rows made by a generator of :mod:`penstock.feeds`, with its options as written."""

    generator: str
    options: Options = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", _frozen(self.options))

    def __hash__(self) -> int:
        # Options may hold lists, and those have no hash.
        return hash((self.generator, tuple(sorted(self.options))))


@dataclass(frozen=True)
class CsvLayout:
    """How the columns of a text file are laid out."""

    delimiter: str = ","
    header: bool = True
    null: str = ""

    def __post_init__(self) -> None:
        if len(self.delimiter) != 1:
            raise InputError(
                f"the delimiter {self.delimiter!r} has {len(self.delimiter)} characters",
                hint="Give one character, for example ',' or '\\t'.",
            )


@dataclass(frozen=True)
class DirectorySource:
    """Files that arrive in a directory, in the order of their names, each taken once.

    ``finished`` says that no more files will come once those present are read.
    """

    path: Path
    format: FileFormat
    layout: CsvLayout = CsvLayout()
    pattern: str = "*"
    finished: bool = False


@dataclass(frozen=True)
class ReplaySource:
    """A recorded file played back in file order.

    ``speedup`` is how many seconds of event time pass in a second; None plays it at once.
    """

    path: Path
    format: FileFormat
    layout: CsvLayout = CsvLayout()
    speedup: float | None = None

    def __post_init__(self) -> None:
        if self.speedup is not None and self.speedup <= 0:
            raise InputError(
                f"a replay {self.speedup} times as fast as recorded",
                hint="Give a speedup above zero, or max.",
            )


@dataclass(frozen=True)
class KafkaSource:
    """Records of a Kafka topic; values are JSON objects with the columns as keys.

    ``client`` is a file with settings of the client, such as how to log in.
    """

    brokers: str
    topic: str
    finished: bool = False
    client: Path | None = None


@dataclass(frozen=True)
class RunningSource:
    """Rows of a running system: a stream it brings in, or the result of one of its queries."""


def in_a_system() -> InputError:
    """The error for printing something that has a meaning inside a running system only."""
    return InputError(
        "a stream of a running system cannot be printed as part of a deployment",
        hint="Print the deployment that brings the stream in.",
    )


Source = GeneratorSource | DirectorySource | ReplaySource | KafkaSource | RunningSource


@dataclass(frozen=True)
class Parsing:
    """How columns are found in the rows of a source, and how times are written there.

    ``columns`` are columns that have another name there, or lie inside other values: pairs of a
    column and that name or path. ``time_format`` is how timestamps are written: a pattern, or a
    unit since 1970; without one they are ISO dates and times or seconds since 1970. ``event_time``
    is a column that is not there, and what it is computed from.

    >>> Parsing((("ts", "@timestamp"),)).written("ts"), Parsing().written("ts")
    ('@timestamp', 'ts')
    """

    columns: tuple[tuple[str, str], ...] = ()
    time_format: str = ""
    event_time: tuple[str, Expression] | None = None

    def __post_init__(self) -> None:
        if self.time_format and self.time_format not in TIME_UNITS:
            time_pattern(self.time_format)

    def written(self, column: str) -> str:
        """The name or path of a column in the source."""
        return dict(self.columns).get(column, column)

    @property
    def is_plain(self) -> bool:
        """Whether rows are to be taken as they come."""
        return self == PLAIN


PLAIN = Parsing()
TIME_UNITS: Mapping[str, int] = {"seconds": 10**6, "milliseconds": 10**3, "microseconds": 1}
"""Units since 1970 in which times can be written, in microseconds."""


@dataclass(frozen=True)
class Stream:
    """A stream from outside: its name, where it comes from, its columns and its time.

    ``lateness_us``: a row this far behind the latest row before it still counts; rows further
    behind are set aside. ``idle_timeout_us``: after this much wall time without a row the
    stream's time moves on without it. ``ahead_us``: rows further ahead of both the wall clock and
    the latest row before them are set aside. ``on`` is the node at which its rows come in; None
    where that is left to the system.
    """

    name: str
    source: Source
    shape: Shape
    lateness_us: int | None = None
    idle_timeout_us: int | None = None
    ahead_us: int | None = None
    # Left out where a stream is described by its text, unless there is something to say.
    parsing: Parsing = field(default=PLAIN, repr=False)
    on: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        checked_name(self.name, "stream")
        if self.lateness_us is not None and self.lateness_us < 0:
            raise InputError(
                f"stream {self.name} has a lateness below zero",
                hint="Give a duration of zero or more, for example 2min.",
            )
        if self.idle_timeout_us is not None and self.idle_timeout_us <= 0:
            raise InputError(
                f"stream {self.name} has an idle timeout of zero or less",
                hint="Give a duration above zero, for example 30 s, or none.",
            )
        if self.ahead_us is not None and self.ahead_us < 0:
            raise InputError(
                f"stream {self.name} has a bound ahead below zero",
                hint="Give a duration of zero or more, for example 1d.",
            )
        bounds = {"a lateness": self.lateness_us, "a bound ahead": self.ahead_us}
        for bound, bound_us in bounds.items():
            if bound_us is not None and not self.shape.times:
                raise InputError(
                    f"stream {self.name} has {bound} but no event time",
                    hint="Name the timestamp column with event_time.",
                )
        if self.shape.times and self.shape.watermarked != (self.lateness_us is not None):
            raise ValueError(f"stream {self.name} is watermarked just when it has a lateness")
        for column, _ in self.parsing.columns:
            self.read_schema[column]

    @property
    def read_schema(self) -> Schema:
        """The columns that are in the source: all but a computed event time."""
        computed = self.parsing.event_time
        names = self.shape.schema.names
        return self.shape.schema.select(
            name for name in names if not computed or name != computed[0]
        )


def running_stream(name: str, shape: Shape) -> Stream:
    """A stream that runs, for those who read it."""
    return Stream(name, RunningSource(), shape, 0 if shape.times and shape.watermarked else None)


@dataclass(frozen=True)
class Database:
    """A database by its SQLAlchemy URL, such as ``sqlite:///ami.db``."""

    url: str

    def __post_init__(self) -> None:
        if "://" not in self.url:
            raise InputError(
                f"{self.url!r} is not a database URL",
                hint="Write for example sqlite:///file.db or postgresql+psycopg://user@host/name.",
            )

    @property
    def shown(self) -> str:
        """The URL without a password or options, which may hold one, for people to read."""
        head, _, tail = self.url.partition("?")[0].partition("://")
        login, at, rest = tail.rpartition("@")
        return f"{head}://{login.split(':')[0]}{at}{rest}"


@dataclass(frozen=True)
class Table:
    """A table to join with: a file read once at the start, or a database table read afresh.

    One that is ``on_devices`` only they have, each its own.
    """

    name: str
    schema: Schema
    path: Path | None = None
    format: FileFormat = "csv"
    layout: CsvLayout = CsvLayout()
    database: Database | None = None
    table: str = ""
    on_devices: bool = False

    def __post_init__(self) -> None:
        checked_name(self.name, "table")
        if [self.path is not None, self.database is not None, self.on_devices].count(True) != 1:
            raise InputError(
                f"table {self.name} needs a file or a database",
                hint="Give either file: PATH or database: URL.",
            )
        if self.database is not None:
            checked_name(self.stored_name, "database table")

    @property
    def stored_name(self) -> str:
        """The table's name in its database."""
        return self.table or self.name


@dataclass(frozen=True)
class ConsoleSink:
    """Results are shown in the terminal."""


@dataclass(frozen=True)
class FileSink:
    """Results are appended to a directory, one subdirectory a batch."""

    path: Path
    format: FileFormat

    def __post_init__(self) -> None:
        if self.format == "text":
            raise InputError(
                "results have columns, and text files only lines",
                hint="Write csv, json or parquet.",
            )


@dataclass(frozen=True)
class KafkaSink:
    """Results become records of a Kafka topic, as JSON objects; ``client`` as for a source."""

    brokers: str
    topic: str
    client: Path | None = None


@dataclass(frozen=True)
class MemorySink:
    """Results are kept in the process that runs the query."""


Sink = ConsoleSink | FileSink | KafkaSink | MemorySink
