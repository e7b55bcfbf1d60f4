"""The client: what it sends, and what it makes of answers that are none."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import copy
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from penstock.control.answer_models import BalanceAnswer, MoveAnswer, SystemAnswer
from penstock.control.api_model import plain
from penstock.control.client import Client, await_that
from penstock.control.home import Address, Home
from penstock.control.records import MoveRecord
from penstock.errors import (
    InputError,
    PenstockError,
    RunError,
    UnreachableError,
    UsageError,
)

URL = "http://127.0.0.1:7400"
Handler = Callable[[httpx.Request], httpx.Response]
MOVE = plain(MoveAnswer.of(MoveRecord(7, "q", "a", "b", "preparing", False, 1.0)))
BALANCE = BalanceAnswer(
    policy="off", settings={}, set_by="nobody", submission=None, at_s=None, text="off"
)
SYSTEM = SystemAnswer(
    version="1", nodes=[], queries=[], fragments=[], moves=[], set_aside=[], balance=BALANCE
)
ANSWERS = {
    "/api/moves": [MOVE],
    "/api/system": plain(SYSTEM),
    "/api/queries": {"name": "q", "fragments": ["q"], "unread": [], "begins": []},
}


def client(handler: Handler) -> Client:
    """A client whose requests are answered here."""
    made = copy(_client())
    transport = httpx.MockTransport(handler)
    made._http = httpx.Client(base_url=URL, headers=made._http.headers, transport=transport)
    return made


@cache
def _client() -> Client:
    # It takes a while to get ready for certificates that it never sees here.
    made = Client(URL, "right")
    made.close()
    return made


def answering(*answers: httpx.Response) -> Client:
    """A client that gets these answers, one after the other."""
    left = iter(answers)
    return client(lambda _: next(left))


def failure(work: Callable[[], object]) -> PenstockError:
    with pytest.raises(PenstockError) as error:
        work()
    return error.value


class TestAskingNobody:
    def test_a_controller_that_is_dead(self) -> None:
        made = Client("http://127.0.0.1:1", "token")
        error = failure(made.system)
        made.close()
        assert isinstance(error, UnreachableError)
        assert error.exit_code == 3
        text = str(error)
        assert text.startswith("the controller at http://127.0.0.1:1 does not answer (")
        assert "Connection refused" in text
        assert text.endswith("Its queries go on without it. Start it again with penstock up.")

    def test_no_proxy_stands_between(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It would get to see the token."""
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, "http://127.0.0.1:2")
        made = Client("http://127.0.0.1:1", "token")
        assert made._http._mounts == {}
        made.close()

    @pytest.mark.parametrize(
        "error",
        [httpx.ReadTimeout("too slow"), httpx.RemoteProtocolError("gone"), httpx.ReadError("cut")],
    )
    def test_one_that_stops_in_the_middle(self, error: httpx.TransportError) -> None:
        def broken(_: httpx.Request) -> httpx.Response:
            raise error

        assert str(failure(client(broken).system)) == (
            f"the controller at {URL} does not answer ({error}). "
            "Its queries go on without it. Start it again with penstock up."
        )

    def test_one_that_was_stopped_is_not_said_to_go_on(self, tmp_path: Path) -> None:
        home = Home(tmp_path)
        home.prepare()
        home.tell_address(Address("http://127.0.0.1:1", 1))
        made = Client.of(home)
        assert "Its queries go on without it." in str(failure(made.system))
        home.tell_stopped(True)
        assert str(failure(made.system)) == (
            f"the system in {tmp_path} has been stopped. penstock up goes on where it stopped."
        )
        made.close()

    def test_a_folder_without_a_system(self, tmp_path: Any) -> None:
        home = Home(tmp_path)
        assert "no controller has been started" in str(failure(lambda: Client.of(home)))
        home.tell_address(Address(URL, 1))
        assert "its token cannot be read" in str(failure(lambda: Client.of(home)))


class TestRefusals:
    @pytest.mark.parametrize(
        ("code", "kind"), [(1, InputError), (2, UsageError), (3, UnreachableError), (4, RunError)]
    )
    def test_they_are_raised_as_what_they_are(self, code: int, kind: type[PenstockError]) -> None:
        told = {
            "text": "no node c. There are a, b.",
            "exit_code": code,
            "error": "no node c",
            "hint": "There are a, b.",
        }
        error = failure(answering(httpx.Response(400, json=told)).system)
        assert type(error) is kind
        assert (error.what, error.hint) == ("no node c", "There are a, b.")
        assert (str(error), error.exit_code) == ("no node c. There are a, b.", code)

    @pytest.mark.parametrize(
        "answer",
        [
            httpx.Response(404, html="<h1>Not Found</h1>"),
            httpx.Response(500, text="Internal Server Error"),
            httpx.Response(200, html="<h1>Welcome</h1>"),
            httpx.Response(200, content=b""),
            httpx.Response(200, content=b"\xff\xfe"),
            httpx.Response(302, headers={"Location": "http://elsewhere/"}),
            httpx.Response(400, json=["error"]),
            httpx.Response(400, json={"detail": "Not Found"}),
            httpx.Response(400, json={"exit_code": 9, "text": "odd"}),
            httpx.Response(400, json={"exit_code": [], "text": "odd"}),
        ],
    )
    def test_another_program_at_its_port_is_told_from_a_controller(
        self, answer: httpx.Response
    ) -> None:
        error = failure(answering(answer).system)
        assert isinstance(error, UnreachableError)
        assert str(error) == (
            f"what answers at {URL} is no controller (status {answer.status_code}). "
            "Another program may have taken its port. Start it again with penstock up."
        )

    def test_it_does_not_follow_elsewhere(self) -> None:
        """The token would go with it."""
        asked: list[str] = []

        def away(request: httpx.Request) -> httpx.Response:
            asked.append(str(request.url))
            return httpx.Response(307, headers={"Location": "http://evil.example/"})

        failure(client(away).system)
        assert asked == [f"{URL}/api/system"]


