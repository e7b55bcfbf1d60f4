"""Every example of docs/sharing.md, run as shown, with the output compared."""

from __future__ import annotations

import re
import shlex
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.cli.main import app

pytestmark = pytest.mark.core

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "sharing.md").read_text(encoding="utf-8")


def block(kind: str) -> str:
    found = re.findall(rf"```{kind}\n(.*?)```", TEXT, re.DOTALL)
    return str(found[0])


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "case.yaml").write_text(block("yaml"))
    monkeypatch.chdir(tmp_path)
    command, _, shown = block("console").removeprefix("$ ").partition("\n")
    told = CliRunner().invoke(app, shlex.split(command)[1:])
    assert told.exit_code == 0, told.exception
    assert told.output == shown


def test_the_python_example() -> None:
    out = StringIO()
    with redirect_stdout(out):
        exec(compile(block("python"), "sharing.md", "exec"), {})
    assert out.getvalue() == "[0.1 0.3 0.3 0.3] 1\n[0.044 0.095 0.095 0.095] True\n"


def test_what_is_linked_exists() -> None:
    for path in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert (ROOT / "docs" / path).exists(), path
