"""Where rows come from and go to, read from a deployment file: sources, tables and sinks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import InputError, listed, suggestion
from penstock.lang.deployment.locations import (
    complete_database,
    complete_path,
    expanded,
    file_format,
)
from penstock.lang.deployment.yamlfile import Section, Value
from penstock.model.schema import Schema
from penstock.model.sources import (
    ConsoleSink,
    CsvLayout,
    Database,
    DirectorySource,
    FileFormat,
    FileSink,
    GeneratorSource,
    KafkaSink,
    KafkaSource,
    MemorySink,
    ReplaySource,
    Sink,
    Source,
    Table,
)

_LAYOUT = ("delimiter", "header", "null")
_DIRECTORY = ("directory", "format", "pattern", "finished", *_LAYOUT)
_REPLAY = ("replay", "format", "speedup", *_LAYOUT)
_KAFKA = ("kafka", "topic", "client")
_FILE_TABLE = ("file", "format", "schema", *_LAYOUT)
_DATABASE_TABLE = ("database", "table", "schema")
_WORDS: Mapping[str, Sink | None] = {
    "console": ConsoleSink(),
    "memory": MemorySink(),
    "none": None,
}


@dataclass(frozen=True)
class TableSink:
    """Results are appended to a database table: a write operator rather than a model sink."""

    table: str
    database: Database


AnySink = Sink | TableSink


def read_source(value: Value, folder: Path) -> Source:
    """The source written as a mapping with one of the keys below and those that go with it."""
    kinds: Mapping[str, Callable[[Value, Path], Source]] = {
        "generate": _generator,
        "directory": _directory,
        "replay": _replay,
        "kafka": _kafka_source,
    }
    entries = value.entries()
    for kind, read in kinds.items():
        if kind in entries:
            return read(value, folder)
    raise InputError(
        f"{value.what} has the keys {listed(entries)}, none of which says what it is",
        hint=f"Give one of {listed(kinds)}.",
        place=value.file.place(value.node),
    )


def _generator(value: Value, _: Path) -> GeneratorSource:
    entries = dict(value.entries())
    name = entries.pop("generate").text("the name of a generator")
    options: dict[str, object] = {}
    for key, option in entries.items():
        if not option.is_scalar:
            raise option.unfit("one value")
        options[key] = option.plain()
    return GeneratorSource(name, options)


def _directory(value: Value, folder: Path) -> DirectorySource:
    section = value.section(_DIRECTORY)
    pattern = section.text("pattern", "*")
    format = _format(section, pattern)
    return DirectorySource(
        _path(section["directory"], folder),
        format,
        _layout(section, format),
        pattern,
        section.flag("finished", default=False),
    )


def _replay(value: Value, folder: Path) -> ReplaySource:
    section = value.section(_REPLAY)
    format = _format(section, section.text("replay"))
    path = _path(section["replay"], folder)
    speedup = None
    if "speedup" in section and section.text("speedup").lower() != "max":
        speedup = float(section["speedup"].number())
    with section.whole.pointing():
        return ReplaySource(path, format, _layout(section, format), speedup)


def _kafka_source(value: Value, folder: Path) -> KafkaSource:
    section = value.section((*_KAFKA, "finished"))
    finished = section.flag("finished", default=False)
    client = _client(section, folder)
    return KafkaSource(_brokers(section), section["topic"].text(), finished, client)


def _client(section: Section, folder: Path) -> Path | None:
    return _path(section["client"], folder) if "client" in section else None


def read_table(name: str, value: Value, folder: Path) -> Table:
    """The table written as ``{file: …, schema: …}``, with ``database`` or with ``on: devices``."""
    if "on" in value.entries():
        return _device_table(name, value.section(("on", "schema")))
    if "database" not in value.entries():
        return _file_table(name, value.section(_FILE_TABLE), folder)
    section = value.section(_DATABASE_TABLE)
    schema, database = read_schema(section["schema"]), read_database(section["database"], folder)
    with section.whole.pointing():
        return Table(name, schema, database=database, table=section.text("table"))


def _device_table(name: str, section: Section) -> Table:
    if section.text("on") != "devices":
        raise section["on"].unfit("devices")
    return Table(name, read_schema(section["schema"]), on_devices=True)


def _file_table(name: str, section: Section, folder: Path) -> Table:
    path = _path(section["file"], folder)
    format = _format(section, section.text("file"))
    schema, layout = read_schema(section["schema"]), _layout(section, format)
    with section.whole.pointing():
        return Table(name, schema, path, format, layout)


def read_sink(value: Value, folder: Path) -> AnySink | None:
    """The sink written as a word or a mapping; None for ``none``."""
    if value.is_scalar:
        return _sink_word(value)
    entries = value.entries()
    if "files" in entries:
        section = value.section(("files", "format"))
        path, format = _path(section["files"], folder), section.text("format", "parquet")
        with section.whole.pointing():
            return FileSink(path, file_format(format, "", section.what))
    if "kafka" in entries:
        section = value.section(_KAFKA)
        return KafkaSink(_brokers(section), section["topic"].text(), _client(section, folder))
    section = value.section(("table", "database"))
    return TableSink(section["table"].text(), read_database(section["database"], folder))


def _sink_word(value: Value) -> Sink | None:
    word = "none" if value.is_nothing else value.text()
    if word not in _WORDS:
        forms = "{files: PATH}, {table: NAME, database: URL} or {kafka: BROKERS, topic: NAME}"
        raise InputError(
            f"{value.what} is {word!r}; it can be {listed(_WORDS)}, {forms}",
            hint=suggestion(word, _WORDS),
            place=value.file.place(value.node),
        )
    return _WORDS[word]


def read_schema(value: Value) -> Schema:
    """Columns written as ``name type, name type``."""
    text = value.text("columns, such as ts timestamp, kwh double")
    with value.pointing():
        return Schema.parse(text)


def read_database(value: Value, folder: Path) -> Database:
    """A database URL."""
    url = value.text("a database URL")
    with value.pointing():
        return complete_database(url, folder)


def _brokers(section: Section) -> str:
    value = section["kafka"]
    brokers = value.text("brokers, such as host:9092")
    with value.pointing():
        return expanded(brokers)


def _path(value: Value, folder: Path) -> Path:
    written = value.text("a path")
    with value.pointing():
        return complete_path(written, folder)


def _format(section: Section, path: str) -> FileFormat:
    value = section.nearest("format")
    with value.pointing():
        return file_format(section.text("format"), path, section.what)


def _layout(section: Section, format: FileFormat) -> CsvLayout:
    for key in _LAYOUT:
        if key in section and format != "csv":
            raise InputError(
                f"{key} is about csv files; the format of {section.what} is {format}",
                hint=f"Remove {key}, or change the format.",
                place=section.file.place(section[key].node),
            )
    delimiter = section.text("delimiter", ",").replace("\\t", "\t")
    value = section.nearest("delimiter")
    with value.pointing():
        return CsvLayout(delimiter, section.flag("header", default=True), _null_text(section))


def _null_text(section: Section) -> str:
    """The text under ``null`` as it was written: NULL without quotes is meant as that word."""
    value = section.entries.get("null")
    return str(value.node.value) if value and value.is_nothing else section.text("null")