class TestAsking:
    @pytest.fixture
    def asked(self) -> list[httpx.Request]:
        return []

    @pytest.fixture
    def kind(self, asked: list[httpx.Request]) -> Iterator[Client]:
        """One that is given whatever it wants."""

        def answer(request: httpx.Request) -> httpx.Response:
            asked.append(request)
            body = ANSWERS.get(request.url.path, {"oldest": 3, "name": "peaks"})
            return httpx.Response(200, json=body, headers={"X-Next": "0", "X-Ended": "false"})

        made = client(answer)
        yield made
        made.close()

    def test_the_token_is_always_sent(self, kind: Client, asked: list[httpx.Request]) -> None:
        kind.system()
        kind.down()
        assert [one.headers["Authorization"] for one in asked] == ["Bearer right"] * 2

    def test_names_are_names_whatever_is_in_them(
        self, kind: Client, asked: list[httpx.Request]
    ) -> None:
        """Otherwise ``drop a?b`` would drop a."""
        name, quoted = "../a?b#c d%2f", b"..%2Fa%3Fb%23c%20d%252f"
        kind.drop(name)
        kind.log(name, 5)
        kind.keep(name, name, at=4)
        assert [one.url.raw_path for one in asked] == [
            b"/api/queries/" + quoted,
            b"/api/logs/" + quoted + b"?lines=5",
            b"/api/streams/" + quoted + b"/readers/" + quoted + b"?at=4",
        ]

    def test_what_is_submitted_and_moved(self, kind: Client, asked: list[httpx.Request]) -> None:
        kind.submit("q", "sql", "SELECT 1", "/data", 5)
        assert kind.move("q", "b").id == 7
        assert [json.loads(one.content) for one in asked] == [
            {
                "name": "q",
                "kind": "sql",
                "text": "SELECT 1",
                "folder": "/data",
                "max_latency_us": 5,
                "start": "now",
                "replace": False,
                "share": True,
                "force": False,
                "dry_run": False,
            },
            [{"fragment": "q", "node": "b"}],
        ]

    def test_keeping(self, kind: Client, asked: list[httpx.Request]) -> None:
        assert kind.keep("peaks", "me") == 3
        assert asked[0].method == "PUT"
        assert asked[0].url.query == b""


class TestWaiting:
    def moves(self, *ended: float | None) -> Iterator[httpx.Response]:
        return (httpx.Response(200, json=[{**MOVE, "ended_s": one}]) for one in ended)

    def test_until_a_move_has_ended(self) -> None:
        made = answering(*self.moves(None, None, 5.0))
        assert made.await_move(7).ended_s == 5.0

    def test_not_for_ever(self) -> None:
        made = answering(*self.moves(*[None] * 3))
        assert str(failure(lambda: made.await_move(7, patience_s=0))) == (
            "move 7 is not done after 0 s. Look at penstock status."
        )

    def test_not_for_one_that_is_gone(self) -> None:
        made = answering(*self.moves(None))
        assert str(failure(lambda: made.await_move(8))) == (
            "move 8 is not known any more. Was it dropped?"
        )

    def test_for_anything(self) -> None:
        found = iter([None, None, {"x": 1}])
        assert await_that(lambda: next(found), 10, "nothing") == {"x": 1}


def rows(*values: int, next: int, ended: bool = False) -> httpx.Response:
    content = b""
    if values:
        sink = pa.BufferOutputStream()
        table = pa.table({"x": list(values)})
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        content = sink.getvalue().to_pybytes()
    headers = {"X-Next": str(next), "X-Ended": str(ended).lower()}
    return httpx.Response(200, content=content, headers=headers)


class TestRows:
    def test_a_batch(self) -> None:
        table, next, ended = answering(rows(1, 2, next=5, ended=True)).batches("peaks", 3)
        assert table is not None
        assert (table.to_pydict(), next, ended) == ({"x": [1, 2]}, 5, True)
        assert answering(rows(next=3)).batches("peaks") == (None, 3, False)

    def test_it_goes_on_from_where_it_was_until_the_end(self) -> None:
        asked: list[str | None] = []
        answers = iter([rows(1, next=2), rows(next=4), rows(2, 3, next=5, ended=True)])

        def answer(request: httpx.Request) -> httpx.Response:
            asked.append(request.url.params.get("after"))
            return next(answers)

        found = [table.to_pydict()["x"] for table in client(answer).results("peaks")]
        assert found == [[1], [2, 3]]
        assert asked == [None, "2", "4"]

    def test_or_until_nothing_has_come_for_so_long(self) -> None:
        made = answering(rows(1, next=1), rows(next=1), rows(next=1))
        assert len([*made.results("peaks", patience_s=0.0)]) == 1
