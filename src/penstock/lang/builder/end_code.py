"""Sources, tables and sinks as Python source text."""

from __future__ import annotations

from pathlib import Path

from penstock.lang.builder.writing import call, keywords, literal
from penstock.lang.deployment.ends import AnySink, TableSink
from penstock.lang.deployment.locations import hidden_password
from penstock.model.sources import (
    ConsoleSink,
    CsvLayout,
    DirectorySource,
    FileSink,
    GeneratorSource,
    KafkaSink,
    KafkaSource,
    MemorySink,
    ReplaySource,
    RunningSource,
    Source,
    Table,
    in_a_system,
)


def source_code(source: Source) -> str:
    """The call that describes a source.

    >>> source_code(GeneratorSource("meters", {"homes": 300}))
    'ps.generate.meters(homes=300)'
    """
    match source:
        case GeneratorSource(name, options):
            given = {key: literal(value) for key, value in options.items()}
            return call(f"ps.generate.{name}", keywords(given))
        case DirectorySource(path, format, layout, pattern, finished):
            chosen = [] if pattern == "*" else [f"pattern={literal(pattern)}"]
            ends = ["finished=True"] if finished else []
            arguments = [_path(path), literal(format), *chosen, *ends, *_layout(layout)]
            return call("ps.sources.directory", arguments)
        case ReplaySource(path, format, layout, speedup):
            pace = [] if speedup is None else [f"speedup={speedup!r}"]
            return call(
                "ps.sources.replay", [_path(path), literal(format), *pace, *_layout(layout)]
            )
        case KafkaSource(brokers, topic, finished, client):
            ends = ["finished=True"] if finished else []
            place = [literal(brokers), literal(topic)]
            return call("ps.sources.kafka", [*place, *ends, *_client(client)])
        case RunningSource():
            raise in_a_system()


def sink_code(sink: AnySink | None) -> str:
    """The call that describes a sink."""
    match sink:
        case None:
            return "ps.sinks.none()"
        case ConsoleSink():
            return "ps.sinks.console()"
        case MemorySink():
            return "ps.sinks.memory()"
        case FileSink(path, format):
            return call("ps.sinks.files", [_path(path), literal(format)])
        case KafkaSink(brokers, topic, client):
            place = [literal(brokers), literal(topic)]
            return call("ps.sinks.kafka", [*place, *_client(client)])
        case TableSink(table, database):
            return call("ps.sinks.table", [literal(table), url_code(database.url)])


def _client(client: Path | None) -> list[str]:
    return [] if client is None else [f"client={_path(client)}"]


def table_code(table: Table) -> str:
    """The call that describes a table to join with."""
    schema = f"schema={literal(str(table.schema))}"
    if table.database is not None:
        stored = [f"table={literal(table.table)}"] if table.table else []
        database = f"database={url_code(table.database.url)}"
        return call("ps.table", [literal(table.name), database, *stored, schema])
    assert table.path is not None
    file = [f"file={_path(table.path)}", f"format={literal(table.format)}"]
    return call("ps.table", [literal(table.name), *file, *_layout(table.layout), schema])


def url_code(url: str) -> str:
    """A database URL, its password an environment variable."""
    return literal(hidden_password(url))


def _path(path: Path) -> str:
    return literal(str(path))


def _layout(layout: CsvLayout) -> list[str]:
    usual = vars(CsvLayout())
    given = {name: value for name, value in vars(layout).items() if value != usual[name]}
    return [f"{name}={literal(value)}" for name, value in given.items()]
