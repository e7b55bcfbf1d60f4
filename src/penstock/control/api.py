"""The REST API of a system: everything the command line can do, for everybody with the token."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
from fastapi import FastAPI, Query, Request, Response
from fastapi import Path as PathParameter
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, PlainTextResponse
from starlette.exceptions import HTTPException

from penstock import __version__
from penstock.control.answer_models import (
    MOST,
    BalanceAnswer,
    BalanceRequest,
    DoneAnswer,
    DroppedAnswer,
    FragmentAnswer,
    FragmentMove,
    JoinAnswer,
    KeptAnswer,
    LetterAnswer,
    MoveAnswer,
    NegotiationAnswer,
    NodeAnswer,
    OperatorAnswer,
    QueryAnswer,
    Refusal,
    RowsAnswer,
    SetAsideAnswer,
    SubmitRequest,
    SubmittedAnswer,
    SystemAnswer,
)
from penstock.control.answers import (
    begins_answer,
    explain_move,
    fragments_answer,
    metrics_of,
    negotiations_answer,
    nodes_answer,
    operators_answer,
    queries_answer,
    system_answer,
)
from penstock.control.broadcast_models import StationAnswer
from penstock.control.broadcasting import devices_answer
from penstock.control.catalog import Catalog
from penstock.control.controller import Controller
from penstock.control.door import Door
from penstock.control.home import Home
from penstock.control.join_answers import joins_answer
from penstock.control.pages import PAGE_POLICY, api_page
from penstock.control.records import EventRecord
from penstock.control.refusals import REFUSALS, REFUSED_TEXTS
from penstock.control.results import read_results
from penstock.control.sharing_answers import admission_answer
from penstock.control.sharing_models import GraphAnswer
from penstock.control.system import System
from penstock.control.system_balance import balance_answer, set_balance
from penstock.control.view_api import add_view
from penstock.errors import InputError, PenstockError, RunError, UsageError, listed
from penstock.feeds.arrow import rows_of
from penstock.model.ids import ReaderId
from penstock.model.measurements import NodeSample
from penstock.model.moves import Move
from penstock.model.settings import settings_of

ARROW = "application/vnd.apache.arrow.stream"
_STATUS = {1: 400, 2: 400, 3: 503}
"""HTTP's word for each exit code."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_MOST_ADDED = 1 << 20
_SEE_DOCS = "GET /docs says what there is."


def make_app(
    home: Home,
    catalog: Catalog,
    controller: Controller,
    door: Door,
    on_down: Callable[[], None],
    is_over: Callable[[], bool] = lambda: False,
) -> FastAPI:
    """The application; ``on_down`` is called when somebody asks the system to stop.

    ``door`` gives out the codes with which browsers are let in; those who follow the system are
    served until it ``is_over``.
    """
    app = FastAPI(
        title="Penstock",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        responses=REFUSALS,
    )
    app.add_exception_handler(PenstockError, _told)
    app.add_exception_handler(RequestValidationError, _misread)
    app.add_exception_handler(HTTPException, _missing)
    app.add_exception_handler(Exception, _failed)
    _add_reading(app, home, catalog, controller)
    _add_results(app, controller)
    _add_acting(app, catalog, controller, on_down)
    add_view(app, catalog, controller, door, is_over)

    @app.get(
        "/docs",
        response_class=HTMLResponse,
        summary="This description, for people",
        responses=REFUSED_TEXTS,
    )
    def docs() -> HTMLResponse:
        return HTMLResponse(api_page(app.openapi()), headers=PAGE_POLICY)

    return app


def _told(_: Request, error: Exception) -> Response:
    assert isinstance(error, PenstockError)
    return _refusal(error, _STATUS.get(error.exit_code, 500))


def _refusal(error: PenstockError, status: int) -> Response:
    refusal = Refusal(error=error.what, hint=error.hint, text=str(error), exit_code=error.exit_code)
    # Escaped: what is quoted from a request need not be text that can be encoded.
    return Response(json.dumps(dict(refusal)), status, media_type="application/json")


