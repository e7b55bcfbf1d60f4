"""``penstock balance``: what it asks for, and what it prints."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from penstock.cli import balance_command as module
from penstock.cli.balance_command import submitted_line
from penstock.cli.main import app
from penstock.control.answer_models import BalanceAnswer

BY_FILE = BalanceAnswer(
    policy="one-way",
    settings={"every": "10s", "suggest": False, "most_load": None},
    set_by="file",
    submission="ami",
    at_s=0.0,
    text="one-way, every 10s",
)
COMMANDED = BY_FILE.model_copy(update={"set_by": "command", "submission": None})


class ToldClient:
    def __init__(self) -> None:
        self.asked: list[Any] = []

    def balance(self) -> BalanceAnswer:
        return BY_FILE

    def set_balance(self, policy: str, settings: dict[str, str]) -> BalanceAnswer:
        self.asked.append((policy, settings))
        return COMMANDED


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> ToldClient:
    made = ToldClient()
    monkeypatch.setattr(module, "connected", lambda _: made)
    monkeypatch.setattr(module.time, "localtime", module.time.gmtime)
    return made


def penstock(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["balance", *arguments])


def test_it_is_shown(client: ToldClient) -> None:
    assert penstock().stdout.splitlines() == [
        "balance: one-way, every 10s; by the file of ami, 1970-01-01 00:00:00",
        "  every      10s",
        "  suggest    false",
        "  most_load  no limit",
    ]
    assert json.loads(penstock("--json").stdout) == BY_FILE.model_dump()
    assert client.asked == []


def test_it_is_set(client: ToldClient) -> None:
    done = penstock("one-way", "every=5s", "patience=3")
    assert client.asked == [("one-way", {"every": "5s", "patience": "3"})]
    first = "balance: one-way, every 10s; by command, 1970-01-01 00:00:00"
    assert done.stdout.splitlines()[0] == first


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        (
            ["every=5s"],
            "every=5s comes without a policy. Name it first: penstock balance correlation every=5s",
        ),
        (["off", "every"], "every is no setting. Write KEY=VALUE, for example every=5s."),
        (["off", "every="], "every= is no setting. Write KEY=VALUE, for example every=5s."),
    ],
)
def test_what_is_no_setting(client: ToldClient, arguments: list[str], wrong: str) -> None:
    done = penstock(*arguments)
    assert str(done.exception) == wrong
    assert client.asked == []


def test_what_came_of_what_a_file_says() -> None:
    assert submitted_line(BY_FILE, "ami") == (
        "the system is balanced as this file says: one-way, every 10s"
    )
    for other in (submitted_line(COMMANDED, "ami"), submitted_line(BY_FILE, "more")):
        assert other.startswith("the system stays balanced as commanded: one-way, every 10s; what")
