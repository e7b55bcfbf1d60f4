"""A disk that fills up while queries run: a clear end, nothing lost, and on it goes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from system.test_exactly_once import check, deployment, expected
from system.under_test import UnderTest
from waiting import until

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


@pytest.fixture
def crowded(tmp_path: Path) -> Iterator[Path]:
    """A folder for a system whose state lies on a small disk."""
    state = tmp_path / "home" / "state"
    state.mkdir(parents=True)
    if sys.platform != "linux" or os.geteuid() != 0 or not mounted(state, "1m"):
        pytest.skip("making a small disk needs the right to mount one (Linux, root)")
    yield tmp_path
    subprocess.run(["umount", "-l", str(state)], check=True)


@pytest.mark.timeout(600)
def test_a_system_of_several_waits_for_room_and_goes_on(crowded: Path) -> None:
    system = UnderTest(crowded, nodes=2)
    try:
        system.submit("meters", deployment(1))

        def waiting() -> list[str]:
            held = [unit for unit in system.catalog.units() if unit.state == "held back"]
            return [one.name for one in held if "is full" in one.error or "No space" in one.error]

        until(waiting, 200, "somebody has no room")
        assert system.catalog.units() and system.fragments()
        state = system.home.state
        subprocess.run(["mount", "-o", "remount,size=500m", str(state)], check=True)
        system.await_finished(200)
        assert not any(unit.restarts for unit in system.catalog.units())
        assert "waits for room" in system.log("a") + system.log("b")
        check(system, expected(1))
    finally:
        system.stop()
