"""Every command of the tutorial, run as shown, with the output compared."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "docs" / "tutorial.md"
_BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
_FILE = re.compile(r"`([\w.]+)`\s*$")


def written_files(text: str) -> Iterator[tuple[str, str]]:
    """The files the tutorial has its reader write: blocks announced by their file's name."""
    for block in _BLOCK.finditer(text):
        named = _FILE.search(text[: block.start()].rstrip())
        if block.group(1) in ("csv", "yaml") and named:
            yield named.group(1), block.group(2)


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Each command with the output shown below it."""
    for block in _BLOCK.finditer(text):
        if block.group(1) == "console":
            for part in re.split(r"^\$ ", block.group(2), flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                yield command, output


def assert_shown(shown: str, printed: str) -> None:
    """The lines shown occur in what was printed, in order; … stands for anything."""
    pieces = [re.escape(one.strip()) for one in re.split("…", shown) if one.strip()]
    lines = [re.sub(r"(\\\s|\s)+", r"\\s+", piece) for piece in pieces]
    assert re.search(".*".join(lines), printed, re.DOTALL), f"shown:\n{shown}\nprinted:\n{printed}"


@pytest.mark.timeout(400)
def test_tutorial(tmp_path: Path) -> None:
    text = TUTORIAL.read_text()
    files = dict(written_files(text))
    assert set(files) == {"readings.csv", "first.yaml"}
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    ran = 0
    for command, shown in commands(text):
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path,
            env=os.environ | {"PATH": path},
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert_shown(shown, done.stdout + done.stderr)
        assert "Traceback" not in done.stderr
        ran += 1
    assert ran == 8
