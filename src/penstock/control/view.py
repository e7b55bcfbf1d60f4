"""What a dashboard shows of a system at one moment, and how its parts hang together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.control.answer_models import (
    FragmentAnswer,
    MoveAnswer,
    NodeAnswer,
    QueryAnswer,
    SetAsideAnswer,
)
from penstock.control.answers import system_answer
from penstock.control.api_model import ApiModel, plain
from penstock.control.catalog import Catalog
from penstock.control.controller import Controller
from penstock.control.records import EventRecord
from penstock.control.system import System, Unit
from penstock.control.troubles import Trouble, troubles
from penstock.errors import InputError, listed, suggestion
from penstock.model.network import Query
from penstock.model.sources import Stream

_EVENTS = 50


class OperatorPart(ApiModel):
    """An operator inside a fragment."""

    name: str
    kind: str
    inputs: list[str]


class GraphUnit(ApiModel):
    """A fragment or an intake: the streams it reads and gives, and the operators inside it.

    It is ``shared`` if several others read what it gives.
    """

    name: str
    kind: str
    submission: str
    queries: list[str]
    reads: list[str]
    gives: str
    shared: bool
    operators: list[OperatorPart]


class StreamColumn(ApiModel):
    """A column of a stream."""

    name: str
    type: str


class QueryText(ApiModel):
    """A query as it was written, and where its rows go."""

    name: str
    sql: str
    max_latency_s: float | None
    on: str | None
    sink: str


class StreamAnswer(ApiModel):
    """A stream that can be read: one from outside, or the result of queries."""

    name: str
    kind: str
    submission: str
    columns: list[StreamColumn]
    event_time: str | None
    made_by: str
    read_by: list[str]
    queries: list[QueryText]


class View(ApiModel):
    """A system as it is now: all that :class:`System` says, what is wrong, what happened last.

    ``shape`` changes when the graph does.
    """

    at_s: float
    version: str
    shape: str
    nodes: list[NodeAnswer]
    queries: list[QueryAnswer]
    fragments: list[FragmentAnswer]
    moves: list[MoveAnswer]
    set_aside: list[SetAsideAnswer]
    events: list[EventRecord]
    troubles: list[Trouble]


def view(catalog: Catalog, controller: Controller) -> View:
    """The system as it is now."""
    now_s, system = catalog.now_s(), controller.system()
    found = system_answer(catalog, system, controller.notices.set_aside())
    happened = list(catalog.events(last=_EVENTS))
    told = {**plain(found), "events": plain(happened)}
    return View(
        at_s=now_s,
        version=found.version,
        shape="-".join(map(str, sorted(system.deployments))),
        nodes=found.nodes,
        queries=found.queries,
        fragments=found.fragments,
        moves=found.moves,
        set_aside=found.set_aside,
        events=happened,
        troubles=troubles(told, _readers(system), now_s),
    )


def _readers(system: System) -> Mapping[str, list[str]]:
    """The units that read what each unit gives."""
    found: dict[str, list[str]] = {name: [] for name in system.units}
    for unit in system.units.values():
        for stream in unit.reads:
            maker = system.makers.get(stream)
            if maker is not None:
                found[maker.name].append(unit.name)
    return found


def graph(catalog: Catalog, system: System) -> list[GraphUnit]:
    """Every unit with what it reads and gives."""
    names = {submission.id: submission.name for submission in catalog.submissions()}
    readers = _readers(system)
    return [
        GraphUnit(
            name=unit.name,
            kind=unit.kind,
            submission=names.get(unit.submission, ""),
            queries=list(unit.fragment.queries) if unit.fragment else [],
            reads=list(unit.reads),
            gives=unit.gives,
            shared=len(readers[unit.name]) > 1,
            operators=_operators(unit),
        )
        for unit in system.units.values()
    ]


def _operators(unit: Unit) -> list[OperatorPart]:
    made = unit.fragment.operators if unit.fragment else ()
    return [
        OperatorPart(
            name=operator.name,
            kind=operator.kind,
            inputs=[input.stream for input in operator.inputs],
        )
        for operator in made
    ]


def streams(catalog: Catalog, system: System) -> list[StreamAnswer]:
    """Every stream that can be read."""
    names = {submission.id: submission.name for submission in catalog.submissions()}
    readers, queries = _readers(system), list(_queries(system))
    found = []
    for name, stream in system.streams.items():
        maker = system.makers.get(name)
        if maker is not None:
            mine = [query for query in queries if query.stream == name]
            submission = names.get(maker.submission, "")
            found.append(_stream(stream, maker, submission, readers[maker.name], mine))
    return found


def stream_called(catalog: Catalog, system: System, name: str) -> StreamAnswer:
    """The stream of this name; raises if there is none."""
    found = {stream.name: stream for stream in streams(catalog, system)}
    if name not in found:
        hint = f"There are {listed(found)}. {suggestion(name, found)}".strip()
        raise InputError(f"no stream {name}", hint=hint)
    return found[name]


def _queries(system: System) -> Iterable[Query]:
    return (
        query for deployment in system.deployments.values() for query in deployment.network.queries
    )


def _stream(
    stream: Stream, maker: Unit, submission: str, readers: list[str], queries: list[Query]
) -> StreamAnswer:
    return StreamAnswer(
        name=stream.name,
        kind="stream" if maker.fragment is None else "result",
        submission=submission,
        columns=[
            StreamColumn(name=field.name, type=str(field.type)) for field in stream.shape.schema
        ],
        event_time=stream.shape.event_time,
        made_by=maker.name,
        read_by=readers,
        queries=[
            QueryText(
                name=query.name,
                sql=query.text,
                max_latency_s=None if query.max_latency_us is None else query.max_latency_us / 1e6,
                on=query.on,
                sink="others" if query.sink is None else _kind(query.sink),
            )
            for query in queries
        ],
    )


def _kind(sink: object) -> str:
    """Where rows go, in a word: never an address, which may hold a password."""
    return type(sink).__name__.removesuffix("Sink").lower()
