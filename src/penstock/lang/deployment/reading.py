"""Reading a deployment file: text in, a checked deployment out, errors that point at the text."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from penstock.errors import InputError, Place, suggestion
from penstock.lang.deployment.devices import read_devices
from penstock.lang.deployment.drafts import (
    Draft,
    PythonDraft,
    QueryDraft,
    SqlDraft,
    SwitchDraft,
    TimedDraft,
    in_reading_order,
    untimed_name,
)
from penstock.lang.deployment.ends import read_schema, read_sink, read_source, read_table
from penstock.lang.deployment.outside import outside_stream
from penstock.lang.deployment.scope import Scope
from penstock.lang.deployment.sizes import memory_bytes
from penstock.lang.deployment.yamlfile import Section, Value, YamlFile
from penstock.lang.files import text_of
from penstock.model.engines import EngineName, JoinWay, checked_engine, checked_join_way
from penstock.model.network import Deployment, Network, NodeSpec
from penstock.model.node_tree import tree_of
from penstock.model.partition_groups import PartitionGroups
from penstock.model.parts import DEFAULT_GROUPS, DEFAULT_PERIOD_US, JoinSpread, join_spread
from penstock.model.schema import checked_name
from penstock.model.settings import Setting
from penstock.model.sources import RunningSource, Stream, running_stream

_SECTIONS = (
    "streams", "tables", "queries", "nodes", "placement", "balance", "share", "broadcast",
    "devices",
)  # fmt: skip
_SWITCHED = {"on": True, "off": False, "true": True, "false": False}
_TIMED = ("event_time", "lateness")
_OUTSIDE = ("source", "schema", "columns", "time_format", *_TIMED, "idle_timeout", "ahead", "on")
_SQL = ("sql",)
_PYTHON = ("from", "python", "schema")
_SWITCH = ("from", "switch")
_SYSTEM = "the running system"
_QUERY = ("to", "max_latency", "on", "groups", "engine", "join", "device")


def read_deployment(path: Path) -> Deployment:
    """The deployment that the file at ``path`` describes; it is called like the file."""
    return parse_deployment(text_of(path), str(path), path.parent)


def parse_deployment(
    text: str,
    origin: str,
    folder: Path,
    running: Iterable[Stream] = (),
    written: Iterable[Stream] = (),
) -> Deployment:
    """The deployment that ``text`` describes.

    ``origin`` is what errors call the text, and its stem the deployment's name; relative paths
    start at ``folder``. The streams ``running`` in a system already can be read as well. One that
    the text describes in the same way as it is ``written`` elsewhere is that stream; described in
    another way, it would be another stream of that name, which is refused.

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
    network = _network(top, nodes, folder, running, written)
    placement, devices = top.text("placement"), read_devices(top, network)
    return Deployment(
        Path(origin).stem,
        network,
        nodes,
        placement,
        _balance(top),
        devices,
        share=_shares(top),
    )


def _shares(top: Section) -> bool:
    """Whether what runs already may be shared."""
    written = top.text("share", "on")
    if written.lower() not in _SWITCHED:
        raise top["share"].unfit("on or off")
    return _SWITCHED[written.lower()]


def read_nodes(path: Path) -> tuple[NodeSpec, ...]:
    """The nodes that a file names, whatever else it says: a deployment file, or a tree file."""
    root = YamlFile(str(path), text_of(path)).root()
    if "nodes" not in root.entries():
        raise InputError(
            f"{path} names no nodes", hint="Write nodes: {root: {}, a: {parent: root}}."
        )
    return _nodes(root.section(tuple(root.entries())))


def parse_single_query(
    name: str,
    sql: str,
    origin: str,
    running: Iterable[Stream],
    max_latency_us: int | None = None,
    running_in: str = _SYSTEM,
) -> Deployment:
    """The deployment of one query over the streams ``running`` in a system, or in a file.

    >>> from penstock.model.sources import GeneratorSource
    >>> readings = outside_stream("readings", GeneratorSource("meters", {"days": 1}))
    >>> made = parse_single_query("peaks", "SELECT home FROM readings", "q.sql", [readings])
    >>> made.network.query("peaks").text
    'SELECT home FROM readings'
    """
    scope, place = _scope(running, running_in), Place(origin, sql, 1)
    scope.claim(checked_name(name, "query"), f"query {name}")
    draft = SqlDraft(name, f"query {name}", place, sql)
    scope.add_draft(QueryDraft(name, draft.what, place, draft, max_latency_us=max_latency_us))
    return Deployment(name, _without_unread(scope.network([name])))


