"""Sinks of queries, as in ``ps.sinks.files("out", "parquet")``; nothing is opened."""

from __future__ import annotations

from pathlib import Path

from penstock.lang.deployment.ends import TableSink
from penstock.lang.deployment.locations import (
    client_file,
    complete_database,
    complete_path,
    expanded,
)
from penstock.model.sources import (
    ConsoleSink,
    FileSink,
    KafkaSink,
    MemorySink,
    Sink,
    checked_format,
)


def console() -> ConsoleSink:
    """Results are shown in the terminal."""
    return ConsoleSink()


def memory() -> MemorySink:
    """Results are kept in the process that runs the query."""
    return MemorySink()


def none() -> Sink | None:
    """Results go nowhere: the query is there for others to read."""
    return None


def files(path: str | Path, format: str = "parquet") -> FileSink:
    """Results are appended to files in a directory."""
    return FileSink(complete_path(str(path), Path.cwd()), checked_format(format))


def table(name: str, database: str) -> TableSink:
    """Results are appended to a database table.

    >>> table("load", "postgresql://ann@db/ami").table
    'load'
    """
    return TableSink(name, complete_database(database, Path.cwd()))


def kafka(brokers: str, topic: str, *, client: str | Path | None = None) -> KafkaSink:
    """Results become records of a Kafka topic; ``client`` as for :func:`ps.sources.kafka`."""
    return KafkaSink(expanded(brokers), topic, client_file(client))
