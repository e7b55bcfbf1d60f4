"""Parts of a benchmark as processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from penstock.errors import RunError


def run_module(module: str, *arguments: str) -> Any:
    """The JSON object that a module prints as its last line; raises what it said if it fails."""
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        log = Path(folder) / "side.log"
        with log.open("wb") as errors:
            done = subprocess.run(
                [sys.executable, "-m", module, *arguments],
                stdout=subprocess.PIPE,
                stderr=errors,
                check=False,
            )
        if done.returncode:
            said = log.read_text(errors="replace")[-2000:]
            raise RunError(f"{module} {' '.join(arguments)} failed: {said}")
        return json.loads(done.stdout.splitlines()[-1])
