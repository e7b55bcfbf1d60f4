"""Calling ``penstock`` as a shell would."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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
