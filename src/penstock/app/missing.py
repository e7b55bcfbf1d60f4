"""What a deployment names and is not there: files, folders and functions."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.lang.beside import fault_of
from penstock.model.network import Network
from penstock.model.operators import PythonOperator, TableJoin
from penstock.model.sources import DirectorySource, KafkaSink, KafkaSource, ReplaySource


def missing_parts(network: Network) -> list[str]:
    """What is not there, each with who needs it; nothing is opened or run to find out."""
    return list(dict.fromkeys([*_files(network), *_functions(network)]))


def _files(network: Network) -> Iterator[str]:
    for stream in network.streams:
        match stream.source:
            case ReplaySource(path=path) if not path.is_file():
                yield f"no file {path} for stream {stream.name}"
            case DirectorySource(path=path) if not path.is_dir():
                yield f"no folder {path} for stream {stream.name}"
            case KafkaSource(client=client) if client is not None and not client.is_file():
                yield f"no file {client} with the settings of stream {stream.name}"
    for operator in network.operators:
        if isinstance(operator, TableJoin) and operator.table.path is not None:
            path = operator.table.path
            if not path.is_file():
                yield f"no file {path} for table {operator.table.name}"
    for query in network.queries:
        match query.sink:
            case KafkaSink(client=client) if client is not None and not client.is_file():
                yield f"no file {client} with the settings of query {query.name}"


def _functions(network: Network) -> Iterator[str]:
    for operator in network.operators:
        if isinstance(operator, PythonOperator):
            fault = fault_of(operator.function, operator.folder)
            if fault:
                yield f"{fault} for the Python operator {operator.function}"
