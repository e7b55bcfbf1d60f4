"""Who may ask: only those with the system's token, and no web page from elsewhere."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
Answer = Callable[[Scope, Receive, Send], Awaitable[None]]


def allowed_hosts(host: str, port: int) -> frozenset[str]:
    """The names under which a controller may be addressed."""
    names = {host, *_LOOPBACK}
    # Clients leave out the port that is usual.
    return frozenset(f"{name}:{port}" for name in names) | (names if port == 80 else set())


class Guard:
    """Lets a request through only with the right token, host and origin.

    Without a token any process of any user of the machine could submit queries; without the check
    of Host and Origin a web page in the user's own browser could.
    """

    def __init__(self, app: ASGIApp, token: str, hosts: frozenset[str]) -> None:
        self._app = app
        self._token = token.encode()
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(Headers(scope=scope)) if scope["type"] == "http" else _refused(403)
        await (refusal or self._app)(scope, receive, send)

    def _refusal(self, headers: Headers) -> JSONResponse | None:
        if headers.get("host", "") not in self._hosts:
            return _refused(403, "this host name is not the controller's")
        origin = headers.get("origin")
        if origin is not None and _host(origin) not in self._hosts:
            return _refused(403, "pages from elsewhere may not ask")
        scheme, _, token = headers.get("authorization", "").partition(" ")
        known = scheme.lower() == "bearer" and secrets.compare_digest(token.encode(), self._token)
        return None if known else _refused(401, "the token is missing or wrong")


def _host(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def _refused(status: int, why: str = "only plain requests are answered") -> JSONResponse:
    hint = "It is in the file token of the system's folder; send it as Authorization: Bearer."
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    body = {"error": why, "hint": hint, "text": f"{why}. {hint}", "exit_code": 3}
    return JSONResponse(body, status, headers)
