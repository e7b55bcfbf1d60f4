"""The routes that a dashboard needs beside the others; for everybody, like those."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Annotated

from fastapi import FastAPI, Query
from fastapi.responses import StreamingResponse

from penstock.control.answer_models import LoginCode
from penstock.control.answers import fragments_answer, operators_answer
from penstock.control.catalog import Catalog
from penstock.control.controller import Controller
from penstock.control.door import CODE_VALID_S, Door
from penstock.control.history import History, history
from penstock.control.live import LiveText, events
from penstock.control.refusals import REFUSED_TEXTS
from penstock.control.resilience import Resilience, ResilienceBook, resilience
from penstock.control.security import LOGIN
from penstock.control.troubles import Trouble
from penstock.control.view import (
    GraphUnit,
    StreamAnswer,
    View,
    graph,
    stream_called,
    streams,
    view,
)

_OBSERVED_S = 15.0
"""Over how long the rate of a stream is measured."""


class EventStream(StreamingResponse):
    """Server-sent events, for as long as somebody listens."""

    media_type = "text/event-stream"


def add_view(
    app: FastAPI,
    catalog: Catalog,
    controller: Controller,
    door: Door,
    is_over: Callable[[], bool],
) -> None:
    """Adds the routes about a system as a whole."""
    live = LiveText(lambda: view(catalog, controller).model_dump_json())
    book = ResilienceBook()

    @app.post("/api/login_codes", status_code=201, summary="A link that logs a browser in once")
    def login_code() -> LoginCode:
        return LoginCode(path=f"{LOGIN}?code={door.code()}", valid_s=CODE_VALID_S)

    @app.get("/api/view", summary="All about the system now, what is wrong, what happened last")
    def now() -> View:
        return view(catalog, controller)

    @app.get(
        "/api/live",
        response_class=EventStream,
        responses=REFUSED_TEXTS,
        summary="The same as server-sent events, whenever it changes",
    )
    def follow() -> EventStream:
        return EventStream(events(live, is_over))

    @app.get("/api/troubles", summary="What is wrong now, the worst first, and what helps")
    def wrong() -> list[Trouble]:
        return view(catalog, controller).troubles

    @app.get("/api/graph", summary="Every fragment and intake: what it reads, gives and is made of")
    def units() -> list[GraphUnit]:
        return graph(catalog, controller.system())

    @app.get("/api/streams", summary="Every stream and result: columns, SQL, who reads it")
    def all_streams() -> list[StreamAnswer]:
        return streams(catalog, controller.system())

    @app.get("/api/streams/{name}", summary="One stream or result")
    def one_stream(name: str) -> StreamAnswer:
        return stream_called(catalog, controller.system(), name)

    @app.get("/api/history", summary="What was measured of nodes and fragments lately")
    def measured(last: Annotated[int, Query(ge=1, le=600)] = 120) -> History:
        return history(catalog, last)

    @app.get("/api/resilience", summary="How much bursting the placement takes, and its rivals")
    def taken(
        x: Annotated[str | None, Query(max_length=400)] = None,
        y: Annotated[str | None, Query(max_length=400)] = None,
    ) -> Resilience:
        return _resilience(catalog, controller, book, (x, y))


def _resilience(
    catalog: Catalog,
    controller: Controller,
    book: ResilienceBook,
    axes: tuple[str | None, str | None],
) -> Resilience:
    system, now_s = controller.system(), catalog.now_s()
    nodes = [node for node in catalog.nodes() if node.is_alive(now_s)]
    made = {
        operator.operator: operator.rows_out_per_s for operator in operators_answer(catalog, system)
    }

    def observed(name: str) -> float | None:
        if name not in system.streams:
            return made.get(name)
        return _read_rate(name) or stream_rate(controller, name, _OBSERVED_S)

    def _read_rate(stream: str) -> float | None:
        """What those that read this stream alone read of it."""
        rates = [
            measured[unit.name].rows_in_per_s
            for unit in system.units.values()
            if unit.reads == (stream,) and unit.name in measured
        ]
        return max(rates, default=None)

    fragments = fragments_answer(catalog, system)
    measured = {
        fragment.name: fragment.status for fragment in fragments if fragment.status is not None
    }
    places = {unit.name: unit.node for unit in catalog.units()}
    estimates = controller.estimates()
    return resilience(system, nodes, places, estimates, observed, book, axes)


def stream_rate(controller: Controller, stream: str, over_s: float) -> float | None:
    """Rows per second that have come into a channel lately; None where that is not known.

    Batches that everybody has read are gone soon: then what is still there counts, from the
    oldest of them on.
    """
    channel, now_s = controller.channel(stream), time.time()
    first = channel.first_since(now_s - over_s)
    rows = [manifest.rows for manifest in channel.newer(first)]
    if not rows:
        return 0.0
    if first > min(channel.sequences(), default=first):
        return sum(rows) / over_s
    return kept_rate(rows, now_s - channel.committed_s(first))


def kept_rate(rows: Sequence[int], age_s: float) -> float | None:
    """The rate of batches that are kept: the rows that came after the oldest, since it came.

    >>> kept_rate([500, 400, 600], 2.0), kept_rate([500], 2.0)
    (500.0, None)
    """
    return sum(rows[1:]) / age_s if len(rows) > 1 and age_s > 0 else None
