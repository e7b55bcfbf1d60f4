"""Rows of a running system on the command line."""

from __future__ import annotations

import json
import time

import pytest
from typer.testing import CliRunner

from penstock.cli import rows_command as module
from penstock.cli.main import app
from penstock.control.answer_models import LetterAnswer, RowsAnswer
from penstock.errors import UsageError

FIRST = [{"home": "h1", "kwh": 9.4}, {"home": "h2", "kwh": None}]
SECOND = [{"home": "h3", "kwh": 1.0}]


LETTERS = [
    {"kind": "late", "reason": "late", "row": {"ts": "2026-01-01", "n": 1}},
    {"kind": "malformed", "file": "a.csv", "line": 7, "reason": "1 column", "row": '"a,b"'},
    {"kind": "skipped", "file": "b.csv", "line": 0, "reason": "b.csv is damaged", "row": ""},
]


class ToyClient:
    """Has two batches, and then no more, or an end."""

    def __init__(self, ends: bool = False) -> None:
        self.asked: list[tuple[int | None, float | None, float]] = []
        self.groups: set[str | None] = set()
        self._ends = ends

    def rows(
        self,
        stream: str,
        after: int | None,
        since_s: float | None,
        wait_s: float,
        groups: str | None = None,
    ) -> RowsAnswer:
        assert stream == "heavy"
        if since_s is not None and since_s > time.time():
            return RowsAnswer(rows=[], next=2, ended=False)
        self.asked.append((after, since_s, wait_s))
        self.groups.add(groups)
        at = after or 0
        found = (FIRST, SECOND, [])[at]
        return RowsAnswer(rows=found, next=min(2, at + 1), ended=self._ends and at == 1)

    def dead_letters(self, stream: str, last: int) -> list[LetterAnswer]:
        assert (stream, last) == ("readings", 1_000)
        return [LetterAnswer.model_validate(letter) for letter in LETTERS]

    def close(self) -> None:
        pass


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> ToyClient:
    made = ToyClient()
    monkeypatch.setattr(module, "connected", lambda _: made)
    return made


def said(arguments: str) -> str:
    done = CliRunner().invoke(app, ["rows", *arguments.split()])
    assert done.exit_code == 0, done.output
    return done.output


def test_all_that_is_kept(client: ToyClient) -> None:
    assert said("heavy").splitlines() == [
        "heavy  home=h1  kwh=9.4",
        "heavy  home=h2  kwh=",
        "heavy  home=h3  kwh=1.0",
    ]
    assert client.asked == [(None, None, 0.0), (1, None, 0.0)]


def test_a_json_object_a_row(client: ToyClient) -> None:
    assert [json.loads(line) for line in said("heavy --json").splitlines()] == [*FIRST, *SECOND]


def test_since_a_while(client: ToyClient) -> None:
    before_s = time.time()
    said("heavy --since 10min")
    asked_s = client.asked[0][1]
    assert asked_s is not None
    assert before_s - 601 < asked_s <= time.time() - 600
    assert [one[1] for one in client.asked[1:]] == [None], "from then on by numbers"


def test_following_until_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    client = ToyClient(ends=True)
    monkeypatch.setattr(module, "connected", lambda _: client)
    assert len(said("heavy --follow").splitlines()) == 3
    assert [one[2] for one in client.asked] == [1.0, 1.0]


def test_only_some_groups(client: ToyClient) -> None:
    said("heavy")
    assert client.groups == {None}
    client.groups.clear()
    said("heavy --groups 0-2,7")
    assert client.groups == {"0-2,7"}


@pytest.mark.parametrize("arguments", ["--dead-letters readings", "readings --dead-letters"])
def test_what_could_not_be_used(client: ToyClient, arguments: str) -> None:
    assert said(arguments).splitlines() == [
        'readings  late  {"ts": "2026-01-01", "n": 1}',
        'readings  malformed  a.csv:7  1 column  "a,b"',
        "readings  skipped  b.csv:0  b.csv is damaged",
    ]
    assert [json.loads(line) for line in said(f"{arguments} --json").splitlines()] == LETTERS


def test_it_cannot_be_followed(client: ToyClient) -> None:
    done = CliRunner().invoke(app, ["rows", "--dead-letters", "readings", "--follow"])
    assert isinstance(done.exception, UsageError)
    assert str(done.exception).startswith("--dead-letters goes with none of --since")