def _misread(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    told = [(".".join(map(str, problem["loc"][1:])), problem["msg"]) for problem in error.errors()]
    wrong = [f"{where}: {why}" if where else why for where, why in told]
    what = f"{request.method} {request.url.path} was given something else than it takes"
    return _refusal(UsageError(f"{what}; {'; '.join(wrong)}", hint=_SEE_DOCS), 422)


def _missing(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    what = f"there is no {request.method} {request.url.path}"
    return _refusal(UsageError(what, hint=_SEE_DOCS), error.status_code)


def _failed(request: Request, error: Exception) -> Response:
    what = f"the controller failed ({type(error).__name__})"
    hint = "Its log says more: penstock logs controller."
    return _refusal(RunError(what, hint=hint), 500)


def _add_reading(app: FastAPI, home: Home, catalog: Catalog, controller: Controller) -> None:
    @app.get("/api/system", summary="Nodes, queries, fragments and the latest moves")
    def system() -> SystemAnswer:
        return system_answer(catalog, controller.system(), controller.notices.set_aside())

    @app.get("/api/devices", summary="Broadcasts: cuts, airtime, and what devices say they use")
    def devices() -> list[StationAnswer]:
        return [StationAnswer(**station) for station in devices_answer(home)]

    @app.get("/api/nodes", summary="Every node: what it has, uses and runs")
    def nodes() -> list[NodeAnswer]:
        return nodes_answer(catalog)

    @app.get("/api/nodes/{name}/series", summary="What a node measured, as a bounded series")
    def series(name: str, last: Annotated[int, Query(ge=1, le=600)] = 60) -> list[NodeSample]:
        known = [node.name for node in catalog.nodes()]
        if name not in known:
            raise InputError(f"no node {name}", hint=f"There are {listed(known)}.")
        return list(catalog.samples(name, last))

    @app.get("/api/queries", summary="What was submitted")
    def queries() -> list[QueryAnswer]:
        return queries_answer(catalog, controller.system(), controller.notices.set_aside())

    @app.get("/api/queries/{name}/sharing", summary="What it computes, and what it reads of whom")
    def graph(name: str) -> GraphAnswer:
        return controller.graph(name)

    @app.get("/api/fragments", summary="Every fragment and intake: where it is and how it does")
    def fragments() -> list[FragmentAnswer]:
        return fragments_answer(catalog, controller.system(), controller.notices.set_aside())

    @app.get("/api/operators", summary="Every operator: its rows, and its cost by estimate")
    def operators() -> list[OperatorAnswer]:
        return operators_answer(catalog, controller.system())

    @app.get("/api/balance", summary="How the system is balanced, and who said so")
    def balance() -> BalanceAnswer:
        return balance_answer(catalog)

    @app.get("/api/joins", summary="Joins in parts: who owns which groups, and how parts fare")
    def joins() -> list[JoinAnswer]:
        return joins_answer(controller.groups, catalog, home.state)

    @app.get("/api/moves", summary="The latest moves, oldest first")
    def moves(last: Annotated[int, Query(ge=1, le=1_000)] = 50) -> list[MoveAnswer]:
        return [MoveAnswer.of(move) for move in catalog.moves(last=last)]

    @app.get("/api/moves/{number}", summary="One move, and the numbers it rests on")
    def one_move(number: Annotated[int, PathParameter(ge=0, le=MOST)]) -> MoveAnswer:
        found = catalog.move(number)
        if found is None:
            last = [str(move.id) for move in catalog.moves(last=5)]
            raise InputError(f"no move {number}", hint=f"The latest are {listed(last)}.")
        return explain_move(catalog, found)

    @app.get("/api/negotiations", summary="What neighbours in a tree offered each other, and why")
    def negotiations(
        last: Annotated[int, Query(ge=1, le=2_000)] = 100,
    ) -> list[NegotiationAnswer]:
        return negotiations_answer(catalog, last)

    @app.get("/api/events", summary="What was decided and why, oldest first")
    def events(
        after: Annotated[int, Query(ge=0, le=MOST)] = 0,
        last: Annotated[int, Query(ge=1, le=2_000)] = 100,
    ) -> list[EventRecord]:
        return list(catalog.events(after, last))

    @app.get(
        "/api/logs/{name}",
        response_class=PlainTextResponse,
        summary="The end of a log, or what was added to it; X-End is where to go on",
        responses=REFUSED_TEXTS,
    )
    def logs(
        name: str,
        lines: Annotated[int, Query(ge=1, le=10_000)] = 100,
        after: Annotated[int | None, Query(ge=0, le=MOST)] = None,
    ) -> PlainTextResponse:
        known = ["controller", *(node.name for node in catalog.nodes())]
        if name not in known:
            raise InputError(f"no log of {name}", hint=f"There are {listed(known)}.")
        text, end = _tail(home.log(name), lines) if after is None else added(home.log(name), after)
        return PlainTextResponse(text, headers={"X-End": str(end)})

    @app.get(
        "/metrics",
        response_class=PlainTextResponse,
        summary="Measurements for Prometheus",
        responses=REFUSED_TEXTS,
    )
    def metrics() -> str:
        return metrics_of(catalog, controller.system(), controller.notices.set_aside()).text()


def _tail(path: Path, lines: int) -> tuple[str, int]:
    """The last lines of a log, and where to go on."""
    if not path.exists():
        return "", 0
    with path.open("rb") as file:
        start = max(0, path.stat().st_size - 200 * lines - 10_000)
        file.seek(start)
        written = file.read()
    text = "\n".join(written.decode("utf-8", "replace").splitlines()[-lines:]) + "\n"
    return text, start + len(written)


def added(path: Path, after: int) -> tuple[str, int]:
    """The lines that were added to a log, of a new one all, and where to go on.

    A line that is still being written is left for the next time.
    """
    if not path.exists():
        return "", 0
    with path.open("rb") as file:
        start = after if after <= path.stat().st_size else 0
        file.seek(start)
        whole = file.read(_MOST_ADDED).rpartition(b"\n")
    return (whole[0] + whole[1]).decode("utf-8", "replace"), start + len(whole[0] + whole[1])


def _add_results(app: FastAPI, controller: Controller) -> None:
    @app.get(
        "/api/streams/{name}/rows",
        summary="Rows of a stream or of a query's result",
        response_model=RowsAnswer,
        responses={200: {"content": {ARROW: {}}}},
    )
    def rows(
        request: Request,
        name: str,
        after: Annotated[int | None, Query(ge=0, le=MOST)] = None,
        since_s: Annotated[float | None, Query(ge=0, le=MOST)] = None,
        most_rows: Annotated[int, Query(ge=1, le=1_000_000)] = 10_000,
        wait_s: Annotated[float, Query(ge=0, le=30)] = 0.0,
        groups: Annotated[str | None, Query(max_length=1_000)] = None,
    ) -> Response:
        channel = controller.channel(_stream(controller, name))
        system = controller.system()
        columns = system.streams[name].shape.schema.names
        wanted = None if groups is None else _groups(system, name, groups)
        if after is None and since_s is not None:
            after = channel.first_since(since_s)
        found = read_results(channel, columns, after, most_rows, wait_s, time.sleep, wanted)
        headers = {"X-Next": str(found.next), "X-Ended": str(found.ended).lower()}
        if request.headers.get("accept") == ARROW:
            return Response(_arrow(found.rows), media_type=ARROW, headers=headers)
        listed_rows = rows_of(found.rows) if found.rows is not None else []
        answer = RowsAnswer(next=found.next, ended=found.ended, rows=_plain(listed_rows))
        return Response(answer.model_dump_json(), media_type="application/json", headers=headers)

    @app.get("/api/set_aside", summary="Streams of which rows could not be used: how many, and why")
    def set_aside() -> list[SetAsideAnswer]:
        return controller.notices.set_aside()

    @app.get(
        "/api/streams/{name}/dead_letters",
        summary="The latest rows that could not be used",
        response_model_exclude_unset=True,
    )
    def dead_letters(
        name: str, last: Annotated[int, Query(ge=1, le=100_000)] = 1_000
    ) -> list[LetterAnswer]:
        return controller.notices.dead_letters(name, last)

    @app.put("/api/streams/{name}/readers/{reader}", summary="Keep rows until this reader has them")
    def keep(
        name: str, reader: str, at: Annotated[int | None, Query(ge=0, le=MOST)] = None
    ) -> KeptAnswer:
        channel = controller.channel(_stream(controller, name))
        channel.register(_reader(reader))
        if at is not None:
            channel.advance(_reader(reader), at)
        return KeptAnswer(oldest=channel.oldest())

    @app.delete("/api/streams/{name}/readers/{reader}", summary="Keep nothing for it any more")
    def forget(name: str, reader: str) -> DoneAnswer:
        controller.channel(_stream(controller, name)).forget(_reader(reader))
        return DoneAnswer()


def _stream(controller: Controller, name: str) -> str:
    """The name, if there is such a stream: paths are never made of anything else."""
    known = controller.system().streams
    if name not in known:
        raise InputError(f"no stream {name}", hint=f"There are {listed(known)}.")
    return name


def _groups(system: System, stream: str, written: str) -> frozenset[int]:
    kept = system.groups(stream)
    if kept is None:
        raise InputError(
            f"the rows of {stream} are not kept in groups",
            hint="Give the query groups: {by: COLUMN, count: N}, or read all of its rows.",
        )
    return kept.named(written)


def _reader(name: str) -> ReaderId:
    if not _NAME.fullmatch(name):
        raise InputError(f"{name!r} is no name for a reader", hint="Use letters, digits and _.")
    return ReaderId(f"outside_{name}")


def _arrow(rows: pa.Table | None) -> bytes:
    if rows is None:
        return b""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())


def _plain(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {key: value if _is_plain(value) else str(value) for key, value in row.items()}
        for row in rows
    ]


def _is_plain(value: object) -> bool:
    """Whether JSON has it: not so times, and numbers that are none."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int | str | bool | None)


def _add_acting(
    app: FastAPI, catalog: Catalog, controller: Controller, on_down: Callable[[], None]
) -> None:
    @app.post("/api/queries", status_code=201, summary="Submit a deployment or a query")
    def submit(asked: SubmitRequest, response: Response) -> SubmittedAnswer:
        units, proposal = controller.take_in(asked)
        number = proposal.asked.id
        says_balance = proposal.system.deployments[number].balance
        if asked.dry_run:
            response.status_code = 200
        return SubmittedAnswer(
            name=asked.name,
            fragments=[unit.name for unit in units if not unit.is_unread],
            unread=[unit.name for unit in units if unit.is_unread],
            begins=[] if asked.dry_run else begins_answer(units),
            balance=balance_answer(catalog) if says_balance else None,
            sharing=controller.sharing_of(proposal)
            if asked.dry_run
            else controller.sharing(asked.name),
            admission=admission_answer(proposal),
            dry_run=asked.dry_run,
            warnings=controller.notices.room_warnings(units),
        )

    @app.put("/api/balance", summary="Have the system balanced in another way")
    def set_how(asked: BalanceRequest) -> BalanceAnswer:
        if "policy" in asked.settings:
            raise InputError("policy is among the settings", hint="Name it once, beside them.")
        set_balance(catalog, settings_of({"policy": asked.policy, **asked.settings}))
        return balance_answer(catalog)

    @app.delete("/api/queries/{name}", summary="Stop a submission and forget it")
    def drop(name: str, keep_data: bool = False) -> DroppedAnswer:
        kept = controller.drop(name, keep_data=keep_data)
        return DroppedAnswer(name=name, kept=None if kept is None else str(kept))

    @app.post("/api/moves", status_code=202, summary="Move fragments, as one plan")
    def move(asked: list[FragmentMove]) -> list[MoveAnswer]:
        begun = controller.move([Move(move.fragment, move.node, move.reason) for move in asked])
        return [MoveAnswer.of(move) for move in begun]

    @app.post("/api/down", status_code=202, summary="Stop the nodes and the controller")
    def down() -> DoneAnswer:
        on_down()
        return DoneAnswer()
