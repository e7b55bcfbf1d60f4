"""Who may ask: only those with the system's token or a session, and no web page from elsewhere."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from penstock.control.door import SESSION_VALID_S, Door

LOGIN = "/login"
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_SAFE = ("GET", "HEAD", "OPTIONS")
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Of every answer that does not say otherwise."""
Answer = Callable[[Scope, Receive, Send], Awaitable[None]]


def allowed_hosts(host: str, port: int) -> frozenset[str]:
    """The names under which a controller may be addressed."""
    names = {host, *_LOOPBACK}
    # Clients leave out the port that is usual.
    return frozenset(f"{name}:{port}" for name in names) | (names if port == 80 else set())


class Guard:
    """Lets a request through only with the right token or session, host and origin.

    Without them any process of any user of the machine could submit queries; without the check of
    Host and Origin a web page in the user's own browser could. A session is sent along by the
    browser whoever asks, so with one whatever changes something must come from the controller's own
    pages and say so.
    """

    def __init__(self, app: ASGIApp, door: Door, hosts: frozenset[str]) -> None:
        self._app = app
        self._door = door
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        answer = self._answer(scope) if scope["type"] == "http" else _refused(403)
        await (answer or self._app)(scope, receive, _with_headers(send))

    def _answer(self, scope: Scope) -> Response | None:
        """What is answered here and now; None if the application may."""
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        if host not in self._hosts:
            return _refused(403, "this host name is not the controller's")
        if origin is not None and _host(origin) not in self._hosts:
            return _refused(403, "pages from elsewhere may not ask")
        if scope["path"] == LOGIN and scope["method"] == "GET":
            return self._entered(scope, headers) or _unknown(headers)
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._door.is_token(token):
            return None
        if not self._door.is_session(_cookie(headers, cookie_name(host))):
            return _unknown(headers)
        if not _is_from_own_page(headers, scope["method"], host):
            return _refused(403, "only the controller's own pages may change something")
        return None

    def _entered(self, scope: Scope, headers: Headers) -> Response | None:
        """A browser with a good code gets a session and goes on to the dashboard."""
        if "prefetch" in headers.get("sec-purpose", ""):
            return Response(status_code=204)  # Nobody has followed the link yet.
        given = parse_qs(scope["query_string"].decode("latin-1")).get("code", [""])
        session = self._door.enter(given[0])
        if session is None:
            return None
        # Not a redirect: after one from elsewhere the browser would keep the cookie to itself.
        answer = HTMLResponse(_GO_ON)
        answer.set_cookie(
            cookie_name(headers["host"]),
            session,
            max_age=SESSION_VALID_S,
            httponly=True,
            samesite="strict",
            secure=scope.get("scheme") == "https",
        )
        return answer


def cookie_name(host: str) -> str:
    """What the cookie of a controller is called: browsers tell cookies of ports not apart.

    >>> cookie_name("127.0.0.1:7400"), cookie_name("localhost")
    ('penstock_7400', 'penstock_80')
    """
    port = host.rpartition(":")[2]
    return f"penstock_{port if port.isdigit() else 80}"


def _cookie(headers: Headers, name: str) -> str:
    return cookie_parser(headers.get("cookie", "")).get(name, "")


def _is_from_own_page(headers: Headers, method: str, host: str) -> bool:
    """Whether a browser says that it asks for a page of this address, or of nobody.

    The same name with another port is another origin, though not another site for its cookies.
    """
    if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        return False
    return method in _SAFE or headers.get("origin") in (f"http://{host}", f"https://{host}")


def _host(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def _with_headers(send: Send) -> Send:
    async def sent(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sent


def _unknown(headers: Headers) -> Response:
    """Neither token nor session, in the form that the one who asks can read."""
    if "text/html" in headers.get("accept", ""):
        return HTMLResponse(_NOT_IN, 401, {"WWW-Authenticate": "Bearer"})
    return _refused(401, "the token is missing or wrong")


def _refused(status: int, why: str = "only plain requests are answered") -> JSONResponse:
    hint = "It is in the file token of the system's folder; send it as Authorization: Bearer."
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    body = {"error": why, "hint": hint, "text": f"{why}. {hint}", "exit_code": 3}
    return JSONResponse(body, status, headers)


_GO_ON = (
    '<!doctype html><html lang=en><meta charset=utf-8><meta http-equiv=refresh content="0;url=/">'
    "<title>Penstock</title><p><a href=/>Go on to the dashboard</a></html>"
)
_NOT_IN = (
    "<!doctype html><html lang=en><meta charset=utf-8><title>Penstock</title>"
    "<h1>Not logged in</h1><p>A link logs a browser in once, and for a minute only. "
    "<p>Ask for a new one where the system was started: <code>penstock dashboard</code></html>"
)
