"""The API: what it answers, and that nothing it is sent brings it down or leads it astray."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from control.asking import Api, served
from control.made_up import AMI
from control.rows import RowWriter
from control.toys import raising
from penstock.control.api import ARROW
from penstock.errors import RunError, UnreachableError
from penstock.model.measurements import NodeSample


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with served(tmp_path) as made:
        yield made


@pytest.fixture
def ami(api: Api) -> Api:
    return deployed(api)


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """The same for all that change nothing, or only in a way that is taken back."""
    with served(tmp_path_factory.mktemp("steady")) as made:
        yield deployed(made)


def deployed(api: Api) -> Api:
    """With a deployment of which peaks runs on a."""
    assert submit(api).status_code == 201
    unit = api.catalog.units()[0]
    api.catalog.assign(unit, "a")
    api.catalog.report("peaks", 1, "running")
    return api


NOTHING_MEASURED = {
    "fits": True,
    "projected_s": None,
    "limit_s": None,
    "places": {},
    "others": [],
    "loads": {},
    "peaks": {},
    "why": [],
    "help": [],
}


def submit(api: Api, name: str = "ami", text: str = AMI, **told: object) -> Any:
    kind = "sql" if text.startswith("SELECT") else "yaml"
    return api.ask("POST", "/api/queries", json={"name": name, "kind": kind, "text": text, **told})


def begins(query: str) -> dict[str, object]:
    """What is said of a query that counts from the first row on."""
    return {
        "fragment": query,
        "queries": [query],
        "from": "start",
        "since": None,
        "untimed": False,
    }


def told(answer: Any) -> tuple[int, int, str]:
    """Status, exit code and text of a refusal; that is all a client needs."""
    body = answer.json()
    assert set(body) == {"error", "hint", "text", "exit_code"}
    assert body["text"].startswith(body["error"]) or body["error"] in body["text"]
    assert "Traceback" not in answer.text
    return answer.status_code, body["exit_code"], body["text"]


class TestAsking:
    def test_submitting_and_listing(self, api: Api) -> None:
        answer = submit(api, max_latency_us=3_000_000)
        assert (answer.status_code, answer.json()) == (
            201,
            {
                "name": "ami",
                "fragments": ["readings", "peaks"],
                "unread": [],
                "begins": [begins("peaks")],
                "balance": None,
                "sharing": {"shared": [], "operators": 2, "saved": [], "notes": []},
                "admission": {**NOTHING_MEASURED, "limit_s": 3.0, "places": {"peaks": "a"}},
                "dry_run": False,
                "warnings": [],
            },
        )
        answer = submit(api, "top", "SELECT home FROM peaks")
        assert answer.json() == {
            "name": "top",
            "fragments": ["top"],
            "unread": [],
            "begins": [begins("top")],
            "balance": None,
            "sharing": {"shared": [], "operators": 1, "saved": [], "notes": []},
            "admission": {**NOTHING_MEASURED, "places": answer.json()["admission"]["places"]},
            "dry_run": False,
            "warnings": [],
        }
        (first, second) = api.ask("GET", "/api/queries").json()
        assert (first["name"], first["fragments"]) == ("ami", ["readings", "peaks"])
        assert (second["name"], second["queries"], second["state"]) == ("top", ["top"], "starting")
        names = [one["name"] for one in api.ask("GET", "/api/fragments").json()]
        assert names == ["peaks", "readings", "top"]
        whole = api.ask("GET", "/api/system").json()
        assert [len(whole[part]) for part in ("nodes", "queries", "fragments")] == [2, 2, 3]

    def test_moving(self, ami: Api) -> None:
        body = [{"fragment": "peaks", "node": "b", "reason": "too hot"}]
        answer = ami.ask("POST", "/api/moves", json=body)
        assert answer.status_code == 202
        (begun,) = answer.json()
        assert (begun["unit"], begun["source"], begun["target"]) == ("peaks", "a", "b")
        assert ami.ask("GET", "/api/moves?last=1").json() == [begun]
        assert ami.ask("POST", "/api/moves", json=[]).json() == []

    def test_dropping(self, ami: Api) -> None:
        ami.catalog.release("peaks", 1)
        assert ami.ask("DELETE", "/api/queries/ami").json() == {"name": "ami", "kept": None}
        assert ami.ask("GET", "/api/queries").json() == []

    def test_dropping_and_keeping_the_data(self, ami: Api) -> None:
        ami.catalog.release("peaks", 1)
        written = ami.home.state / "fragments" / "peaks" / "checkpoint"
        written.mkdir(parents=True)
        kept = Path(ami.ask("DELETE", "/api/queries/ami?keep_data=true").json()["kept"])
        assert (kept / "fragments" / "peaks" / "checkpoint").is_dir()
        assert kept.is_relative_to(ami.home.path) and not kept.is_relative_to(ami.home.state)
        assert not written.exists()

    def test_what_is_added_to_a_log(self, api: Api) -> None:
        log = api.home.log("controller")
        log.parent.mkdir(exist_ok=True)
        log.write_text("one\ntwo\n")
        first = api.ask("GET", "/api/logs/controller?lines=1")
        assert (first.text, first.headers["X-End"]) == ("two\n", "8")
        log.write_text("one\ntwo\nthree\nhal")
        more = api.ask("GET", "/api/logs/controller?after=8")
        assert (more.text, more.headers["X-End"]) == ("three\n", "14")
        log.write_text("new\n")
        anew = api.ask("GET", "/api/logs/controller?after=14")
        assert (anew.text, anew.headers["X-End"]) == ("new\n", "4")

    def test_nodes_and_what_they_measured(self, api: Api) -> None:
        for k in range(5):
            api.catalog.sample("a", NodeSample(float(k), utilisation=k / 10))
        first, second = api.ask("GET", "/api/nodes").json()
        assert (first["name"], first["state"], first["utilisation"]) == ("a", "up", 0.4)
        assert second["utilisation"] == 0
        series = api.ask("GET", "/api/nodes/a/series?last=2").json()
        assert [series_["at_s"] for series_ in series] == [3.0, 4.0]
        assert series[0] == {
            "at_s": 3.0,
            "cpu_cores": 0.0,
            "utilisation": 0.3,
            "memory_bytes": 0,
            "intakes": {},
            "fragments": {},
        }
        assert 'penstock_node_utilisation_ratio{node="a"} 0.4\n' in api.ask("GET", "/metrics").text

    def test_the_story(self, ami: Api) -> None:
        (event,) = ami.ask("GET", "/api/events").json()
        assert (event["kind"], event["subject"]) == ("submit", "ami")
        assert ami.ask("GET", f"/api/events?after={event['id']}").json() == []

    def test_logs(self, api: Api) -> None:
        assert api.ask("GET", "/api/logs/a").text == ""
        api.home.log("a").write_text("".join(f"line {k} ä\n" for k in range(1_000)))
        answer = api.ask("GET", "/api/logs/a?lines=2")
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert answer.text == "line 998 ä\nline 999 ä\n"
        assert len(api.ask("GET", "/api/logs/a?lines=10000").text.splitlines()) == 1_000
        api.home.log("controller").write_bytes(b"\xff\xfe broken \n" * 10_000)
        assert api.ask("GET", "/api/logs/controller?lines=3").text.count("broken") == 3

    def test_stopping(self, api: Api) -> None:
        assert api.ask("POST", "/api/down").status_code == 202
        assert len(api.downs) == 1

    def test_the_description(self, api: Api) -> None:
        described = api.ask("GET", "/openapi.json").json()
        page = api.ask("GET", "/docs")
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        for path, methods in described["paths"].items():
            for method, one in methods.items():
                assert f"{method.upper()} {path}" in page.text
                assert one["summary"]

    def test_every_answer_and_every_refusal_has_a_schema(self, api: Api) -> None:
        described = api.ask("GET", "/openapi.json").json()
        models = described["components"]["schemas"]
        for path, methods in described["paths"].items():
            for method, one in methods.items():
                told = dict(one["responses"])
                for status in ("4XX", "5XX"):
                    ((kind, content),) = told.pop(status)["content"].items()
                    assert kind == "application/json", (method, path)
                    assert content["schema"] == {"$ref": "#/components/schemas/Refusal"}
                (answer,) = told.values()
                # Pages and their parts are what they are.
                if path.startswith("/api/") and "application/json" in answer.get("content", {}):
                    schema = answer["content"]["application/json"]["schema"]
                    name = schema.get("items", schema)["$ref"].rpartition("/")[2]
                    assert models[name]["type"] == "object", (method, path)
        assert {"NodeSample", "FragmentStatus", "IntakeSample"} <= set(models)


class TestRows:
    @pytest.fixture
    def peaks(self, ami: Api) -> RowWriter:
        return RowWriter(ami.home.state / "channels" / "peaks", "home", empty="kwh ts")

    def row(self, value: object) -> dict[str, object]:
        """A row as the stream has it: in the order of its columns."""
        return {"ts": None, "home": value, "kwh": None}

    def test_as_json(self, ami: Api, peaks: RowWriter) -> None:
        peaks.write(1, None)
        peaks.write(3, ended=True)
        answer = ami.ask("GET", "/api/streams/peaks/rows?most_rows=1")
        assert answer.json() == {"next": 1, "ended": False, "rows": [self.row(1), self.row(None)]}
        answer = ami.ask("GET", "/api/streams/peaks/rows?after=1")
        assert answer.json() == {"next": 2, "ended": True, "rows": [self.row(3)]}
        os.utime(peaks.channel.entry(0), (0, 100.0))
        answer = ami.ask("GET", "/api/streams/peaks/rows?since_s=101")
        assert answer.json()["rows"] == [self.row(3)]
        assert (answer.headers["X-Next"], answer.headers["X-Ended"]) == ("2", "true")

    def test_groups(self, ami: Api, peaks: RowWriter) -> None:
        peaks.write(1)
        answer = ami.ask("GET", "/api/streams/peaks/rows?groups=0")
        assert answer.status_code == 400
        assert "rows of peaks are not kept in groups" in answer.json()["text"]

    def test_values_json_has_no_word_for_are_texts(self, ami: Api, peaks: RowWriter) -> None:
        for k, (value, shown) in enumerate(
            (
                (True, True),
                ("ä", "ä"),
                (2**60, 2**60),
                (0.1, 0.1),
                (math.nan, "nan"),
                (math.inf, "inf"),
                (-math.inf, "-inf"),
                (datetime(2026, 1, 5, 6, 30), "2026-01-05 06:30:00"),
                (b"\x00\xff", "b'\\x00\\xff'"),
            )
        ):
            peaks.write(value)
            answer = ami.ask("GET", f"/api/streams/peaks/rows?after={k}")
            assert (answer.status_code, answer.json()["rows"]) == (200, [self.row(shown)])

    def test_as_arrow(self, ami: Api, peaks: RowWriter) -> None:
        headers = {"Accept": ARROW}
        answer = ami.ask("GET", "/api/streams/peaks/rows", headers=headers)
        assert (answer.content, answer.headers["X-Next"]) == (b"", "0")
        peaks.write(1, 2)
        answer = ami.ask("GET", "/api/streams/peaks/rows", headers=headers)
        assert answer.headers["content-type"] == ARROW
        rows = pa.ipc.open_stream(answer.content).read_all().to_pylist()
        assert rows == [self.row(1), self.row(2)]

    def test_rows_are_kept_for_those_who_ask(self, ami: Api, peaks: RowWriter) -> None:
        address = "/api/streams/peaks/readers/me"
        peaks.write(1)
        assert ami.ask("PUT", address).json() == {"oldest": 0}
        assert peaks.channel.needed_from() == 0
        ami.ask("PUT", f"{address}?at=1")
        assert peaks.channel.needed_from() == 1
        ami.ask("PUT", address)
        assert peaks.channel.needed_from() == 1
        assert ami.ask("DELETE", address).json() == {}
        assert peaks.channel.needed_from() is None

    def test_a_reader_from_outside_is_not_one_of_the_units(self, ami: Api) -> None:
        """Nobody can make a fragment lose what it has not read."""
        ami.ask("DELETE", "/api/streams/readings/readers/peaks")
        ami.ask("PUT", "/api/streams/readings/readers/peaks?at=9")
        assert ami.controller.channel("readings").needed_from() == 0


BODIES = (
    b"",
    b"{",
    b"null",
    b"1",
    b'"text"',
    b"\xff\xfe\x00",
    b"[" * 5_000,
    b'{"name": 1}',
    b'{"name": "q", "kind": "python", "text": "x"}',
    b'{"name": "q", "kind": "sql", "text": null}',
    b'{"name": "q", "kind": "sql", "text": "\\ud800"}',
    b'{"name": "\\ud800", "kind": "yaml", "text": "x"}',
    b'{"name": "q\\u0000", "kind": "yaml", "text": "x"}',
    b'{"name": "q", "kind": "sql", "text": "SELECT", "max_latency_us": NaN}',
    b'{"name": "q", "kind": "sql", "text": "SELECT", "max_latency_us": 0}',
    b'{"name": "q", "kind": "sql", "text": "SELECT", "max_latency_us": 1e40}',
    b'{"name": "q", "kind": "yaml", "text": ""}',
    b'{"name": "q", "kind": "yaml", "text": "\\u0000"}',
    b'{"name": "q", "kind": "yaml", "text": "[1, 2"}',
    b'{"name": "q", "kind": "yaml", "text": "a: !!python/object/apply:os.getcwd []"}',
    b'{"name": "q", "kind": "yaml", "text": "a: &a [*a]"}',
    b'{"name": "q", "kind": "sql", "text": "DROP TABLE peaks"}',
    b'{"name": "q", "kind": "sql", "text": "SELECT 1; SELECT 2"}',
    b'{"name": "q", "kind": "sql", "text": "%s"}' % (b"(" * 3_000),
    b'{"name": "%s", "kind": "yaml", "text": "x"}' % (b"q" * 300),
    b'[{"fragment": "peaks"}]',
    b'[{"fragment": "peaks", "node": null}]',
    b'[{"fragment": {"a": 1}, "node": []}]',
    b'{"fragment": "peaks", "node": "b"}',
)


class TestRefusals:
    @pytest.mark.parametrize(
        ("method", "path", "text"),
        [
            ("GET", "/api/nodes/c/series", "no node c. There are a, b."),
            ("GET", "/api/logs/c", "no log of c. There are controller, a, b."),
            ("GET", "/api/streams/peeks/rows", "no stream peeks. There are readings, peaks."),
            ("PUT", "/api/streams/x/readers/me", "no stream x. There are readings, peaks."),
            ("DELETE", "/api/streams/x/readers/me", "no stream x. There are readings, peaks."),
            (
                "PUT",
                "/api/streams/peaks/readers/a-b",
                "'a-b' is no name for a reader. Use letters, digits and _.",
            ),
            ("DELETE", "/api/queries/top", "nothing called top is running. There are ami."),
            ("DELETE", "/api/queries/peaks", "peaks is part of ami. Drop ami as a whole."),
        ],
    )
    def test_unknown_names(self, steady: Api, method: str, path: str, text: str) -> None:
        assert told(steady.ask(method, path)) == (400, 1, text)

    def test_what_people_ask_for(self, ami: Api) -> None:
        submit(ami, "top", "SELECT home FROM peaks")
        assert told(submit(ami))[2] == (
            "ami is already running. Give it another name, drop the other first, or replace "
            "it: submit --replace."
        )
        assert told(ami.ask("DELETE", "/api/queries/ami")) == (
            400,
            1,
            "ami is read by top. Drop those that read it first.",
        )
        body = [{"fragment": "peaks", "node": "a"}]
        assert told(ami.ask("POST", "/api/moves", json=body)) == (
            400,
            1,
            "peaks already runs on a. Nothing needs to be done.",
        )
        body[0]["node"] = "c"
        assert told(ami.ask("POST", "/api/moves", json=body))[2] == "no node c. There are a, b."

    def test_mistakes_are_pointed_at(self, steady: Api) -> None:
        assert told(submit(steady, "top", "SELECT hom FROM peaks"))[2].splitlines()[:3] == [
            "top.sql, query top, line 1:",
            "    SELECT hom FROM peaks",
            "           ^^^",
        ]

    @pytest.mark.parametrize("path", ["/nope", "/api", "/api/queries/", "/docs/x", "/redoc"])
    def test_what_is_not_there(self, steady: Api, path: str) -> None:
        text = f"there is no GET {path}. GET /docs says what there is."
        assert told(steady.ask("GET", path)) == (404, 2, text)

    def test_methods_that_are_not_there(self, steady: Api) -> None:
        assert told(steady.ask("PATCH", "/api/queries")) == (
            405,
            2,
            "there is no PATCH /api/queries. GET /docs says what there is.",
        )

    @pytest.mark.parametrize(
        ("path", "wrong"),
        [
            ("/api/moves?last=0", "last: Input should be greater than or equal to 1"),
            ("/api/moves?last=x", "last: Input should be a valid integer"),
            ("/api/nodes/a/series?last=601", "last: Input should be less than or equal to 600"),
            (f"/api/events?after={10**30}", "after: Input should be less than or equal to"),
            ("/api/events?after=-1", "after: Input should be greater than or equal to 0"),
            ("/api/logs/a?lines=1e9", "lines: Input should be a valid integer"),
            (f"/api/streams/peaks/rows?after={'9' * 300}", "after: Input should be less than"),
            ("/api/streams/peaks/rows?wait_s=nan", "wait_s: Input should be"),
            ("/api/streams/peaks/rows?wait_s=31", "wait_s: Input should be less than or equal"),
            ("/api/streams/peaks/rows?most_rows=0", "most_rows: Input should be greater than"),
        ],
    )
    def test_numbers_out_of_range(self, steady: Api, path: str, wrong: str) -> None:
        status, code, text = told(steady.ask("GET", path))
        assert (status, code) == (422, 2)
        where = path.partition("?")[0]
        assert text.startswith(f"GET {where} was given something else than it takes; {wrong}")

    @pytest.mark.parametrize("body", BODIES)
    @pytest.mark.parametrize("path", ["/api/queries", "/api/moves"])
    def test_bodies_that_make_no_sense(self, steady: Api, path: str, body: bytes) -> None:
        before = (steady.catalog.submissions(), steady.catalog.moves())
        headers = {"Content-Type": "application/json"}
        status, code, _ = told(steady.ask("POST", path, content=body, headers=headers))
        assert 400 <= status < 500
        assert code in (1, 2)
        assert (steady.catalog.submissions(), steady.catalog.moves()) == before

    def test_bodies_of_other_kinds(self, steady: Api) -> None:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
            answer = steady.ask(
                "POST", "/api/queries", content=b"x=1", headers={"Content-Type": kind}
            )
            assert told(answer)[:2] == (422, 2)

    def test_a_text_that_is_too_long(self, steady: Api) -> None:
        assert told(submit(steady, text="x" * 1_000_001))[:2] == (422, 2)

    def test_an_unreachable_catalog(self, steady: Api, monkeypatch: pytest.MonkeyPatch) -> None:
        away = UnreachableError("the catalog is away", hint="Look.")
        monkeypatch.setattr(steady.catalog, "units", raising(away))
        assert told(steady.ask("GET", "/api/fragments")) == (503, 3, "the catalog is away. Look.")

    def test_trouble_while_running(self, steady: Api, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(steady.catalog, "units", raising(RunError("it burns")))
        assert told(steady.ask("GET", "/api/fragments")) == (500, 4, "it burns")

    def test_what_nobody_has_thought_of(self, steady: Api, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(steady.catalog, "units", raising(ZeroDivisionError("secret")))
        assert told(steady.ask("GET", "/api/fragments")) == (
            500,
            4,
            "the controller failed (ZeroDivisionError). "
            "Its log says more: penstock logs controller.",
        )


NAMES = (
    "..",
    "%2e%2e",
    "%2e%2e%2f%2e%2e%2ftoken",
    "..%2ftoken",
    "..%5ctoken",
    "%2fetc%2fpasswd",
    "token",
    "catalog.db",
    "peaks%00",
    "peaks%2f..%2f..%2ftoken",
    "peaks%0a",
    "%ff%fe",
    "a" * 3_000,
)


def tree(folder: Path) -> dict[Path, bytes]:
    """All files with what is in them, but for the catalog, which is asked itself."""
    return {
        path: path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith("catalog.db")
    }


def led_astray(api: Api) -> Iterator[tuple[str, str]]:
    """All routes with names in them, each with something else in their place."""
    described = api.app.openapi()["paths"]
    for path in (one for one in described if "{" in one):
        for method in map(str.upper, described[path]):
            for name in NAMES:
                yield method, path.replace("{name}", name).replace("{reader}", "me")
                if "{reader}" in path and not name.isidentifier():
                    yield method, path.replace("{name}", "peaks").replace("{reader}", name)


def test_names_lead_nowhere(tmp_path: Path) -> None:
    """Whatever is put in place of a name, no file is touched or shown that has another one."""
    (tmp_path / "token").write_text("the neighbour's")
    with served(tmp_path) as api:
        submit(api)
        RowWriter(api.home.state / "channels" / "peaks").write(1)
        before, changes = tree(tmp_path), api.catalog.changes()
        for method, path in led_astray(api):
            answer = api.ask(method, path)
            assert 400 <= answer.status_code < 500, (method, path)
            assert told(answer)[1] in (1, 2)
            assert "neighbour" not in answer.text
            assert api.home.token() not in answer.text
        assert tree(tmp_path) == before
        assert api.catalog.changes() == changes


@pytest.mark.parametrize("kind", ["yaml", "sql"])
@pytest.mark.parametrize("name", ["../x", "..", "a/b", "/etc/x", "a\\b", "%2e%2e", ".token"])
def test_names_of_submissions_lead_nowhere(steady: Api, name: str, kind: str) -> None:
    text = "SELECT home FROM peaks" if kind == "sql" else "queries:\n  q: SELECT home FROM peaks"
    before = tree(steady.home.path)
    body = {"name": name, "kind": kind, "text": text}
    status, code, text = told(steady.ask("POST", "/api/queries", json=body))
    assert (status, code) == (400, 1)
    assert text.startswith(f"{name!r} cannot name a submission")
    assert tree(steady.home.path) == before
