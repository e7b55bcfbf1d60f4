"""A disk that fills up while queries run: a clear end, nothing lost, and on it goes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

DEPLOYMENT = """
streams:
  readings:
    source: {generate: meters, homes: 200, every: 30min, days: 20, disorder: 2min}
    event_time: ts
    lateness: 2min
queries:
  hourly:
    sql: |
      SELECT home, window.start AS hour, sum(kwh) AS kwh
      FROM readings GROUP BY home, window(ts, '1 hour')
    to: {files: %s, format: parquet}
"""


def mounted(folder: Path, size: str) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    if sys.platform != "linux" or os.geteuid() != 0 or not mounted(folder, "1m"):
        pytest.skip("making a small disk needs the right to mount one (Linux, root)")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def run(file: Path, state: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "penstock", "run", str(file), "--state", str(state), "--json"]
    return subprocess.run(command, capture_output=True, text=True, timeout=250, check=False)


@pytest.mark.timeout(600)
def test_a_full_disk_stops_the_run_and_more_room_lets_it_go_on(
    small_disk: Path, tmp_path: Path
) -> None:
    file = tmp_path / "meters.yaml"
    file.write_text(DEPLOYMENT % (small_disk / "hourly"))
    state = small_disk / "state"

    full = run(file, state)
    assert full.returncode == 4, full.stdout + full.stderr
    assert f"the disk under {state} is full" in full.stderr
    assert "run the same command again; nothing accepted is lost." in full.stderr
    assert "Traceback" not in full.stderr

    subprocess.run(["mount", "-o", "remount,size=500m", str(small_disk)], check=True)
    done = run(file, state)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["finished"]
    assert _rows(small_disk / "hourly") == 200 * 24 * 20


def _rows(folder: Path) -> int:
    import pyarrow.dataset as ds

    return int(ds.dataset(folder, format="parquet").count_rows())
