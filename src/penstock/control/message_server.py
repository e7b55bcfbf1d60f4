"""Messages from node to node over loopback: a small guarded server, and how to post to one.

A message counts only with the system's token, from a node that the catalog knows, in the life it
lives now, and if it is addressed to this node. What is refused is logged and changes nothing.
"""

from __future__ import annotations

import http.client
import logging
import secrets
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from penstock.control.letters import LETTER_AT_MOST_BYTES, Letter, read_letter
from penstock.errors import InputError, UnreachableError

HOST = "127.0.0.1"
_PATH = "/messages"
_PATIENCE_S = 2.0
_REFUSALS_LOGGED_AT_MOST = 100

log = logging.getLogger(__name__)


class MessageServer:
    """Takes messages for one node; ``lives`` says which nodes are known, and their incarnations.

    ``deliver`` is called by the server's threads.
    """

    def __init__(
        self,
        node: str,
        token: str,
        lives: Callable[[], Mapping[str, str]],
        deliver: Callable[[Letter], None],
    ) -> None:
        self._node = node
        self._token = token.encode()
        self._lives = lives
        self._deliver = deliver
        self._refused = 0
        self._server = _Server((HOST, 0), self._handler())
        self._thread = threading.Thread(
            target=self._server.serve_forever, name=f"messages-{node}", daemon=True
        )
        self._thread.start()

    @property
    def address(self) -> str:
        """Where others reach it."""
        return f"{HOST}:{self._server.server_address[1]}"

    def close(self) -> None:
        """Takes no more messages."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receive, refuse = self._receive, self._refuse

        class Handler(BaseHTTPRequestHandler):
            timeout = _PATIENCE_S

            def do_POST(self) -> None:
                status, why = receive(self)
                if why:
                    refuse(self.client_address, why)
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """What counts is logged by the server itself."""

        return Handler

    def _receive(self, asked: BaseHTTPRequestHandler) -> tuple[int, str]:
        """The status of the answer, and why it was refused."""
        if asked.path != _PATH:
            return 404, f"there is nothing at {asked.path[:100]!r}"
        scheme, _, token = asked.headers.get("Authorization", "").partition(" ")
        if scheme != "Bearer" or not secrets.compare_digest(token.encode(), self._token):
            return 401, "the token is missing or wrong"
        length = asked.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > LETTER_AT_MOST_BYTES:
            return 413, f"a message of {length[:20] or 'unknown'} bytes"
        try:
            letter = read_letter(asked.rfile.read(int(length)))
        except InputError as error:
            return 400, str(error)
        why = self._why_not(letter)
        if why:
            return 403, why
        self._deliver(letter)
        return 202, ""

    def _why_not(self, letter: Letter) -> str:
        if letter.to != self._node:
            return f"a message to {letter.to!r}"
        lives = self._lives()
        if letter.sender not in lives:
            return f"a message from {letter.sender!r}, which is no node"
        if lives[letter.sender] != letter.life:
            return f"a message from a former life of {letter.sender}"
        return ""

    def _refuse(self, client: tuple[str, int], why: str) -> None:
        self._refused += 1
        if self._refused <= _REFUSALS_LOGGED_AT_MOST:
            log.warning("node %s refused, from %s: %s", self._node, client[0], why)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        log.debug("a connection from %s broke off", client_address, exc_info=True)


def post(address: str, token: str, letter: Letter) -> None:
    """Sends a message; raises if it did not arrive or was refused."""
    connection = http.client.HTTPConnection(address, timeout=_PATIENCE_S)
    try:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        connection.request("POST", _PATH, letter.model_dump_json(), headers)
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        raise UnreachableError(f"node {letter.to} at {address} does not answer: {error}") from None
    finally:
        connection.close()
    if status != 202:
        raise UnreachableError(f"node {letter.to} refused a message of {letter.sender}: {status}")
