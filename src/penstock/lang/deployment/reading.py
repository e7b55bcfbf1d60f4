"""Reading a deployment file: text in, a checked deployment out, errors that point at the text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from penstock.errors import InputError, Place, suggestion
from penstock.lang.deployment.drafts import (
    Draft,
    PythonDraft,
    QueryDraft,
    SqlDraft,
    SwitchDraft,
    in_reading_order,
)
from penstock.lang.deployment.ends import read_schema, read_sink, read_source, read_table
from penstock.lang.deployment.outside import outside_stream
from penstock.lang.deployment.scope import Scope
from penstock.lang.deployment.sizes import memory_bytes
from penstock.lang.deployment.yamlfile import Section, Value, YamlFile
from penstock.lang.files import text_of
from penstock.model.network import Deployment, Network, NodeSpec
from penstock.model.partition_groups import PartitionGroups
from penstock.model.schema import checked_name
from penstock.model.sources import RunningSource, Stream

_SECTIONS = ("streams", "tables", "queries", "nodes", "placement", "balance")
_OUTSIDE = ("source", "schema", "event_time", "lateness", "idle_timeout")
_SQL = ("sql",)
_PYTHON = ("from", "python", "schema")
_SWITCH = ("from", "switch")
_QUERY = ("to", "max_latency", "on", "groups")


def read_deployment(path: Path) -> Deployment:
    """The deployment that the file at ``path`` describes; it is called like the file."""
    return parse_deployment(text_of(path), str(path), path.parent)


def parse_deployment(
    text: str, origin: str, folder: Path, running: Iterable[Stream] = ()
) -> Deployment:
    """The deployment that ``text`` describes.

    ``origin`` is what errors call the text, and its stem the deployment's name; relative paths
    start at ``folder``. The streams ``running`` in a system already can be read as well.

    >>> deployment = parse_deployment('''
    ... streams:
    ...   readings: {source: {generate: meters, days: 1}, lateness: 2min}
    ... queries:
    ...   peaks: SELECT home, kwh FROM readings WHERE kwh > 3
    ... ''', "ami.yaml", Path("."))
    >>> deployment.name, [query.name for query in deployment.network.queries]
    ('ami', ['peaks'])
    """
    root = YamlFile(origin, text).root()
    if not root.entries():
        raise InputError(f"{origin} is empty", hint="A deployment file has at least streams: …")
    top = root.section(_SECTIONS)
    nodes = _nodes(top)
    network = _network(top, nodes, folder, running)
    placement = top.text("placement")
    return Deployment(Path(origin).stem, network, nodes, placement, _balance(top))


def parse_single_query(
    name: str,
    sql: str,
    origin: str,
    running: Iterable[Stream],
    max_latency_us: int | None = None,
) -> Deployment:
    """The deployment of one query over the streams ``running`` in a system.

    >>> from penstock.model.sources import GeneratorSource
    >>> readings = outside_stream("readings", GeneratorSource("meters", {"days": 1}))
    >>> made = parse_single_query("peaks", "SELECT home FROM readings", "q.sql", [readings])
    >>> made.network.query("peaks").text
    'SELECT home FROM readings'
    """
    scope, place = _scope(running), Place(origin, sql, 1)
    scope.claim(checked_name(name, "query"), f"query {name}")
    draft = SqlDraft(name, f"query {name}", place, sql)
    scope.add_draft(QueryDraft(name, draft.what, place, draft, max_latency_us=max_latency_us))
    return Deployment(name, _without_unread(scope.network([name])))


def _scope(running: Iterable[Stream]) -> Scope:
    scope = Scope()
    for stream in running:
        scope.claim(stream.name, f"{stream.name} of the running system")
        scope.add_stream(stream)
    return scope


def _without_unread(network: Network) -> Network:
    """The network without those streams of a running system that it does not read."""
    read = {input.stream for one in network.operators for input in one.inputs}
    kept = tuple(
        stream
        for stream in network.streams
        if stream.name in read or not isinstance(stream.source, RunningSource)
    )
    return replace(network, streams=kept)


def _network(
    top: Section, nodes: tuple[NodeSpec, ...], folder: Path, running: Iterable[Stream]
) -> Network:
    scope, drafts = _scope(running), list[Draft]()
    for name, value in _named(top, "streams", scope, "stream"):
        if _is_derived(value):
            drafts.append(_derived(name, value))
            scope.claim_outputs(drafts[-1])
        else:
            scope.add_stream(_outside(name, value, folder))
    for name, value in _named(top, "tables", scope, "table"):
        scope.add_table(read_table(name, value, folder))
    for name, value in _named(top, "queries", scope, "query"):
        drafts.append(_query(name, value, nodes, folder))
    for draft in in_reading_order(drafts, scope.known):
        scope.add_draft(draft)
    return _without_unread(scope.network([draft.name for draft in drafts]))


def _named(top: Section, section: str, scope: Scope, kind: str) -> list[tuple[str, Value]]:
    """The entries of a section, their names checked and claimed."""
    if section not in top:
        return []
    named = []
    for name, value in top[section].entries().items():
        key = top[section].key_node(name)
        with value.file.pointing(key):
            scope.claim(checked_name(name, kind), f"{kind} {name}")
        # The key rather than the value: that is where errors about the whole thing point.
        named.append((name, Value(value.file, value.node, f"{kind} {name}", key)))
    return named


def _is_derived(value: Value) -> bool:
    return bool({"sql", "from"} & value.entries().keys())


def _outside(name: str, value: Value, folder: Path) -> Stream:
    section = value.section(_OUTSIDE)
    if "source" not in section:
        raise InputError(
            f"{value.what} does not say where its rows come from",
            hint="Give a source, or sql or from for one made from other streams.",
            place=value.place,
        )
    source = read_source(section["source"], folder)
    schema = read_schema(section["schema"]) if "schema" in section else None
    event_time = section.text("event_time") or None
    lateness_us = section.duration_us("lateness")
    idle_timeout_us = section.duration_us("idle_timeout")
    with value.pointing():
        return outside_stream(name, source, schema, event_time, lateness_us, idle_timeout_us)


def _derived(name: str, value: Value) -> Draft:
    entries = value.entries()
    if "sql" in entries:
        return _sql(name, value.section(_SQL))
    if "switch" in entries:
        section = value.section(_SWITCH)
        return SwitchDraft(name, value.what, value.place, section["from"], section)
    return _python(name, value.section(_PYTHON))


def _sql(name: str, section: Section) -> SqlDraft:
    return SqlDraft(name, section.what, section.whole.place, section["sql"].text("SQL"))


def _python(name: str, section: Section) -> PythonDraft:
    return PythonDraft(name, section.what, section.whole.place, section["from"], section)


def _query(name: str, value: Value, nodes: tuple[NodeSpec, ...], folder: Path) -> QueryDraft:
    if value.is_scalar:
        made = SqlDraft(name, value.what, value.place, value.text("SQL or a mapping"))
        return QueryDraft(name, value.what, value.place, made)
    own = _PYTHON if "from" in value.entries() else _SQL
    section = value.section((*own, *_QUERY))
    given = section.entries.get("to")
    return QueryDraft(
        name,
        value.what,
        value.place,
        _python(name, section) if own is _PYTHON else _sql(name, section),
        read_sink(given, folder) if given else None,
        given.place if given else None,
        section.duration_us("max_latency"),
        _node_name(section["on"], nodes) if "on" in section else None,
        _groups(section["groups"]) if "groups" in section else None,
    )


def _groups(value: Value) -> PartitionGroups:
    section = value.section(("by", "count"))
    written = section["by"].text("a column, or several").split(",")
    count = section["count"].whole()
    with value.pointing():
        return PartitionGroups(tuple(key.strip() for key in written if key.strip()), count)


def _node_name(value: Value, nodes: tuple[NodeSpec, ...]) -> str:
    names = [node.name for node in nodes]
    wanted = value.text("the name of a node")
    if names and wanted not in names:
        raise InputError(
            f"{value.what} is {wanted}; the nodes are {', '.join(names)}",
            hint=suggestion(wanted, names),
            place=value.place,
        )
    return wanted


def _nodes(top: Section) -> tuple[NodeSpec, ...]:
    if "nodes" not in top:
        return ()
    section = top["nodes"]
    return tuple(_node(name, value) for name, value in section.entries().items())


def _node(name: str, value: Value) -> NodeSpec:
    if value.is_nothing:
        return NodeSpec(name)
    section = value.section(("cores", "memory"), f"node {name}")
    cores = section["cores"].whole() if "cores" in section else NodeSpec.cores
    size = NodeSpec.memory_bytes
    if "memory" in section:
        with section["memory"].pointing():
            size = memory_bytes(section["memory"].text("an amount of memory, such as 1g"))
    with value.pointing():
        return NodeSpec(name, cores, size)


def _balance(top: Section) -> dict[str, object]:
    if "balance" not in top:
        return {}
    return {key: value.plain() for key, value in top["balance"].entries().items()}
