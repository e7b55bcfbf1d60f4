"""Submitting from standard input, dropping, following: what is asked, sent and shown."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from penstock.cli import system_commands as module
from penstock.cli.main import app
from penstock.control.answer_models import SubmittedAnswer
from penstock.control.records import EventRecord


class ToldClient:
    """Keeps what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def submit(self, *given: Any) -> SubmittedAnswer:
        self.asked.append(given)
        return SubmittedAnswer(name=given[0], fragments=["top"], unread=[], begins=[])

    def drop(self, name: str) -> None:
        self.asked.append((name,))


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
    assert client.asked == ([("top",)] if dropped else [])


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
    monkeypatch.setattr(module.time, "sleep", lambda _: None)
    done = CliRunner().invoke(app, ["events", "--follow", *(["--json"] if as_json else [])])
    lines = done.stdout.splitlines()
    assert len(lines) == 3
    for number, line in enumerate(lines, 1):
        told = json.loads(line)["text"] if as_json else line.partition(": ")[2]
        assert told == f"step {number}"
