"""The client's side of the REST API."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
import pyarrow as pa
from pydantic import TypeAdapter

from penstock.control.answer_models import (
    BalanceAnswer,
    DroppedAnswer,
    FragmentAnswer,
    FragmentMove,
    JoinAnswer,
    KeptAnswer,
    LetterAnswer,
    LoginCode,
    MoveAnswer,
    NegotiationAnswer,
    NodeAnswer,
    OperatorAnswer,
    QueryAnswer,
    Refusal,
    RowsAnswer,
    SubmitRequest,
    SubmittedAnswer,
    SystemAnswer,
    VersionAnswer,
)
from penstock.control.api_model import plain
from penstock.control.broadcast_models import StationAnswer
from penstock.control.home import Home
from penstock.control.records import UNREADABLE, EventRecord, SubmissionKind
from penstock.control.sharing_models import GraphAnswer
from penstock.errors import InputError, PenstockError, RunError, UnreachableError, UsageError
from penstock.model.beginnings import StartKind

KINDS: dict[int, type[PenstockError]] = {
    1: InputError,
    2: UsageError,
    3: UnreachableError,
    4: RunError,
}
_ARROW = "application/vnd.apache.arrow.stream"
Told = TypeVar("Told")
_DROPPED = TypeAdapter(DroppedAnswer)
_EVENTS = TypeAdapter(list[EventRecord])
_LOGIN = TypeAdapter(LoginCode)
_BALANCE = TypeAdapter(BalanceAnswer)
_FRAGMENTS = TypeAdapter(list[FragmentAnswer])
_KEPT = TypeAdapter(KeptAnswer)
_LETTERS = TypeAdapter(list[LetterAnswer])
_JOINS = TypeAdapter(list[JoinAnswer])
_MOVE = TypeAdapter(MoveAnswer)
_MOVES = TypeAdapter(list[MoveAnswer])
_NEGOTIATIONS = TypeAdapter(list[NegotiationAnswer])
_NODES = TypeAdapter(list[NodeAnswer])
_STATIONS = TypeAdapter(list[StationAnswer])
_OPERATORS = TypeAdapter(list[OperatorAnswer])
_QUERIES = TypeAdapter(list[QueryAnswer])
_ROWS = TypeAdapter(RowsAnswer)
_SUBMITTED = TypeAdapter(SubmittedAnswer)
_SYSTEM = TypeAdapter(SystemAnswer)
_VERSION = TypeAdapter(VersionAnswer)
_GRAPH = TypeAdapter(GraphAnswer)


@dataclass(frozen=True)
class LogPart:
    """A part of a log, and where it ends."""

    text: str
    end: int


class Client:
    """Talks to the controller of one system."""

    def __init__(
        self, url: str, token: str, timeout_s: float = 60.0, home: Home | None = None
    ) -> None:
        self.url = url
        self._home = home
        self._http = httpx.Client(
            base_url=url,
            headers={"Authorization": f"Bearer {token}"},
            timeout=timeout_s,
            # Of this machine: a proxy has no business with it.
            trust_env=False,
        )

    @classmethod
    def of(cls, home: Home, timeout_s: float = 60.0) -> Client:
        """The client of the system in this folder."""
        return cls(home.address().url, home.token(), timeout_s, home)

    def _answer(self, method: str, path: str, **given: Any) -> httpx.Response:
        try:
            answer = self._http.request(method, path, **given)
        except httpx.TransportError as error:
            if self._home is not None and self._home.is_stopped:
                raise self._home.stopped() from None
            raise UnreachableError(
                f"the controller at {self.url} does not answer ({error})",
                hint="Its queries go on without it. Start it again with penstock up.",
            ) from None
        if answer.is_success:
            return answer
        raise _error(answer)

    def _told(self, kind: TypeAdapter[Told], method: str, path: str, **given: Any) -> Told:
        answer = self._answer(method, path, **given)
        try:
            return kind.validate_json(answer.content)
        except ValueError:
            raise _no_controller(answer) from None

    def system(self) -> SystemAnswer:
        """Nodes, queries, fragments and the latest moves."""
        return self._told(_SYSTEM, "GET", "/api/system")

    def version(self) -> str:
        """The version of Penstock that answers, whatever else that one says."""
        return self._told(_VERSION, "GET", "/api/system").version

    def devices(self) -> list[StationAnswer]:
        """Broadcasts: cuts, airtime, and what devices say they use."""
        return self._told(_STATIONS, "GET", "/api/devices")

    def nodes(self) -> list[NodeAnswer]:
        """Every node: what it has, uses and runs."""
        return self._told(_NODES, "GET", "/api/nodes")

    def queries(self) -> list[QueryAnswer]:
        """What was submitted."""
        return self._told(_QUERIES, "GET", "/api/queries")

    def graph(self, name: str) -> GraphAnswer:
        """What a submission computes itself, what it reads of whom, and what was projected."""
        return self._told(_GRAPH, "GET", f"/api/queries/{_part(name)}/sharing")

    def fragments(self) -> list[FragmentAnswer]:
        """Every fragment and intake: where it is and how it does."""
        return self._told(_FRAGMENTS, "GET", "/api/fragments")

    def operators(self) -> list[OperatorAnswer]:
        """Every operator: its rows, and its cost by estimate."""
        return self._told(_OPERATORS, "GET", "/api/operators")

    def joins(self) -> list[JoinAnswer]:
        """Joins in parts: who owns which groups, and how parts fare."""
        return self._told(_JOINS, "GET", "/api/joins")

    def moves(self, last: int) -> list[MoveAnswer]:
        """The latest moves, oldest first."""
        return self._told(_MOVES, "GET", "/api/moves", params={"last": last})

    def events(self, last: int) -> list[EventRecord]:
        """What was decided and why, oldest first."""
        return self._told(_EVENTS, "GET", "/api/events", params={"last": last})

    def balance(self) -> BalanceAnswer:
        """How the system is balanced, and who said so."""
        return self._told(_BALANCE, "GET", "/api/balance")

    def set_balance(
        self, policy: str, settings: Mapping[str, str | float | int | bool | None] | None = None
    ) -> BalanceAnswer:
        """Has the system balanced by a policy, with the usual settings but for these."""
        asked = {"policy": policy, "settings": dict(settings or {})}
        return self._told(_BALANCE, "PUT", "/api/balance", json=asked)

    def negotiations(self, last: int) -> list[NegotiationAnswer]:
        """The latest negotiations of neighbours in a tree, oldest first."""
        return self._told(_NEGOTIATIONS, "GET", "/api/negotiations", params={"last": last})

    def login_link(self) -> str:
        """An address that logs a browser in to the dashboard, once and within a minute."""
        return f"{self.url}{self._told(_LOGIN, 'POST', '/api/login_codes').path}"

    def submit(
        self,
        name: str,
        kind: SubmissionKind,
        text: str,
        folder: str,
        max_latency_us: int | None = None,
        start: StartKind = "now",
        replace: bool = False,
        share: bool = True,
        force: bool = False,
        dry_run: bool = False,
    ) -> SubmittedAnswer:
        """Submits a deployment or a query that counts from ``start`` on; what it came to.

        What runs already is shared, unless it is not to ``share`` anything. One that does not fit
        is taken in by ``force``; a ``dry_run`` only tells what would come of it.
        With ``replace`` it takes the place of one that has its name.
        """
        # Unchecked: what is wrong with it the controller says best.
        asked = SubmitRequest.model_construct(
            name=name,
            kind=kind,
            text=text,
            folder=folder,
            max_latency_us=max_latency_us,
            start=start,
            replace=replace,
            share=share,
            force=force,
            dry_run=dry_run,
        )
        return self._told(_SUBMITTED, "POST", "/api/queries", json=dict(asked))

    def await_running(self, name: str, patience_s: float = 120.0) -> QueryAnswer:
        """Waits until a submission runs; raises if a part of it fails."""

        def running() -> QueryAnswer | None:
            mine = next((query for query in self.queries() if query.name == name), None)
            if mine is None:
                raise RunError(f"{name} is not there any more", hint="Was it dropped?")
            if mine.state in ("failed", UNREADABLE):
                parts = [part for part in self.fragments() if part.name in mine.fragments]
                told = [f"{part.name}: {part.error}" for part in parts if part.error]
                raise RunError(f"{name} does not run: {'; '.join(told)}")
            return mine if mine.state in ("running", "held back", "finished") else None

        return await_that(running, patience_s, f"{name} does not run yet")

    def drop(self, name: str, keep_data: bool = False) -> DroppedAnswer:
        """Stops a submission and forgets it; where its data is, if that is to be kept."""
        given = {"keep_data": True} if keep_data else {}
        return self._told(_DROPPED, "DELETE", f"/api/queries/{_part(name)}", params=given)

    def move(self, fragment: str, node: str) -> MoveAnswer:
        """Begins to move a fragment."""
        return self.move_all({fragment: node})[0]

    def move_all(self, nodes: Mapping[str, str]) -> list[MoveAnswer]:
        """Begins to move fragments to these nodes, as one plan."""
        asked = [FragmentMove(fragment=fragment, node=node) for fragment, node in nodes.items()]
        return self._told(_MOVES, "POST", "/api/moves", json=plain(asked))

    def await_move(self, number: int, patience_s: float = 60.0) -> MoveAnswer:
        """Waits for a move to end, well or not."""

        def ended() -> MoveAnswer | None:
            mine = next((move for move in self.moves(last=100) if move.id == number), None)
            if mine is None:
                raise RunError(f"move {number} is not known any more", hint="Was it dropped?")
            return mine if mine.ended_s is not None else None

        return await_that(ended, patience_s, f"move {number} is not done")

    def await_pause(self, number: int, patience_s: float = 10.0) -> MoveAnswer:
        """A move that is done, with its pause if the first batch comes in time.

        Where nothing arrives there is no batch, and nothing has been waited for.
        """
        until_s = time.monotonic() + patience_s
        while True:
            found = self.explain(number)
            if found.pause_s is not None or time.monotonic() > until_s:
                return found
            time.sleep(0.05)

    def explain(self, number: int) -> MoveAnswer:
        """A move with the numbers it rests on."""
        return self._told(_MOVE, "GET", f"/api/moves/{number}")

    def log(self, name: str, lines: int) -> str:
        """The end of a log."""
        return self.log_part(name, lines).text

    def log_part(self, name: str, lines: int, after: int | None = None) -> LogPart:
        """The end of a log, or what was added ``after`` a place that an earlier part named."""
        given = {"lines": lines} | ({} if after is None else {"after": after})
        answer = self._answer("GET", f"/api/logs/{_part(name)}", params=given)
        return LogPart(answer.text, int(answer.headers.get("X-End", 0)))

    def down(self) -> None:
        """Asks the system to stop."""
        self._answer("POST", "/api/down")

    def keep(self, stream: str, reader: str, at: int | None = None) -> int:
        """Has rows kept until this reader has them; the oldest batch there is."""
        path = f"/api/streams/{_part(stream)}/readers/{_part(reader)}"
        given = {} if at is None else {"at": at}
        return self._told(_KEPT, "PUT", path, params=given).oldest

    def batches(
        self,
        stream: str,
        after: int | None = None,
        wait_s: float = 0.0,
        groups: str | None = None,
    ) -> tuple[pa.Table | None, int, bool]:
        """Rows of a stream as Arrow, the number to go on with, and whether that was all."""
        given = {"wait_s": wait_s, "most_rows": 100_000, "after": after, "groups": groups}
        parameters = {name: value for name, value in given.items() if value is not None}
        answer = self._answer(
            "GET",
            f"/api/streams/{_part(stream)}/rows",
            params=parameters,
            headers={"Accept": _ARROW},
        )
        rows = pa.ipc.open_stream(answer.content).read_all() if answer.content else None
        return rows, int(answer.headers["X-Next"]), answer.headers["X-Ended"] == "true"

    def rows(
        self,
        stream: str,
        after: int | None,
        since_s: float | None,
        wait_s: float,
        groups: str | None = None,
    ) -> RowsAnswer:
        """Rows of a stream as plain values, the number to go on with, and whether that was all.

        From batch ``after`` on, or from what came out at ``since_s`` or later, or all; of some
        ``groups`` only, such as ``0-2,7``.
        """
        given: dict[str, float | int | str | None] = {
            "after": after,
            "since_s": since_s,
            "wait_s": wait_s,
            "groups": groups,
        }
        known = {name: value for name, value in given.items() if value is not None}
        return self._told(_ROWS, "GET", f"/api/streams/{_part(stream)}/rows", params=known)

    def dead_letters(self, stream: str, last: int) -> list[LetterAnswer]:
        """The latest rows of a stream that could not be used, oldest first."""
        path = f"/api/streams/{_part(stream)}/dead_letters"
        return self._told(_LETTERS, "GET", path, params={"last": last})

    def results(
        self, stream: str, patience_s: float | None = None, groups: str | None = None
    ) -> Iterator[pa.Table]:
        """Rows as they come, until the stream ends or nothing has come for so long."""
        at, ended, is_empty = None, False, True
        quiet_since_s = time.monotonic()
        while not ended:
            rows, at, ended = self.batches(stream, at, 1.0, groups)
            if rows is not None and rows.num_rows:
                is_empty = False
                quiet_since_s = time.monotonic()
                yield rows
            elif patience_s is not None and time.monotonic() - quiet_since_s > patience_s:
                return
        if is_empty:
            self.check_readable(stream)

    def check_readable(self, stream: str) -> None:
        """Raises if a stream has ended because nothing could be read of what it is made of."""
        begins = [begin for query in self.queries() for begin in query.begins]
        makers = {stream, *(begin.fragment for begin in begins if stream in begin.queries)}
        for fragment in self.fragments():
            if fragment.name in makers and fragment.state == UNREADABLE:
                raise InputError(
                    f"{stream} has no rows: {fragment.error}",
                    hint="Look at penstock status, correct the schema, the format or the files, "
                    "and submit it again.",
                )

    def close(self) -> None:
        """Gives back the connection."""
        self._http.close()


def _part(name: str) -> str:
    """A name as a part of an address, whatever is in it."""
    return quote(name, safe="")


def _error(answer: httpx.Response) -> PenstockError:
    try:
        told = Refusal.model_validate_json(answer.content)
        kind = KINDS[told.exit_code]
    except (ValueError, KeyError):
        return _no_controller(answer)
    error = kind(told.error, hint=told.hint)
    # Otherwise it points at a place in what was written.
    return error if str(error) == told.text else kind(told.text)


def _no_controller(answer: httpx.Response) -> UnreachableError:
    at = f"{answer.url.scheme}://{answer.url.netloc.decode()}"
    return UnreachableError(
        f"what answers at {at} is no controller (status {answer.status_code})",
        hint="Another program may have taken its port. Start it again with penstock up.",
    )


def await_that(condition: Callable[[], Told | None], patience_s: float, what: str) -> Told:
    """Waits until a condition gives something."""
    until_s = time.monotonic() + patience_s
    while True:
        found = condition()
        if found is not None:
            return found
        if time.monotonic() > until_s:
            raise RunError(f"{what} after {patience_s:g} s", hint="Look at penstock status.")
        time.sleep(0.05)
