"""Which system a command is about, and names for systems on other machines."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from cli.shell import Here
from cli.test_completion import completed
from penstock.cli.contexts import contexts_file
from penstock.cli.target import Target, chosen
from penstock.errors import UsageError

pytestmark = pytest.mark.core
URL = "http://127.0.0.1:7400"


@pytest.fixture(autouse=True)
def nothing_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("URL", "TOKEN", "CONTEXT", "HOME"):
        monkeypatch.delenv(f"PENSTOCK_{name}", raising=False)


def test_what_is_said_first_counts(
    tmp_path: Path, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    here("context", "add", "big", URL, "--token", "secret", folder=tmp_path)
    big = Target(url=URL, token="secret")
    assert chosen(None, {}) == Target()
    assert chosen(tmp_path, {}) == Target(tmp_path)
    assert chosen(None, {"context": "big"}) == big
    assert chosen(None, {"context": "big", "token": "new"}) == Target(url=URL, token="new")
    assert chosen(None, {"url": "http://x/", "token": "t"}) == Target(url="http://x", token="t")
    monkeypatch.setenv("PENSTOCK_CONTEXT", "big")
    assert chosen(None, {}) == big
    assert chosen(tmp_path, {}) == Target(tmp_path)
    monkeypatch.setenv("PENSTOCK_URL", "http://y")
    monkeypatch.setenv("PENSTOCK_TOKEN", "u")
    assert chosen(None, {}) == Target(url="http://y", token="u")
    assert chosen(None, {"context": "big"}) == big


@pytest.mark.parametrize(
    ("home", "told", "words"),
    [
        (Path("x"), {"url": URL}, "--home and --url name two systems"),
        (None, {"url": URL, "context": "big"}, "--url and --context name two systems"),
        (None, {"url": URL}, f"there is no token for {URL}. Give --token"),
        (None, {"token": "t"}, "--token goes with --url"),
        (None, {"context": "bog"}, "no context bog. There are none."),
        (None, {"url": URL, "token": "@none"}, "the token in none cannot be read"),
    ],
)
def test_what_makes_no_sense(home: Path | None, told: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError) as error:
        chosen(home, told)
    assert words in str(error.value)


def test_contexts_are_kept_for_their_owner_alone(tmp_path: Path, here: Here) -> None:
    (tmp_path / "token").write_text("secret\n")
    added = here("context", "add", "big", f"{URL}/", "--token", "@token", folder=tmp_path)
    assert added.returncode == 0, added.stderr
    assert stat.S_IMODE(contexts_file().stat().st_mode) == 0o600
    listed = here("context", "ls", "--json", folder=tmp_path)
    assert json.loads(listed.stdout) == [{"name": "big", "url": URL}]
    assert completed(here, tmp_path, "status", "--context", "b") == ["big"]
    wrong = here("context", "add", "../x", URL, "--token", "t", folder=tmp_path)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "'../x' cannot name a context" in wrong.stderr
    assert (
        "no address" in here("context", "add", "x", "big", "--token", "t", folder=tmp_path).stderr
    )
    assert here("context", "rm", "big", folder=tmp_path).stdout == "big is forgotten\n"
    gone = here("context", "rm", "big", folder=tmp_path)
    assert (gone.returncode, gone.stderr.strip()) == (2, "no context big. There are none.")
    contexts_file().write_text("{")
    assert "cannot be read" in here("context", "ls", folder=tmp_path).stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["status", "--json"], 3, "there is no system in"),
        (["move", "--json"], 2, "Missing argument"),
        (["walk", "--json"], 2, "No such command"),
        (["explain", "none.yaml", "--json"], 1, "no file none.yaml"),
        (["logs", "--lines", "0", "--json"], 2, "--lines"),
    ],
)
def test_errors_as_json(
    tmp_path: Path, here: Here, arguments: list[str], code: int, words: str
) -> None:
    told = here(*arguments, folder=tmp_path)
    answer = json.loads(told.stdout)
    assert (told.returncode, answer["exit_code"]) == (code, code)
    # People find it where they always do.
    assert told.stderr == answer["text"] + "\n"
    assert words in answer["text"]
