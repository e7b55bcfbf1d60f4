"""The server of a node takes messages of nodes, and of nobody else."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from control.toys import TroubledCatalog
from penstock.balance.hierarchy.messages import (
    MessageType,
    NegotiationId,
    NegotiationMessage,
    Portion,
)
from penstock.control.letters import LETTER_AT_MOST_BYTES, Letter, WordSent, read_letter
from penstock.control.message_server import MessageServer, post
from penstock.errors import InputError, UnreachableError

WORD = WordSent(life="b-1", count=1, cpu=0.5, memory_bytes=7, age_s=0.1)
LETTER = Letter(sender="b", life="b-1", to="a", loads={"b": WORD})
TOKEN = "secret"


@dataclass
class Taken:
    server: MessageServer
    letters: list[Letter] = field(default_factory=list)

    def ask(
        self, body: bytes, token: str = TOKEN, path: str = "/messages", length: str | None = None
    ) -> int:
        connection = http.client.HTTPConnection(self.server.address, timeout=5)
        headers = {"Authorization": f"Bearer {token}"}
        headers |= {} if length is None else {"Content-Length": length}
        connection.request("POST", path, body, headers)
        status = connection.getresponse().status
        connection.close()
        return status


@pytest.fixture
def taken() -> Iterator[Taken]:
    letters: list[Letter] = []
    server = MessageServer("a", TOKEN, lambda: {"a": "a-1", "b": "b-1"}, letters.append)
    yield Taken(server, letters)
    server.close()


def test_a_message_of_a_node_is_taken(taken: Taken) -> None:
    post(taken.server.address, TOKEN, LETTER)
    assert taken.letters == [LETTER]
    assert taken.server.address.startswith("127.0.0.1:")


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"sender": "z"}, "from 'z', which is no node"),
        ({"life": "b-0"}, "a former life of b"),
        ({"to": "c"}, "a message to 'c'"),
    ],
)
def test_others_are_refused_and_that_is_logged(
    taken: Taken, caplog: pytest.LogCaptureFixture, changed: dict[str, str], why: str
) -> None:
    with pytest.raises(UnreachableError, match="refused a message"):
        post(taken.server.address, TOKEN, LETTER.model_copy(update=changed))
    assert why in caplog.text
    assert taken.letters == []


def test_what_is_no_message_is_refused(taken: Taken, caplog: pytest.LogCaptureFixture) -> None:
    good = LETTER.model_dump_json().encode()
    assert taken.ask(good, token="guess") == 401
    assert taken.ask(good, path="/elsewhere") == 404
    assert taken.ask(b"{") == 400
    assert taken.ask(good.replace(b'"count":1', b'"count":-1')) == 400
    assert taken.ask(good.replace(b'"cpu":0.5', b'"cpu":NaN')) == 400
    assert taken.ask(good.replace(b'"to":"a"', b'"to":"a","also":1')) == 400
    assert taken.ask(b"", length=str(LETTER_AT_MOST_BYTES + 1)) == 413
    assert taken.ask(b"", length="many") == 413
    assert taken.letters == []
    assert "the token is missing or wrong" in caplog.text
    assert "loads.b.count: Input should be greater than or equal to 0" in caplog.text
    assert taken.ask(good) == 202


def test_a_negotiation_that_is_none_is_refused(
    taken: Taken, caplog: pytest.LogCaptureFixture
) -> None:
    record = NegotiationMessage(
        "b", "a", MessageType.CLEAR, NegotiationId("b", 1, 2), transfers=(Portion(("f",), 1.0),)
    ).as_record()
    good = Letter(sender="b", life="b-1", to="a", negotiation=record)
    for wrong in ({"type": "Take"}, {"negotiation": ["b"]}, {"transfers": [["f"], "much"]}):
        told = good.model_copy(update={"negotiation": {**record, **wrong}})
        assert taken.ask(told.model_dump_json().encode()) == 400
    assert "this is no message of a negotiation" in caplog.text
    post(taken.server.address, TOKEN, good)
    assert taken.letters == [good]


def test_a_connection_that_breaks_off_does_no_harm(taken: Taken) -> None:
    host, port = taken.server.address.split(":")
    with socket.create_connection((host, int(port))) as half:
        half.sendall(b"POST /messages HTTP/1.1\r\nContent-Length: 99\r\n")
    post(taken.server.address, TOKEN, LETTER)
    assert taken.letters == [LETTER]


def test_a_node_that_is_gone_is_said_to_be() -> None:
    server = MessageServer("a", TOKEN, dict, print)
    address = server.address
    server.close()
    with pytest.raises(UnreachableError, match="node a at 127"):
        post(address, TOKEN, LETTER)


def test_a_message_that_is_too_long_is_not_read() -> None:
    with pytest.raises(InputError, match="at most 262144"):
        read_letter(b" " * (LETTER_AT_MOST_BYTES + 1))


def test_only_living_nodes_in_their_present_lives_are_known(catalog: TroubledCatalog) -> None:
    from penstock.control.records import NodeRecord

    for name, lease_s in (("a", 60.0), ("b", 60.0), ("c", -1.0)):
        until_s = catalog.now_s() + lease_s
        catalog.join(NodeRecord(name, 1, 1, f"{name}-1", lease_until_s=until_s))
        catalog.publish(name, f"{name}-1", f"127.0.0.1:{len(name)}")
    catalog.publish("b", "b-0", "127.0.0.1:9")
    assert list(catalog.contacts()) == ["a"]
    catalog.note_heard("a", {"b": 0.5})
    assert catalog.contacts()["a"].heard == {"b": 0.5}
    catalog.forget_node("a")
    assert catalog.contacts() == {}
