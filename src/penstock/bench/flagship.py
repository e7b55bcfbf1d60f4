"""What the flagship example needs: time to its first result, and memory."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from penstock.bench.processes import own_bytes, resident_bytes, total
from penstock.bench.report import BenchCase, limited
from penstock.errors import RunError

_GIBIBYTE = 1 << 30
_BETWEEN_LOOKS_S = 0.1
FLAGSHIP = Path(__file__).parents[3] / "examples" / "ami" / "ami.yaml"


def flagship_cases(say: Callable[[str], None]) -> list[BenchCase]:
    """Runs the flagship as a user does and watches it from outside."""
    if not FLAGSHIP.exists():
        return []
    say("the flagship example")
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as name:
        folder = Path(name)
        shutil.copy(FLAGSHIP, folder)
        return _watched(folder)


def _watched(folder: Path) -> list[BenchCase]:
    command = [sys.executable, "-m", "penstock", "run", str(folder / FLAGSHIP.name), "--no-live"]
    started_s = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    first_s: float | None = None
    peak_rss = peak_pss = 0.0
    while process.poll() is None:
        if first_s is None and _has_result(folder):
            first_s = time.monotonic() - started_s
        peak_rss = max(peak_rss, total(process.pid, resident_bytes))
        peak_pss = max(peak_pss, total(process.pid, own_bytes))
        time.sleep(_BETWEEN_LOOKS_S)
    if process.returncode or first_s is None:
        assert process.stderr is not None
        raise RunError(f"the flagship failed: {process.stderr.read().decode()}")
    return [
        limited("flagship, time to first result", first_s, "s"),
        limited("flagship, peak memory, shared pages once", peak_pss / _GIBIBYTE, "GiB", 1.0),
        limited("flagship, peak memory, sum of RSS", peak_rss / _GIBIBYTE, "GiB", 1.0),
    ]


def _has_result(folder: Path) -> bool:
    counts = folder.glob(".penstock/ami/fragments/*/rows_out")
    return any(json.loads(count.read_text())["rows"] for count in counts)
