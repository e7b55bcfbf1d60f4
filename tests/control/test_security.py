"""Nobody gets in without the token, and no page from elsewhere does at all."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

import pytest

from control.asking import HOST, Api, served
from control.made_up import AMI
from penstock.control.door import CODE_VALID_S, Door
from penstock.control.security import Guard, allowed_hosts

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "BREW")


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with served(tmp_path_factory.mktemp("security")) as made:
        body = {"name": "ami", "kind": "yaml", "text": AMI}
        assert made.ask("POST", "/api/queries", json=body).status_code == 201
        yield made


def paths(api: Api) -> list[str]:
    """All that the description lists, with real names, and some that it does not."""
    told = api.app.openapi()["paths"]
    named = {re.sub(r"\{\w+\}", "peaks", path) for path in told}
    named |= {path.replace("{name}", "ami") for path in told if path.count("{") == 1}
    named |= {"/login", "/login?code=", "/login?code=wrong", "/assets/vendor/preact.mjs"}
    return [*sorted(named), "/openapi.json", "/docs", "/redoc", "/", "/nope", "/api", "//api/nodes"]


def everything(api: Api) -> list[tuple[str, str]]:
    return [(method, path) for path in paths(api) for method in METHODS]


def state(api: Api) -> object:
    """All that a request could have changed."""
    catalog = api.catalog
    files = {path: path.stat().st_mtime_ns for path in api.home.state.rglob("*")}
    told = (catalog.changes(), catalog.units(), catalog.submissions(), catalog.nodes())
    return (*told, catalog.events(), catalog.moves(), len(api.downs), files)


def test_the_walk_is_complete(api: Api) -> None:
    told = {
        (method.upper(), path)
        for path, methods in api.app.openapi()["paths"].items()
        for method in methods
    }
    assert told == {
        ("GET", "/api/system"),
        ("GET", "/api/nodes"),
        ("GET", "/api/devices"),
        ("GET", "/api/negotiations"),
        ("GET", "/api/nodes/{name}/series"),
        ("GET", "/api/devices"),
        ("GET", "/api/set_aside"),
        ("GET", "/api/streams/{name}/dead_letters"),
        ("GET", "/api/queries"),
        ("POST", "/api/queries"),
        ("DELETE", "/api/queries/{name}"),
        ("GET", "/api/queries/{name}/sharing"),
        ("GET", "/api/fragments"),
        ("GET", "/api/operators"),
        ("GET", "/api/balance"),
        ("PUT", "/api/balance"),
        ("GET", "/api/joins"),
        ("GET", "/api/moves"),
        ("GET", "/api/moves/{number}"),
        ("POST", "/api/moves"),
        ("GET", "/api/events"),
        ("GET", "/api/logs/{name}"),
        ("GET", "/api/streams/{name}/rows"),
        ("PUT", "/api/streams/{name}/readers/{reader}"),
        ("DELETE", "/api/streams/{name}/readers/{reader}"),
        ("GET", "/metrics"),
        ("POST", "/api/down"),
        ("GET", "/docs"),
        ("POST", "/api/login_codes"),
        ("GET", "/api/view"),
        ("GET", "/api/live"),
        ("GET", "/api/troubles"),
        ("GET", "/api/graph"),
        ("GET", "/api/streams"),
        ("GET", "/api/streams/{name}"),
        ("GET", "/api/history"),
        ("GET", "/api/resilience"),
        ("GET", "/"),
        ("GET", "/assets/{path}"),
    }
    listed = {getattr(route, "path", None) for route in api.app.routes}
    assert {str(path).replace(":path}", "}") for path in listed} == {path for _, path in told} | {
        "/openapi.json"
    }


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": None},
        {"Authorization": "Bearer wrong"},
    ],
    ids=["none", "wrong"],
)
def test_every_route_and_method_asks_for_the_token(api: Api, headers: dict[str, Any]) -> None:
    before = state(api)
    for method, path in everything(api):
        answer = api.ask(method, path, headers=headers)
        assert (answer.status_code, method, path) == (401, method, path)
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert method == "HEAD" or answer.json() == {
            "error": "the token is missing or wrong",
            "hint": "It is in the file token of the system's folder; "
            "send it as Authorization: Bearer.",
            "text": "the token is missing or wrong. "
            "It is in the file token of the system's folder; send it as Authorization: Bearer.",
            "exit_code": 3,
        }
    assert state(api) == before


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Origin": "http://evil.example"},
    ],
    ids=["host", "origin"],
)
def test_every_route_and_method_refuses_what_comes_from_elsewhere(
    api: Api, headers: dict[str, Any]
) -> None:
    before = state(api)
    for method, path in everything(api):
        answer = api.ask(method, path, headers=headers)
        assert (answer.status_code, method, path) == (403, method, path)
        assert method == "HEAD" or answer.json()["exit_code"] == 3
        assert not any("allow-origin" in name for name in answer.headers)
    assert state(api) == before


@pytest.mark.parametrize(
    "written",
    [
        "",
        "{token}",
        "Bearer",
        "Bearer ",
        "Bearer{token}",
        "Bearer  {token}",
        "Bearer {token}x",
        "Bearer {half}",
        "Bearer {upper}",
        "Basic {token}",
        "Token {token}",
        "Bearer \u00e4\u00f6",
    ],
)
def test_tokens_that_are_none(api: Api, written: str) -> None:
    token = api.home.token()
    text = written.format(token=token, half=token[:-1], upper=token.swapcase())
    answer = api.ask("GET", "/api/nodes", headers={"Authorization": text.encode("latin-1")})
    assert answer.status_code == 401


def test_the_word_bearer_may_be_written_in_any_case(api: Api) -> None:
    for word in ("Bearer", "bearer", "BEARER"):
        headers = {"Authorization": f"{word} {api.home.token()}"}
        assert api.ask("GET", "/api/nodes", headers=headers).status_code == 200


def test_the_token_is_not_taken_from_elsewhere(api: Api) -> None:
    token = api.home.token()
    for path in (f"/api/nodes?token={token}", f"/api/nodes?access_token={token}"):
        assert api.ask("GET", path, headers={"Authorization": None}).status_code == 401
    headers = {"Authorization": None, "Cookie": f"token={token}", "X-Token": token}
    assert api.ask("GET", "/api/nodes", headers=headers).status_code == 401


@pytest.mark.parametrize(
    ("host", "status"),
    [
        (HOST, 200),
        ("localhost:7400", 200),
        ("[::1]:7400", 200),
        ("127.0.0.1", 403),
        ("127.0.0.1:7401", 403),
        ("127.0.0.1:7400.evil.example", 403),
        ("evil.example:7400", 403),
        ("127.0.0.1:7400@evil.example", 403),
        ("127.0.0.2:7400", 403),
        ("", 403),
    ],
)
def test_hosts(api: Api, host: str, status: int) -> None:
    assert api.ask("GET", "/api/nodes", headers={"Host": host}).status_code == status


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (f"http://{HOST}", 200),
        ("http://localhost:7400", 200),
        ("null", 403),
        ("", 403),
        ("http://127.0.0.1", 403),
        (f"http://{HOST}@evil.example", 403),
        (f"http://evil.example/{HOST}", 403),
        (f"http://evil.example#{HOST}", 403),
        (HOST, 403),
        ("http://[", 403),
        ("http://[::1", 403),
    ],
)
def test_origins(api: Api, origin: str, status: int) -> None:
    answer = api.ask("GET", "/api/nodes", headers={"Origin": origin})
    assert answer.status_code == status
    if status == 403:
        assert answer.json()["error"] == "pages from elsewhere may not ask"


def test_the_usual_port_is_left_out() -> None:
    assert allowed_hosts("127.0.0.1", 7400) == {*("127.0.0.1:7400", "localhost:7400", "[::1]:7400")}
    assert allowed_hosts("127.0.0.1", 80) >= {"127.0.0.1", "127.0.0.1:80", "localhost"}


async def called(kind: str) -> tuple[list[str], list[MutableMapping[str, Any]]]:
    """What reaches the application and what is answered, for one kind of connection."""
    reached: list[str] = []
    answered: list[MutableMapping[str, Any]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        reached.append(scope["type"])

    async def receive() -> MutableMapping[str, Any]:
        return {"type": f"{kind}.connect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        answered.append(message)

    headers = [(b"host", HOST.encode()), (b"authorization", b"Bearer right")]
    extensions: dict[str, Any] = {"websocket.http.response": {}}
    scope = {"type": kind, "headers": headers, "path": "/", "extensions": extensions}
    await Guard(app, Door("right"), allowed_hosts("127.0.0.1", 7400))(scope, receive, send)
    return reached, answered


def test_other_kinds_of_connections_are_refused() -> None:
    reached, answered = asyncio.run(called("websocket"))
    assert reached == []
    assert answered[0]["status"] == 403
    assert asyncio.run(called("lifespan"))[0] == ["lifespan"]
    assert asyncio.run(called("http"))[0] == ["http"]


def test_the_token_is_in_no_answer_and_in_no_log(
    api: Api, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    token = api.home.token()
    for path in paths(api):
        if path == "/api/live":
            continue  # It never ends, and says what /api/view says.
        answer = api.ask("GET", path)
        assert token not in answer.text
        assert token not in str(answer.headers)
    assert token not in caplog.text


def browser(api: Api, code: str | None = None, **headers: str) -> Any:
    """What a browser is answered that follows a link with a code."""
    told = api.ask("POST", "/api/login_codes").json() if code is None else {}
    path = told.get("path", f"/login?code={code}")
    return api.ask("GET", path, headers={"Authorization": None, **headers})


def session(api: Api) -> dict[str, Any]:
    """The headers of a browser that was let in, and of its page."""
    cookie = browser(api).headers["set-cookie"].partition(";")[0]
    return {"Authorization": None, "Cookie": cookie, "Origin": f"http://{HOST}"}


def test_a_link_lets_a_browser_in_once(api: Api) -> None:
    path = api.ask("POST", "/api/login_codes").json()["path"]
    assert api.home.token() not in path
    first = api.ask("GET", path, headers={"Authorization": None})
    assert first.status_code == 200
    name, *attributes = first.headers["set-cookie"].split("; ")
    assert name.startswith("penstock_7400=")
    assert api.home.token() not in name
    assert {"HttpOnly", "Path=/", "SameSite=strict"} <= set(attributes)
    assert 'http-equiv=refresh content="0;url=/"' in first.text
    assert api.ask("GET", path, headers={"Authorization": None}).status_code == 401
    asked = {"Authorization": None, "Cookie": name}
    assert api.ask("GET", "/api/nodes", headers=asked).status_code == 200
    assert api.ask("GET", "/", headers=asked).status_code == 200


def test_a_link_that_is_only_looked_at_stays_good(api: Api) -> None:
    path = api.ask("POST", "/api/login_codes").json()["path"]
    looking = {"Authorization": None, "Sec-Purpose": "prefetch;prerender"}
    answer = api.ask("GET", path, headers=looking)
    assert (answer.status_code, "set-cookie" in answer.headers) == (204, False)
    assert api.ask("GET", path, headers={"Authorization": None}).status_code == 200


def test_codes_and_sessions_end() -> None:
    now_s = 0.0
    door = Door("right", lambda: now_s)
    early, late = door.code(), door.code()
    now_s = CODE_VALID_S - 1
    entered = door.enter(early)
    assert entered is not None and door.is_session(entered)
    now_s = CODE_VALID_S
    assert door.enter(late) is None
    now_s = 8 * 24 * 3600.0
    assert not door.is_session(entered)


def test_sessions_outlive_a_controller_but_not_its_token() -> None:
    door = Door("right")
    entered = door.enter(door.code())
    assert entered is not None
    assert Door("right").is_session(entered)
    assert not Door("other").is_session(entered)
    number, nonce, signature = entered.split(".")
    for forged in (f"{int(number) + 1}.{nonce}.{signature}", f"{number}.{nonce}.", "", "...", "é"):
        assert not door.is_session(forged)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": None},
        {"Origin": "http://localhost:7400"},
        {"Origin": "http://127.0.0.1:7401"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
    ids=["none", "another name", "another port", "null", "same site", "another site"],
)
def test_with_a_session_only_own_pages_change_something(api: Api, headers: dict[str, Any]) -> None:
    before, let_in = state(api), session(api)
    for method, path in everything(api):
        if method not in ("GET", "HEAD", "OPTIONS"):
            answer = api.ask(method, path, headers={**let_in, **headers})
            assert (answer.status_code, method, path) == (403, method, path)
    assert state(api) == before


def test_with_a_session_an_own_page_may_do_what_the_token_may(api: Api) -> None:
    let_in = session(api)
    body = [{"fragment": "nope", "node": "a"}]
    assert api.ask("POST", "/api/moves", json=body, headers=let_in).status_code == 400
    assert api.ask("POST", "/api/login_codes", headers=let_in).status_code == 201


def test_every_answer_refuses_frames_and_guesses(api: Api) -> None:
    for path in paths(api):
        for headers in ({}, {"Authorization": None}):
            if path == "/api/live" and not headers:
                continue
            answer = api.ask("GET", path, headers=headers)
            assert answer.headers["X-Frame-Options"] == "DENY"
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            policy = answer.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy and "http" not in policy


def test_a_browser_that_is_not_let_in_is_told_what_to_do(api: Api) -> None:
    answer = browser(api, "wrong", Accept="text/html,*/*")
    assert answer.status_code == 401
    assert "penstock dashboard" in answer.text
