"""What the commands of a system print, from answers as a controller gives them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import TypeAdapter
from typer.testing import CliRunner

from penstock.cli import (
    following_commands,
    move_command,
    printing,
    status_command,
    submitting_commands,
)
from penstock.cli.main import app
from penstock.control.answer_models import (
    FragmentAnswer,
    MoveAnswer,
    NodeAnswer,
    QueryAnswer,
    SubmittedAnswer,
)
from penstock.control.records import EventRecord

EVENTS = [
    {
        "id": 1,
        "at_s": 0.0,
        "kind": "recovery",
        "subject": "big",
        "text": "works on a after 17.3 s: silence 5.0 s, decision 0.0 s, first batch 9.6 s",
        "numbers": {"move": 2},
    }
]
MOVE = {
    "id": 1,
    "unit": "big",
    "source": "a",
    "target": "b",
    "state": "done",
    "is_warm": True,
    "created_s": 0.0,
    "ended_s": 2.0,
    "pause_s": 0.456,
    "reason": "asked for",
    "numbers": {},
    "error": "",
    "by": "people",
}


class ToyClient:
    """Answers what it was told to."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self._answers = answers

    def _told(self, name: str, kind: Any) -> Any:
        return TypeAdapter(kind).validate_python(self._answers[name])

    def events(self, _: int) -> Any:
        return self._told("events", list[EventRecord])

    def queries(self) -> Any:
        return self._told("queries", list[QueryAnswer])

    def fragments(self) -> Any:
        return self._told("fragments", list[FragmentAnswer])

    def nodes(self) -> Any:
        return self._told("nodes", list[NodeAnswer])

    def submit(self, *_: object, **__: object) -> Any:
        return self._told("submit", SubmittedAnswer)

    def move(self, *_: object) -> Any:
        return self._told("move", MoveAnswer)

    def await_move(self, _: int) -> Any:
        return self._told("move", MoveAnswer).model_copy(update={"pause_s": None})

    def await_pause(self, _: int) -> Any:
        return self._told("move", MoveAnswer)


BEGUN = {
    "fragment": "peaks",
    "queries": ["peaks"],
    "from": "start",
    "since": None,
    "untimed": False,
}


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """What a command prints, in lines as wide as ``columns``."""
    monkeypatch.setattr(printing.time, "localtime", lambda _: (1970, 1, 1, 9, 5, 7, 3, 1, 0))

    def run(arguments: str, columns: int = 300, **answers: Any) -> str:
        for module in (status_command, submitting_commands, move_command, following_commands):
            monkeypatch.setattr(module, "connected", lambda _: ToyClient(answers))
        done = CliRunner().invoke(app, arguments.split(), env={"COLUMNS": str(columns)})
        assert done.exit_code == 0, done.output
        return done.output

    return run


def test_events(said: Callable[..., str]) -> None:
    answers = {"events": EVENTS}
    assert said("events", **answers) == (
        "09:05:07  recovery  big: works on a after 17.3 s: "
        "silence 5.0 s, decision 0.0 s, first batch 9.6 s\n"
    )
    assert json.loads(said("events --json", **answers)) == EVENTS
    assert said("events", events=[]) == "nothing has happened yet\n"


def test_a_number_stays_with_its_unit_where_lines_are_short(said: Callable[..., str]) -> None:
    assert said("events", columns=65, events=EVENTS) == (
        "09:05:07  recovery  big: works on a after 17.3 s: silence 5.0 s,\n"
        "          decision 0.0 s, first batch 9.6 s\n"
    )


def test_a_move_and_its_pause(said: Callable[..., str]) -> None:
    assert said("move big b", move=MOVE) == (
        "09:05:07  move 1: big a → b done in 2.0 s, paused 0.46 s: asked for\n"
    )


