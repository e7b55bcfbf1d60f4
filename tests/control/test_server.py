"""The controller as it is served: on the loopback, behind its guard, until it is told to stop."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from control.made_up import AMI
from penstock.control.api_model import plain
from penstock.control.client import Client
from penstock.control.home import Home
from penstock.control.launch import is_up
from penstock.control.server import main, serve
from penstock.errors import InputError, UnreachableError
from waiting import until


class Served:
    """A controller without nodes, in a thread."""

    def __init__(self, folder: Path) -> None:
        self.home = Home(folder / "system")
        self.home.prepare()
        self._thread = threading.Thread(target=serve, args=(self.home, 0))
        self._thread.start()
        until(lambda: is_up(self.home), patience_s=30)
        self.client = Client.of(self.home)

    def stop(self) -> None:
        if self._thread.is_alive():
            self.client.down()
        self.client.close()
        self._thread.join(30)
        assert not self._thread.is_alive()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    made = Served(tmp_path_factory.mktemp("server"))
    yield made
    made.stop()


def asked(served: Served, *lines: str) -> str:
    """The first line of what is answered to these lines, sent as they are."""
    host, _, port = served.client.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        head = "\r\n".join([*lines, "Connection: close", "", ""])
        connection.sendall(head.encode())
        return connection.makefile("rb").readline().decode().strip()


def test_it_says_where_it_is(served: Served) -> None:
    address = served.home.address()
    assert address.pid == os.getpid()
    assert address.url.startswith("http://127.0.0.1:")


def test_only_this_machine_can_reach_it(served: Served) -> None:
    port = int(served.client.url.rpartition(":")[2])
    listening = [
        connection.laddr.ip
        for connection in psutil.Process().net_connections("inet")
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port
    ]
    assert listening == ["127.0.0.1"]


def test_it_is_guarded(served: Served) -> None:
    host = served.client.url.removeprefix("http://")
    token = f"Authorization: Bearer {served.home.token()}"
    nodes = "GET /api/nodes HTTP/1.1"
    assert asked(served, nodes, f"Host: {host}", token) == "HTTP/1.1 200 OK"
    assert asked(served, nodes, f"Host: {host}") == "HTTP/1.1 401 Unauthorized"
    assert asked(served, nodes, "Host: evil.example", token) == "HTTP/1.1 403 Forbidden"
    assert asked(served, nodes, token) == "HTTP/1.1 400 Bad Request"
    assert asked(served, "GET /api/nodes HTTP/1.0", token) == "HTTP/1.1 403 Forbidden"
    assert asked(served, f"OPTIONS * HTTP/1.1\r\nHost: {host}") == "HTTP/1.1 401 Unauthorized"
    assert asked(served, "nonsense") == "HTTP/1.1 400 Bad Request"


def test_a_wrong_token(served: Served) -> None:
    wrong = Client(served.client.url, "wrong")
    with pytest.raises(UnreachableError) as error:
        wrong.system()
    wrong.close()
    assert str(error.value) == (
        "the token is missing or wrong. "
        "It is in the file token of the system's folder; send it as Authorization: Bearer."
    )
    assert error.value.exit_code == 3


def test_what_the_command_line_needs(served: Served) -> None:
    client = served.client
    taken_in = plain(client.submit("ami", "yaml", AMI, "."))
    expected = {
        "name": "ami",
        "fragments": ["readings", "peaks"],
        "unread": [],
        "begins": [
            {
                "fragment": "peaks",
                "queries": ["peaks"],
                "from": "start",
                "since": None,
                "untimed": False,
            }
        ],
    }
    assert {key: taken_in[key] for key in expected} == expected
    assert taken_in["admission"]["fits"]
    with pytest.raises(InputError, match="ami is already running"):
        client.submit("ami", "yaml", AMI, ".")
    with pytest.raises(InputError, match=r"no node b\. There are none"):
        client.move("peaks", "b")
    with pytest.raises(InputError, match=r"no log of a\. There are controller"):
        client.log("a", 5)
    assert client.log("controller", 5) == ""
    assert client.keep("peaks", "me") == 0
    assert client.batches("peaks") == (None, 0, False)
    client.drop("ami")
    assert client.system().queries == []


def test_it_stops_when_it_is_asked_to(tmp_path: Path) -> None:
    made = Served(tmp_path)
    made.stop()
    assert not is_up(made.home)
    with pytest.raises(UnreachableError, match="has been stopped"):
        made.home.address()


def test_a_port_that_is_taken(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    home = Home(tmp_path)
    home.prepare()
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(InputError) as error:
            serve(home, port)
        assert str(error.value) == (
            f"port {port} cannot be used: Address already in use. Choose another with --port."
        )
        assert main([str(home.path), str(port)]) == 1
    assert "Choose another with --port." in caplog.text
