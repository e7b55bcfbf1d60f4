"""Printing a deployment as a file that reads back as the same deployment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.scalarstring import LiteralScalarString

from penstock.lang.deployment.devices import device_sections, with_devices
from penstock.lang.deployment.grouping import Group, groups_of, own_stream, written_tables
from penstock.lang.deployment.locations import hidden_password
from penstock.lang.deployment.outside import event_time_text
from penstock.lang.deployment.sizes import memory_text
from penstock.lang.sql import expression_sql
from penstock.model.durations import duration_text
from penstock.model.network import Deployment, NodeSpec, Query
from penstock.model.operators import PythonOperator, SqlWrite, Switch
from penstock.model.parts import spread_settings
from penstock.model.retime import Retime
from penstock.model.settings import values_of
from penstock.model.sources import (
    ConsoleSink,
    CsvLayout,
    Database,
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
    Table,
    in_a_system,
)

Settings = dict[str, object]


def deployment_yaml(
    deployment: Deployment, folder: Path | None = None, *, show_passwords: bool = False
) -> str:
    """The deployment as the text of a deployment file; reading it gives the deployment again.

    The few operators that SQL cannot say exactly, such as a join that renames a table's columns,
    read back as operators that give the same rows.

    Paths below ``folder`` are written relative to it, others in full. A password in a database URL
    becomes an environment variable to set, unless ``show_passwords``.
    """
    printer = _YamlPrinter(folder, show_passwords)
    network = deployment.network
    groups = groups_of(network)
    queries = {query.name for query in network.queries}
    derived = {
        group.root.name: printer.derived(group)
        for group in groups
        if group.root.name not in queries
    }
    by_name = {group.root.name: group for group in groups}
    sections: Settings = {
        "streams": {stream.name: printer.stream(stream) for stream in network.streams} | derived,
        "tables": {
            written_table.name: printer.table(written_table)
            for written_table in written_tables(network)
        },
        "queries": {
            query.name: with_devices(
                printer.query(query, by_name[own_stream(query, network)]),
                deployment.devices,
                query.name,
            )
            for query in network.queries
        },
        "nodes": {node.name: _node(node) for node in deployment.nodes},
        "placement": deployment.placement,
        "balance": _inline(values_of(deployment.balance)) if deployment.balance else {},
        "share": "" if deployment.share else "off",
        **device_sections(deployment.devices),
    }
    return _dumped({name: section for name, section in sections.items() if section})


@dataclass(frozen=True)
class _YamlPrinter:
    """How locations are to be written."""

    folder: Path | None
    show_passwords: bool

    def stream(self, stream: Stream) -> Settings:
        """The settings of a stream from outside."""
        settings: Settings = {
            "source": _inline(self._source(stream.source)),
            "schema": str(stream.read_schema),
        }
        if stream.parsing.columns:
            renamed = {written: column for column, written in stream.parsing.columns}
            settings["columns"] = _inline(renamed)
        if stream.parsing.time_format:
            settings["time_format"] = stream.parsing.time_format
        if stream.shape.event_time:
            settings["event_time"] = event_time_text(stream)
        if stream.lateness_us is not None:
            settings["lateness"] = duration_text(stream.lateness_us)
        if stream.idle_timeout_us is not None:
            settings["idle_timeout"] = duration_text(stream.idle_timeout_us)
        if stream.ahead_us is not None:
            settings["ahead"] = duration_text(stream.ahead_us)
        if stream.on is not None:
            settings["on"] = stream.on
        return settings

    def derived(self, group: Group) -> Settings:
        """The settings of a stream made from others."""
        match group.root:
            case Switch(input=input, cases=cases):
                conditions = {label: expression_sql(expression) for label, expression in cases}
                return {"from": input.stream, "switch": conditions}
            case PythonOperator(input=input, function=function, schema=schema):
                return {"from": input.stream, "python": function, "schema": str(schema)}
            case Retime(input=input, event_time=event_time, lateness_us=lateness_us):
                lateness = duration_text(lateness_us)
                return {"from": input.stream, "event_time": event_time, "lateness": lateness}
            case _:
                return {"sql": _sql(group.sql)}

    def table(self, table: Table) -> Settings:
        """The settings of a table."""
        schema = str(table.schema)
        if table.database is not None:
            named = {"table": table.table} if table.table else {}
            return {"database": self._database(table.database), **named, "schema": schema}
        if table.on_devices:
            return {"on": "devices", "schema": schema}
        assert table.path is not None
        layout = _layout(table.layout)
        return {"file": self._path(table.path), "format": table.format, **layout, "schema": schema}

    def query(self, query: Query, group: Group) -> Settings:
        """The settings of a query."""
        settings: Settings = {"sql": _sql(query.text)} if query.text else self.derived(group)
        to = self._to(query.sink, group)
        if to is not None:
            settings["to"] = to
        if query.max_latency_us is not None:
            settings["max_latency"] = duration_text(query.max_latency_us)
        if query.on is not None:
            settings["on"] = query.on
        if query.groups is not None:
            by = ", ".join(query.groups.keys)
            settings["groups"] = _inline({"by": by, "count": query.groups.count})
        if query.engine is not None:
            settings["engine"] = query.engine
        if query.join is not None:
            settings["join"] = query.join
        if query.spread is not None:
            settings["join"] = _inline(spread_settings(query.spread))
        return settings

    def _to(self, sink: Sink | None, group: Group) -> object:
        match sink:
            case ConsoleSink():
                return None
            case MemorySink():
                return "memory"
            case FileSink(path, format):
                return _inline({"files": self._path(path), "format": format})
            case KafkaSink(brokers, topic, client):
                return _inline({"kafka": brokers, "topic": topic, **self._client(client)})
        if group.write is not None:
            written = group.write
            database = self._database(written.database)
            return _inline({"table": written.table, "database": database})
        return None if isinstance(group.root, SqlWrite) else "none"

    def _source(self, source: Source) -> Settings:
        match source:
            case GeneratorSource(name, options):
                return {"generate": name, **options}
            case KafkaSource(brokers, topic, finished, client):
                settings = {"kafka": brokers, "topic": topic, **_if(finished, "finished")}
                return settings | self._client(client)
            case ReplaySource(path, format, layout, speedup):
                pace = "max" if speedup is None else speedup
                settings = {"replay": self._path(path), "format": format, "speedup": pace}
                return settings | _layout(layout)
            case DirectorySource(path, format, layout, pattern, finished):
                chosen = {} if pattern == "*" else {"pattern": pattern}
                settings = {"directory": self._path(path), "format": format, **chosen}
                return settings | _if(finished, "finished") | _layout(layout)
            case RunningSource():
                raise in_a_system()

    def _client(self, client: Path | None) -> Settings:
        return {} if client is None else {"client": self._path(client)}

    def _path(self, path: Path) -> str:
        if self.folder is not None and path.is_relative_to(self.folder):
            return str(path.relative_to(self.folder))
        return str(path)

    def _database(self, database: Database) -> str:
        url = database.url if self.show_passwords else hidden_password(database.url)
        scheme, slashes, path = url.partition(":///")
        if scheme.startswith("sqlite") and slashes:
            return f"{scheme}{slashes}{self._path(Path(path))}"
        return url


def _if(holds: bool, name: str) -> Settings:
    return {name: True} if holds else {}


def _layout(layout: CsvLayout) -> Settings:
    usual, given = vars(CsvLayout()), vars(layout)
    return {name: value for name, value in given.items() if value != usual[name]}


def _node(node: NodeSpec) -> CommentedMap:
    parent = {} if node.parent is None else {"parent": node.parent}
    return _inline({"cores": node.cores, "memory": memory_text(node.memory_bytes), **parent})


def _inline(settings: Mapping[str, object]) -> CommentedMap:
    flow = CommentedMap(settings)
    flow.fa.set_flow_style()
    return flow


def _sql(text: str) -> str:
    return LiteralScalarString(f"{text}\n") if "\n" in text else text


def _dumped(sections: Mapping[str, object]) -> str:
    yaml = YAML(typ="rt", pure=True)
    yaml.width = 1 << 16
    texts = []
    for name, section in sections.items():
        text = StringIO()
        yaml.dump({name: section}, text)
        texts.append(text.getvalue())
    return "\n".join(texts)