def test_streams_that_wait_for_a_reader(said: Callable[..., str], tmp_path: Any) -> None:
    (tmp_path / "ami.yaml").write_text("")
    parts = {"fragments": ["readings", "peaks"], "unread": ["spare"], "begins": [BEGUN]}
    assert said(f"submit {tmp_path / 'ami.yaml'}", submit={"name": "ami", **parts}) == (
        "running as ami: readings, peaks; once something reads it, spare\n"
    )


def test_since_when_a_query_counts(said: Callable[..., str], tmp_path: Any) -> None:
    (tmp_path / "late.sql").write_text("")
    late = {**BEGUN, "since": "2026-03-01T12:00:00.250000Z"}
    untimed = {**BEGUN, "queries": ["logged"], "untimed": True}
    parts = {"fragments": ["peaks", "logged"], "unread": [], "begins": [late, untimed]}
    assert said(f"submit {tmp_path / 'late.sql'}", submit={"name": "late", **parts}) == (
        "running as late: peaks, logged\n"
        "peaks counts after 2026-03-01 12:00:00.25 UTC, event time\n"
        "logged sees rows from the next batch on where they have no event time\n"
    )
    listed = {"name": "late", "state": "running", "nodes": ["a"], "queries": ["peaks", "logged"]}
    listed["fragments"] = listed["queries"]
    for begins, words in (
        ([late], "2026-03-01 12:00:00.25"),
        ([untimed], "its submission     "),
        ([BEGUN], "the start          "),
    ):
        found = [{**listed, "begins": begins}]
        assert f" late  running  a   {words} " in said("ls", queries=found)


def test_a_beginning_that_there_is_not(tmp_path: Any) -> None:
    (tmp_path / "late.sql").write_text("")
    done = CliRunner().invoke(app, ["submit", str(tmp_path / "late.sql"), "--from", "then"])
    assert "a query cannot begin from 'then'. Say now, oldest or start." in str(done.exception)


def test_a_table_in_a_narrow_terminal(said: Callable[..., str]) -> None:
    node = {
        "name": "a",
        "state": "up",
        "utilisation": 0.5,
        "cores": 2,
        "memory_limit_bytes": 2**30,
        "pid": 1,
        "version": "",
        "memory_bytes": 2**29,
        "heard": {"b": 1.52, "c": 0.3},
        "runs": ["one", "two", "three", "four", "five"],
    }
    assert said("nodes", columns=72, nodes=[node]) == (
        " node  state  cpu       memory  heard from          runs\n"
        " a     up     50% of 2  512 MB  2, up to 1.5 s ago  one, two, three,\n"
        "                                                    four, five\n"
    )
    node["heard"] = {}
    assert "512 MB  nobody " in said("nodes", columns=72, nodes=[node])


def test_explaining_a_move_takes_its_word_and_a_number(tmp_path: Any) -> None:
    for arguments, text in (
        (["explain", "ami.yaml", "3"], "penstock explain ami.yaml 3 has a number too many"),
        (["explain", "move", "3", "--format", "sql"], "a move cannot be explained as sql"),
    ):
        done = CliRunner().invoke(app, arguments)
        assert text in str(done.exception)
        assert getattr(done.exception, "exit_code", None) == 2


def test_results_against_their_limits(said: Callable[..., str]) -> None:
    told = {
        "name": "peaks",
        "kind": "fragment",
        "node": "a",
        "belongs": "a",
        "state": "running",
        "notes": [],
        "limit_s": 5.0,
        "late": True,
        "epoch": 1,
        "error": "",
        "restarts": 2,
        "restarts_at_most": 3,
        "since": None,
        "untimed": False,
        "measured": {},
        "limit_share": 1.2,
        "watermark_gap_s": 1234.5,
        "cpu_share": 0.75,
    }
    unknown = {**told, "name": "q", "limit_share": None, "watermark_gap_s": None, "cpu_share": None}
    lines = said("status --queries", fragments=[told, unknown]).splitlines()
    assert lines[1].split() == ["peaks", "running", "5", "s", "120%", "1,234.5", "s", "75%", "2"]
    assert lines[2].split() == ["q", "running", "5", "s", "2"]
