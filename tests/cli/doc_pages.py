"""Pages of the documentation: their blocks, and whether commands print what they show."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from typer.testing import CliRunner

from penstock.cli.main import app

ROOT = Path(__file__).parents[2]


class DocPage:
    """A page of the documentation."""

    def __init__(self, name: str) -> None:
        self.text = (ROOT / "docs" / name).read_text(encoding="utf-8")

    def blocks(self, kind: str) -> list[str]:
        """The texts of all blocks of a kind."""
        return re.findall(rf"```{kind}\n(.*?)```", self.text, re.DOTALL)

    def check_commands(self) -> None:
        """Runs every console block in the present folder; … stands for anything."""
        for block in self.blocks("console"):
            command, _, shown = block.removeprefix("$ ").partition("\n")
            told = CliRunner().invoke(app, shlex.split(command)[1:])
            assert told.exit_code == 0, told.exception
            pieces = [
                re.escape(" ".join(part.split())) for part in shown.split("…") if part.strip()
            ]
            printed = " ".join(told.output.split())
            assert re.search(".*".join(pieces), printed), f"{shown}\n{told.output}"

    def check_results(self) -> None:
        """Whether every figure and table that the page points at is there."""
        for path in re.findall(r"\]\((results/[^)]+)\)", self.text):
            assert (ROOT / "docs" / path).exists(), path
