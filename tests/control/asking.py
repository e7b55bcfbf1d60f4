"""A controller's API on a temporary folder, asked without a network and without nodes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI

from control.toys import TroubledCatalog, empty_catalog
from penstock.control.api import make_app
from penstock.control.controller import Controller
from penstock.control.door import Door
from penstock.control.home import Home
from penstock.control.records import NodeRecord
from penstock.control.security import Guard, allowed_hosts
from penstock.web.pages import add_pages

HOST = "127.0.0.1:7400"


@dataclass
class Api:
    """The application as it is served: behind its guard."""

    home: Home
    catalog: TroubledCatalog
    controller: Controller
    app: FastAPI
    client: httpx.AsyncClient
    runner: asyncio.Runner
    downs: list[None] = field(default_factory=list)

    def ask(self, method: str, path: str, **given: Any) -> httpx.Response:
        """What is answered to somebody with the token, unless other headers are given."""
        headers = {"Authorization": f"Bearer {self.home.token()}", **given.pop("headers", {})}
        known = {key: value for key, value in headers.items() if value is not None}
        answer = self.runner.run(self.client.request(method, path, headers=known, **given))
        self.client.cookies.clear()  # Only what is given is sent.
        return answer


@contextmanager
def served(folder: Path) -> Iterator[Api]:
    """An API with the nodes a and b, both alive as far as anybody knows."""
    home = Home(folder / "system")
    home.prepare()
    catalog = empty_catalog(home.path / "catalog.db")
    for name in "ab":
        until_s = time.time() + 600
        catalog.join(NodeRecord(name, 1, 1 << 30, f"{name}-1", lease_until_s=until_s))
    controller = Controller(home, catalog)
    downs: list[None] = []
    door = Door(home.token())
    app = make_app(home, catalog, controller, door, lambda: downs.append(None))
    add_pages(app)
    guarded = Guard(app, door, allowed_hosts("127.0.0.1", 7400))
    transport = httpx.ASGITransport(guarded, raise_app_exceptions=False)
    client = httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}")
    with asyncio.Runner() as runner:
        yield Api(home, catalog, controller, app, client, runner, downs)
        runner.run(client.aclose())
    catalog.close()
