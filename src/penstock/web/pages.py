"""The dashboard's page and its parts, served from inside the package."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse

from penstock.control.refusals import REFUSED_TEXTS
from penstock.errors import InputError

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""What the page may load: its own files, and nothing written into it."""

_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "mjs": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}
_PAGE = "index.html"


@dataclass(frozen=True)
class Asset:
    """A file as it is sent; ``mark`` changes with what is in it."""

    content: bytes
    media_type: str
    mark: str


@cache
def assets() -> Mapping[str, Asset]:
    """All files of the dashboard by their path; nothing else is ever served."""
    found = dict(_below(files("penstock.web") / "assets", ""))
    return {path: found[path] for path in sorted(found)}


def _below(folder: Traversable, prefix: str) -> list[tuple[str, Asset]]:
    found = []
    for entry in folder.iterdir():
        if entry.is_dir():
            found += _below(entry, f"{prefix}{entry.name}/")
        elif (kind := entry.name.rpartition(".")[2]) in _TYPES:
            content = entry.read_bytes()
            mark = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            found.append((f"{prefix}{entry.name}", Asset(content, _TYPES[kind], mark)))
    return found


def add_pages(app: FastAPI) -> None:
    """Puts the dashboard beside the API of a controller."""

    @app.get(
        "/",
        response_class=HTMLResponse,
        responses=REFUSED_TEXTS,
        summary="The dashboard, once logged in",
    )
    def page(request: Request) -> Response:
        return _sent(assets()[_PAGE], request)

    @app.get(
        "/assets/{path:path}",
        response_class=PlainTextResponse,
        responses=REFUSED_TEXTS,
        summary="A file of the dashboard",
    )
    def asset(path: str, request: Request) -> Response:
        found = assets().get(path)
        if found is None:
            raise InputError(f"the dashboard has no file {path}", hint="It begins at /.")
        return _sent(found, request)


def _sent(asset: Asset, request: Request) -> Response:
    # Asked for again every time, and sent only if it has changed: an update is seen at once.
    headers = {
        "ETag": asset.mark,
        "Cache-Control": "no-cache",
        "Content-Security-Policy": POLICY,
    }
    if request.headers.get("if-none-match") == asset.mark:
        return Response(status_code=304, headers=headers)
    return Response(asset.content, media_type=asset.media_type, headers=headers)
