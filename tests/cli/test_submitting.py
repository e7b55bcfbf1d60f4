"""Submitting from standard input, dropping, following: what is asked, sent and shown."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import ANY

import pytest
from typer.testing import CliRunner

from penstock.cli import following_commands, printing
from penstock.cli import submitting_commands as module
from penstock.cli.main import app
from penstock.control.answer_models import DroppedAnswer, SubmittedAnswer
from penstock.control.client import LogPart
from penstock.control.records import EventRecord
from penstock.errors import UnreachableError


class ToldClient:
    """Keeps what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def submit(self, *given: Any, **_: Any) -> SubmittedAnswer:
        self.asked.append(given)
        return SubmittedAnswer(name=given[0], fragments=["top"], unread=[], begins=[])

    def drop(self, name: str, keep_data: bool) -> DroppedAnswer:
        self.asked.append((name, keep_data))
        return DroppedAnswer(name=name, kept="kept/top-1" if keep_data else None)

    def await_running(self, name: str) -> None:
        self.asked.append(("await", name))


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> ToldClient:
    made = ToldClient()
    monkeypatch.setattr(module, "connected", lambda _: made)
    return made


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("SELECT home FROM peaks", "sql"),
        ("-- the top\n\n  with a as (select 1) select * from a", "sql"),
        ("/* SELECT */ select 1", "sql"),
        ("queries:\n  top: SELECT home FROM peaks\n", "yaml"),
        ("# SELECT\nqueries: {}\n", "yaml"),
    ],
)
def test_what_comes_from_standard_input(client: ToldClient, text: str, kind: str) -> None:
    done = CliRunner().invoke(app, ["submit", "-", "--name", "top"], input=text)
    assert (done.exit_code, done.stdout) == (0, "running as top: top\n")
    assert client.asked[0][:3] == ("top", kind, text)


def test_standard_input_needs_a_name(client: ToldClient) -> None:
    done = CliRunner().invoke(app, ["submit", "-"], input="SELECT 1")
    assert str(done.exception) == (
        "what comes from standard input has no name. Give one with --name."
    )
    assert client.asked == []


@pytest.mark.parametrize(
    ("arguments", "at_terminal", "typed", "dropped"),
    [
        (["drop", "top"], True, "n\n", False),
        (["drop", "top"], True, "y\n", True),
        (["drop", "top", "--yes"], True, "", True),
        (["drop", "top"], False, "", True),
    ],
    ids=["no", "yes", "told before", "in a script"],
)
def test_dropping_asks_at_a_terminal(
    client: ToldClient,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    at_terminal: bool,
    typed: str,
    dropped: bool,
) -> None:
    monkeypatch.setattr(module, "_is_asked", lambda: at_terminal)
    done = CliRunner().invoke(app, arguments, input=typed)
    assert done.exit_code == (0 if dropped else 1)
    assert client.asked == ([("top", False)] if dropped else [])


def test_data_that_is_kept_is_named(client: ToldClient) -> None:
    done = CliRunner().invoke(app, ["drop", "top", "--yes", "--keep-data"])
    assert done.stdout == "top dropped; its data is in kept/top-1\n"
    told = CliRunner().invoke(app, ["drop", "top", "--keep-data", "--json"])
    assert json.loads(told.stdout) == {"name": "top", "kept": "kept/top-1"}
    assert client.asked == [("top", True)] * 2


def test_replacing_and_waiting(client: ToldClient) -> None:
    asked = ["submit", "-", "--name", "top", "--replace", "--wait"]
    assert CliRunner().invoke(app, asked, input="SELECT 1").exit_code == 0
    assert client.asked == [("top", "sql", "SELECT 1", ANY, None, "now", True), ("await", "top")]


def happened(number: int) -> EventRecord:
    return EventRecord(number, 0.0, "move", "q", f"step {number}")


@pytest.mark.parametrize("as_json", [False, True])
def test_following_shows_every_event_once(
    client: ToldClient, monkeypatch: pytest.MonkeyPatch, as_json: bool
) -> None:
    looks = iter([[happened(1)], [happened(1), happened(2)], [happened(2), happened(3)]])

    def events(_: int) -> list[EventRecord]:
        try:
            return next(looks)
        except StopIteration:
            raise KeyboardInterrupt from None

    monkeypatch.setattr(client, "events", events, raising=False)
    monkeypatch.setattr(following_commands, "connected", lambda _: client)
    monkeypatch.setattr(following_commands.time, "sleep", lambda _: None)
    done = CliRunner().invoke(app, ["events", "--follow", *(["--json"] if as_json else [])])
    lines = done.stdout.splitlines()
    assert len(lines) == 3
    for number, line in enumerate(lines, 1):
        told = json.loads(line)["text"] if as_json else line.partition(": ")[2]
        assert told == f"step {number}"


def test_nothing_is_skipped_when_much_happens_at_once(
    client: ToldClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = [happened(number) for number in range(1, 6)]
    looks = iter([5, 700])

    def events(last: int) -> list[EventRecord]:
        # What one look cannot hold is asked for again, with more room.
        if last != following_commands._LOOKED_AT_MOST:
            try:
                known.extend(happened(number) for number in range(len(known) + 1, next(looks) + 1))
            except StopIteration:
                raise KeyboardInterrupt from None
        return known[-last:]

    monkeypatch.setattr(client, "events", events, raising=False)
    monkeypatch.setattr(following_commands, "connected", lambda _: client)
    monkeypatch.setattr(following_commands.time, "sleep", lambda _: None)
    done = CliRunner().invoke(app, ["events", "--follow", "--json"])
    told = [json.loads(line)["text"] for line in done.stdout.splitlines()]
    assert told == [f"step {number}" for number in range(1, 701)]


def test_a_log_is_followed(client: ToldClient, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = iter([LogPart("one\ntwo\n", 8), LogPart("", 8), LogPart("three\n", 14)])
    asked = []

    def log_part(name: str, lines: int, after: int | None = None) -> LogPart:
        asked.append((name, lines, after))
        try:
            return next(parts)
        except StopIteration:
            raise KeyboardInterrupt from None

    monkeypatch.setattr(client, "log_part", log_part, raising=False)
    monkeypatch.setattr(following_commands, "connected", lambda _: client)
    monkeypatch.setattr(following_commands.time, "sleep", lambda _: None)
    done = CliRunner().invoke(app, ["logs", "a", "-f", "-n", "2", "--json"])
    assert [json.loads(line)["line"] for line in done.stdout.splitlines()] == [
        "one",
        "two",
        "three",
    ]
    assert asked == [("a", 2, None), ("a", 2, 8), ("a", 2, 8), ("a", 2, 14)]


def test_watching_goes_on_where_nobody_answers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    looks = iter(["all is well", UnreachableError("nobody answers"), "all is well again"])

    def show() -> None:
        told = next(looks)
        if isinstance(told, Exception):
            raise told
        print(told)

    monkeypatch.setattr(printing.time, "sleep", lambda _: None)
    with pytest.raises(StopIteration):
        printing.watched(show)
    assert capsys.readouterr().out == "all is well\nnobody answers\nall is well again\n"


def test_what_will_go_wrong_is_said(client: ToldClient, monkeypatch: pytest.MonkeyPatch) -> None:
    made = SubmittedAnswer(
        name="top", fragments=["top"], unread=[], begins=[], warnings=["no room for it"]
    )
    monkeypatch.setattr(client, "submit", lambda *_, **__: made)
    done = CliRunner().invoke(app, ["submit", "-", "--name", "top"], input="SELECT 1")
    assert done.stdout == "warning: no room for it\nrunning as top: top\n"
