"""Where building begins and ends: streams, tables and SQL in, a deployment out."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from penstock.errors import InputError, listed
from penstock.lang.builder.assembly import assemble
from penstock.lang.builder.flow import Flow, check_flow, flow_of
from penstock.lang.builder.joins import Duration
from penstock.lang.builder.steps import Step
from penstock.lang.deployment.locations import complete_database, complete_path, file_format
from penstock.lang.deployment.outside import outside_stream
from penstock.lang.deployment.sizes import memory_bytes
from penstock.lang.sql import KnownNames, parse_query
from penstock.model.durations import duration_us
from penstock.model.network import Deployment, NodeSpec
from penstock.model.schema import Schema
from penstock.model.settings import settings_of
from penstock.model.sources import CsvLayout, Source, Table

Nodes = int | Mapping[str, Mapping[str, int | str]] | Sequence[NodeSpec]


def stream(
    name: str,
    *,
    source: Source,
    schema: str | Schema | None = None,
    event_time: str | None = None,
    lateness: Duration | None = None,
    idle_timeout: Duration | None = None,
    ahead: Duration | None = None,
    columns: Mapping[str, str] | None = None,
    time_format: str = "",
    on: str | None = None,
) -> Flow:
    """A stream from outside.

    Generators know their columns and their event time; other sources need a ``schema``. Without a
    ``lateness`` no window over the stream ever closes, so windows and joins ask for one. With
    ``ahead`` rows further in the future are set aside.
    ``event_time`` is a column, or an expression such as ``"timestamp_millis(ms) AS at"``.
    ``columns`` are names in the source that are not those of the schema, as in
    ``{"@timestamp": "ts"}``; ``time_format`` is how timestamps are written there.
    ``on`` is the node at which its rows come in.
    """
    described = outside_stream(
        name,
        source,
        Schema.parse(schema) if isinstance(schema, str) else schema,
        event_time,
        None if lateness is None else duration_us(lateness),
        None if idle_timeout is None else duration_us(idle_timeout),
        None if ahead is None else duration_us(ahead),
        columns,
        time_format,
        on,
    )
    return Flow(described, name, described.shape)


def table(
    name: str,
    *,
    schema: str | Schema,
    file: str | Path | None = None,
    format: str = "",
    delimiter: str = ",",
    header: bool = True,
    null: str = "",
    database: str | None = None,
    table: str = "",
) -> Table:
    """A table to join with: a file, or a table of a database, there called ``table``.

    >>> table("homes", file="/data/homes.csv", schema="home string, size int").format
    'csv'
    """
    columns = Schema.parse(schema) if isinstance(schema, str) else schema
    if file is None or database is not None:
        found = None if database is None else complete_database(database, Path.cwd())
        path = None if file is None else complete_path(str(file), Path.cwd())
        return Table(name, columns, path, database=found, table=table)
    path = complete_path(str(file), Path.cwd())
    known = file_format(format, str(file), f"table {name}")
    return Table(name, columns, path, known, CsvLayout(delimiter, header, null))


def sql(text: str, /, **names: Flow | Table) -> Flow:
    """The flow of a SELECT; ``names`` says what the names in it mean.

    >>> import penstock as ps
    >>> readings = ps.stream("readings", source=ps.generate.meters(days=1))
    >>> print(ps.sql("SELECT home FROM readings WHERE kwh > 3", readings=readings).schema)
    home string
    """
    tables = {name: found for name, found in names.items() if isinstance(found, Table)}
    flows = {name: check_flow(flow) for name, flow in names.items() if name not in tables}
    shapes = {name: flow.shape for name, flow in flows.items()}
    unnamed = next(name for name in _unnamed() if name not in names)
    parsed = parse_query(unnamed, text, KnownNames(shapes, tables), "sql")
    read = {input.stream for operator in parsed.operators for input in operator.inputs}
    reads = {name: flow for name, flow in flows.items() if name in read}
    # The text stands for the query only where it uses the tables' own names.
    kept = text.strip() if all(name == found.name for name, found in tables.items()) else ""
    return flow_of(Step(parsed.operators, reads, unnamed, sql=kept))


def _unnamed() -> Iterator[str]:
    yield "result"
    yield from (f"result{count}" for count in itertools.count(2))


def deployment(
    *queries: Flow,
    name: str = "deployment",
    streams: Sequence[Flow] = (),
    nodes: Nodes = (),
    placement: str = "",
    balance: Mapping[str, object] | None = None,
    share: bool = True,
) -> Deployment:
    """A deployment of ``queries``, which need names; results go to the console unless `.to` says.

    ``streams`` are part of it even if no query reads them; those that are read come by themselves.
    ``nodes`` is a number of nodes, or says what each has: ``{"a": {"cores": 2, "memory": "1g"}}``.
    Without ``share`` it computes everything itself, whatever runs already.
    """
    specs = _node_specs(nodes)
    for flow in queries:
        _check_query(check_flow(flow), specs)
    network = assemble(queries, [check_flow(flow) for flow in streams])
    return Deployment(name, network, specs, placement, settings_of(balance or {}), share=share)


def _check_query(flow: Flow, nodes: tuple[NodeSpec, ...]) -> None:
    if flow.name is None:
        raise InputError(
            f"the query over {flow.stream} has no name", hint='Give it one with .named("…").'
        )
    if flow.made_by.name != flow.name or not isinstance(flow.made_by, Step):
        raise InputError(
            f"stream {flow.name} is no query by itself",
            hint='Give the query a name of its own with .named("…").',
        )
    names = [node.name for node in nodes]
    if flow.outlet.on is not None and names and flow.outlet.on not in names:
        raise InputError(
            f"query {flow.name} is to run on {flow.outlet.on}; the nodes are {listed(names)}"
        )


def _node_specs(nodes: Nodes) -> tuple[NodeSpec, ...]:
    if isinstance(nodes, int):
        return tuple(NodeSpec(f"node{at}") for at in range(1, nodes + 1))
    if isinstance(nodes, Mapping):
        return tuple(_node_spec(name, dict(given)) for name, given in nodes.items())
    return tuple(nodes)


def _node_spec(name: str, given: dict[str, int | str]) -> NodeSpec:
    cores = given.pop("cores", NodeSpec.cores)
    memory = given.pop("memory", NodeSpec.memory_bytes)
    parent = given.pop("parent", None)
    if isinstance(cores, int) and not given:
        return NodeSpec(name, cores, memory_bytes(memory), None if parent is None else str(parent))
    wrong = given or {"cores": cores}
    raise InputError(
        f"node {name} is given {listed(f'{key} {value!r}' for key, value in wrong.items())}",
        hint="A node has cores, a whole number, memory, for example 1g, and a parent in a tree.",
    )
