"""The dashboard's files: served as they are, none from elsewhere, vendored ones unchanged."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from importlib.resources import files

import pytest

from control.asking import Api, served
from penstock.web.pages import POLICY, assets

NOTICE = (files("penstock.web") / "assets" / "vendor" / "NOTICE.txt").read_text()
VENDORED = re.findall(r"^(\S+)\s+(\d+)\s+([0-9a-f]{64})$", NOTICE, re.M)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with served(tmp_path_factory.mktemp("pages")) as made:
        yield made


def test_vendored_files_are_those_that_were_written_down() -> None:
    vendored = {path: one for path, one in assets().items() if path.startswith("vendor/")}
    code = {path for path in vendored if not path.endswith(".txt")}
    assert {f"vendor/{name}" for name, _, _ in VENDORED} == code
    for name, size, digest in VENDORED:
        content = vendored[f"vendor/{name}"].content
        assert (len(content), hashlib.sha256(content).hexdigest()) == (int(size), digest)


def test_every_library_comes_with_its_licence() -> None:
    for name in ("preact", "htm", "uplot", "dagre"):
        assert f"vendor/LICENSE-{name}.txt" in assets()
        assert name in NOTICE.lower()


def test_vendored_files_are_small() -> None:
    assert sum(int(size) for _, size, _ in VENDORED) < 125_000


def test_nothing_is_loaded_from_elsewhere() -> None:
    own = {path: one for path, one in assets().items() if not path.startswith("vendor/")}
    for path, one in own.items():
        text = one.content.decode().replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text and "https://" not in text, path
        assert "innerHTML" not in text and "dangerouslySetInnerHTML" not in text, path
        assert "eval(" not in text, path
    page = own["index.html"].content.decode()
    assert re.findall(r"<script(?![^>]*\bsrc=)", page) == []
    assert not re.search(r"\son\w+=|style=", page)


def test_every_file_that_is_imported_is_there() -> None:
    for path, one in assets().items():
        if path.endswith(".mjs"):
            for name in re.findall(r'from\s*"\./([^"]+)"', one.content.decode()):
                folder = path.rpartition("/")[0]
                assert (f"{folder}/{name}" if folder else name) in assets(), (path, name)


def test_the_page_uses_what_the_api_describes_and_nothing_else(api: Api) -> None:
    described = set(api.app.openapi()["paths"])
    written = "".join(file.content.decode() for path, file in assets().items() if "/" not in path)
    # Of a path that is put together, its beginning and its end are written.
    used = set(re.findall(r"""["`](/api/[a-z_/]+)[?"`]""", written))
    used |= {
        f"{first}/{{name}}{'/' + last if last else ''}"
        for first, last in re.findall(r"""path\("(/api/\w+)", \w+(?:, "(\w+)")?\)""", written)
    }
    assert used <= described, used - described
    assert {"/api/live", "/api/queries/{name}", "/api/streams/{name}/rows"} <= used


def test_the_page_and_its_files_are_served(api: Api) -> None:
    page = api.ask("GET", "/")
    assert page.status_code == 200
    assert page.headers["Content-Security-Policy"] == POLICY
    for path, one in assets().items():
        answer = api.ask("GET", f"/assets/{path}")
        assert (answer.content, answer.status_code) == (one.content, 200)
        assert answer.headers["Content-Type"] == one.media_type
        again = api.ask("GET", f"/assets/{path}", headers={"If-None-Match": one.mark})
        assert (again.content, again.status_code) == (b"", 304)


@pytest.mark.parametrize(
    "path", ["nope.js", "../pages.py", "..%2fpages.py", "vendor/", "", "/etc/passwd"]
)
def test_nothing_else_is_served(api: Api, path: str) -> None:
    answer = api.ask("GET", f"/assets/{path}")
    assert answer.status_code in (400, 404)
    assert "add_pages" not in answer.text
