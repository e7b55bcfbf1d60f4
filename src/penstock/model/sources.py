"""Where rows of a stream come from and where results go: descriptions only, nothing is opened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from penstock.errors import InputError, listed, suggestion
from penstock.model.schema import Schema, Shape, checked_name

FileFormat = Literal["csv", "json", "parquet"]
FILE_FORMATS: tuple[FileFormat, ...] = ("csv", "json", "parquet")

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
class Stream:
    """A stream from outside: its name, where it comes from, its columns and its time.

    ``lateness_us``: a row this far behind the latest row before it still counts; rows further
    behind are set aside. ``idle_timeout_us``: after this much wall time without a row the
    stream's time moves on without it.
    """

    name: str
    source: Source
    shape: Shape
    lateness_us: int | None = None
    idle_timeout_us: int | None = None

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
        if self.lateness_us is not None and not self.shape.times:
            raise InputError(
                f"stream {self.name} has a lateness but no event time",
                hint="Name the timestamp column with event_time.",
            )
        if self.shape.times and self.shape.watermarked != (self.lateness_us is not None):
            raise ValueError(f"stream {self.name} is watermarked just when it has a lateness")


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
    """A table to join with: a file read once at the start, or a database table read afresh."""

    name: str
    schema: Schema
    path: Path | None = None
    format: FileFormat = "csv"
    layout: CsvLayout = CsvLayout()
    database: Database | None = None
    table: str = ""

    def __post_init__(self) -> None:
        checked_name(self.name, "table")
        if (self.path is None) == (self.database is None):
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