def offered_streams(network: Network, names: Iterable[str] | None = None) -> list[Stream]:
    """The streams that others can read once the network runs; all, or those of these ``names``."""
    shapes = network.shapes
    chosen = ((name, shapes[name]) for name in (shapes if names is None else names))
    return [running_stream(name, shape) for name, shape in chosen]


def _scope(running: Iterable[Stream], running_in: str = _SYSTEM) -> Scope:
    scope = Scope()
    for stream in running:
        scope.claim(stream.name, f"{stream.name} of {running_in}")
        scope.add_stream(stream)
    return scope


def _without_unread(network: Network) -> Network:
    """The network without those streams of a running system that it does not read."""
    read = {input.stream for operator in network.operators for input in operator.inputs}
    kept = tuple(
        stream
        for stream in network.streams
        if stream.name in read or not isinstance(stream.source, RunningSource)
    )
    return replace(network, streams=kept)


def _network(
    top: Section,
    nodes: tuple[NodeSpec, ...],
    folder: Path,
    running: Iterable[Stream],
    written: Iterable[Stream],
) -> Network:
    scope, drafts = _scope(running), list[Draft]()
    shared = _shared(top, nodes, folder, {stream.name: stream for stream in written})
    for name, value in _named(top, "streams", scope, "stream", shared):
        if _is_derived(value):
            drafts.append(_derived(name, value, folder))
            scope.claim_outputs(drafts[-1])
        else:
            scope.add_stream(_outside(name, value, nodes, folder))
    for name, value in _named(top, "tables", scope, "table"):
        scope.add_table(read_table(name, value, folder))
    for name, value in _named(top, "queries", scope, "query"):
        drafts.append(_query(name, value, nodes, folder))
    for draft in in_reading_order(drafts, scope.known):
        scope.add_draft(draft)
    return _without_unread(scope.network([draft.name for draft in drafts]))


def _shared(
    top: Section, nodes: tuple[NodeSpec, ...], folder: Path, written: Mapping[str, Stream]
) -> frozenset[str]:
    """The streams from outside that are described here as they are elsewhere."""
    found = top["streams"].entries().items() if "streams" in top else ()
    return frozenset(
        name
        for name, value in found
        if name in written
        and not _is_derived(value)
        and _outside(name, value, nodes, folder) == written[name]
    )


def _named(
    top: Section, section: str, scope: Scope, kind: str, shared: Container[str] = ()
) -> list[tuple[str, Value]]:
    """The entries of a section, but for those that are ``shared``, names checked and claimed."""
    if section not in top:
        return []
    named = []
    for name, value in top[section].entries().items():
        if name in shared:
            continue
        key = top[section].key_node(name)
        with value.file.pointing(key):
            scope.claim(checked_name(name, kind), f"{kind} {name}")
        # The key rather than the value: that is where errors about the whole thing point.
        named.append((name, Value(value.file, value.node, f"{kind} {name}", key)))
    return named


def _is_derived(value: Value) -> bool:
    return bool({"sql", "from"} & value.entries().keys())


def _outside(name: str, value: Value, nodes: tuple[NodeSpec, ...], folder: Path) -> Stream:
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
    columns = _renamed(section["columns"]) if "columns" in section else None
    on = _node_name(section["on"], nodes) if "on" in section else None
    if on is None and any(node.parent for node in nodes):
        raise InputError(
            f"{value.what} is attached to no node of the tree",
            hint="Say where its rows come in: on: NODE.",
            place=value.place,
        )
    with value.pointing():
        return outside_stream(
            name,
            source,
            schema,
            event_time,
            lateness_us,
            idle_timeout_us,
            section.duration_us("ahead"),
            columns,
            section.text("time_format"),
            on,
        )


def _renamed(value: Value) -> dict[str, str]:
    """Which column is meant by a name in the source."""
    found = {name: column.text("the name of a column") for name, column in value.entries().items()}
    twice = [meant for meant in found.values() if list(found.values()).count(meant) > 1]
    if twice:
        raise InputError(f"two names mean the column {twice[0]}", place=value.place)
    return found


def _derived(name: str, value: Value, folder: Path) -> Draft:
    entries = value.entries()
    for key in (setting for setting in ("ahead", "idle_timeout") if setting in entries):
        raise InputError(
            f"{value.what} has {key}, which is decided by the clock",
            hint="Give it to the stream the rows come in by.",
            place=value.file.place(value.key_node(key)),
        )
    timed = [setting for setting in _TIMED if setting in entries]
    if timed and "switch" in entries:
        raise InputError(
            f"{value.what} has {timed[0]}, but a switch has the time of what it reads",
            hint="Give it to a stream that the switch reads.",
            place=value.file.place(value.key_node(timed[0])),
        )
    if "switch" in entries:
        section = value.section(_SWITCH)
        return SwitchDraft(name, value.what, value.place, section["from"], section)
    if timed:
        section = value.section((*(_SQL if "sql" in entries else _PYTHON), *_TIMED))
        return _timed(name, section, folder)
    if "sql" in entries:
        return _sql(name, value.section(_SQL))
    return _python(name, value.section(_PYTHON), folder)


