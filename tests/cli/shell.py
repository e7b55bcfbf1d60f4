"""Calling ``penstock`` as a shell would."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.cli.main import main

SOURCE = Path(__file__).parents[2] / "src"
COMMAND = (sys.executable, "-m", "penstock.cli")


def environment(**extra: str) -> dict[str, str]:
    """This process's environment, with the sources where Python finds them."""
    return {**os.environ, "PYTHONPATH": str(SOURCE), "COLUMNS": "100", **extra}


def penstock(
    *arguments: str, folder: Path | None = None, timeout_s: float = 60, **extra: str
) -> subprocess.CompletedProcess[str]:
    """The command with these arguments, run to its end in ``folder``."""
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=folder,
        env=environment(**extra),
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )


class Here:
    """The command run in this process: the same from its first line on, without the start."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(
        self, *arguments: str, folder: Path, **extra: str
    ) -> subprocess.CompletedProcess[str]:
        """The command with these arguments, run to its end in ``folder``."""
        command = ["penstock", *arguments]
        with self._monkeypatch.context() as patch:
            patch.chdir(folder)
            patch.setattr(sys, "argv", command)
            patch.setattr(signal, "signal", lambda number, handler: None)
            for name, value in {"COLUMNS": "100", **extra}.items():
                patch.setenv(name, value)
            with pytest.raises(SystemExit) as left:
                main()
        printed = self._capsys.readouterr()
        return subprocess.CompletedProcess(
            command, int(left.value.code or 0), printed.out, printed.err
        )
