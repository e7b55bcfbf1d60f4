"""The page about the API: complete, escaped, and nothing from elsewhere."""

from __future__ import annotations

from html.parser import HTMLParser

from penstock.control.pages import api_page

DESCRIPTION = {
    "info": {"title": "Pen & stock", "version": "1.0"},
    "paths": {
        "/api/moves": {
            "get": {"summary": "The latest", "parameters": [{"name": "last"}, {"name": "of"}]},
            "post": {"summary": "Move <some>", "requestBody": {}},
        },
        "/api/nodes/{name}": {"delete": {"parameters": [{"name": "<b>"}]}},
    },
}


class Cells(HTMLParser):
    """The cells of the table, and every tag there is."""

    def __init__(self) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.tags: set[str] = set()
        self.linked: list[str] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.linked += [key for key, _ in attrs if key in ("src", "href")]
        if tag == "td":
            self._inside = True
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag != "td"

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.cells[-1] += data


def read(page: str) -> Cells:
    cells = Cells()
    cells.feed(page)
    return cells


def test_every_route_and_method_is_there() -> None:
    assert read(api_page(DESCRIPTION)).cells == [
        *("GET /api/moves", "The latest", "last, of"),
        *("POST /api/moves", "Move <some>", "a JSON body"),
        *("DELETE /api/nodes/{name}", "", "<b>"),
    ]


def test_what_others_have_named_is_only_text() -> None:
    page = api_page(DESCRIPTION)
    assert read(page).tags == {
        *("html", "meta", "title", "style", "h1", "p", "code", "table", "tr", "td")
    }
    assert "<title>Pen &amp; stock 1.0</title>" in page


def test_nothing_is_loaded_from_elsewhere() -> None:
    page = api_page(DESCRIPTION)
    assert read(page).linked == []
    assert "://" not in page
    assert "url(" not in page