def _timed(name: str, section: Section, folder: Path) -> TimedDraft:
    """A stream made from others whose rows have an event time of their own."""
    lateness_us = section.duration_us("lateness")
    if "event_time" not in section or lateness_us is None:
        given, missing = ("lateness", "event_time") if lateness_us is not None else _TIMED
        raise InputError(
            f"{section.what} has {given} and no {missing}",
            hint="A stream made from others has the event time of what it reads, or one of its "
            "own, for example event_time: at and lateness: 2min.",
            place=section.whole.place,
        )
    made: SqlDraft | PythonDraft | None = None
    if "sql" in section:
        made = _sql(untimed_name(name), section)
    elif "python" in section:
        made = _python(untimed_name(name), section, folder)
    source = section["sql"] if "sql" in section else section["from"]
    written = section["event_time"].text("a column or an expression")
    return TimedDraft(
        name, section.what, section.whole.place, source, section, made, written, lateness_us
    )


def _sql(name: str, section: Section) -> SqlDraft:
    return SqlDraft(name, section.what, section.whole.place, section["sql"].text("SQL"))


def _python(name: str, section: Section, folder: Path) -> PythonDraft:
    return PythonDraft(name, section.what, section.whole.place, section["from"], section, folder)


def _query(name: str, value: Value, nodes: tuple[NodeSpec, ...], folder: Path) -> QueryDraft:
    if value.is_scalar:
        made = SqlDraft(name, value.what, value.place, value.text("SQL or a mapping"))
        return QueryDraft(name, value.what, value.place, made)
    own = _PYTHON if "from" in value.entries() else _SQL
    is_timed = "event_time" in value.entries() or "lateness" in value.entries()
    section = value.section((*own, *(_TIMED if is_timed else ()), *_QUERY))
    given = section.entries.get("to")
    return QueryDraft(
        name,
        value.what,
        value.place,
        _made(name, section, folder, is_timed),
        read_sink(given, folder) if given else None,
        given.place if given else None,
        section.duration_us("max_latency"),
        _node_name(section["on"], nodes) if "on" in section else None,
        _groups(section["groups"]) if "groups" in section else None,
        _engine(section["engine"]) if "engine" in section else None,
        *(_joining(section["join"]) if "join" in section else (None, None)),
    )


def _engine(value: Value) -> EngineName:
    with value.pointing():
        return checked_engine(value.text("light or native"))


def _joining(value: Value) -> tuple[JoinWay, JoinSpread | None]:
    """How streams are joined, and to how many parts."""
    if value.is_scalar:
        with value.pointing():
            return checked_join_way(value.text("partitioned or native")), None
    section = value.section(("spread", "groups", "moves", "every"))
    written = section["spread"].text("auto or a number of parts")
    groups = section["groups"].whole() if "groups" in section else DEFAULT_GROUPS
    period_us = section.duration_us("every")
    with value.pointing():
        return "partitioned", join_spread(
            written,
            groups,
            section.text("moves", "load"),
            DEFAULT_PERIOD_US if period_us is None else period_us,
        )


def _made(
    name: str, section: Section, folder: Path, is_timed: bool
) -> SqlDraft | PythonDraft | TimedDraft:
    if is_timed:
        return _timed(name, section, folder)
    return _sql(name, section) if "sql" in section else _python(name, section, folder)


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
    nodes = tuple(_node(name, value) for name, value in section.entries().items())
    with section.pointing():
        tree_of({node.name: node.parent for node in nodes})
    return nodes


def _node(name: str, value: Value) -> NodeSpec:
    if value.is_nothing:
        return NodeSpec(name)
    section = value.section(("cores", "memory", "parent"), f"node {name}")
    cores = section["cores"].whole() if "cores" in section else NodeSpec.cores
    size = NodeSpec.memory_bytes
    if "memory" in section:
        with section["memory"].pointing():
            size = memory_bytes(section["memory"].text("an amount of memory, such as 1g"))
    with value.pointing():
        return NodeSpec(name, cores, size, section.text("parent") or None)


def _balance(top: Section) -> dict[str, Setting]:
    """What is said of balancing; what it means, ``balance`` knows."""
    if "balance" not in top:
        return {}
    whole = top["balance"]
    return {
        key: Setting(value.plain(), value.place, whole.file.place(whole.key_node(key)))
        for key, value in whole.entries().items()
    }
