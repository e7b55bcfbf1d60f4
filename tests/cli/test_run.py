"""Whole runs as a shell starts them; few, because each starts Spark."""

import csv
import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.shell import COMMAND, environment, penstock

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

FILE = """\
streams:
  readings:
    source: {{generate: meters, homes: 40, days: 1, speedup: {speedup}, disorder: 2min}}
    lateness: 2min
queries:
  peaks: SELECT home, ts, kwh FROM readings WHERE kwh > 1.5
  hourly:
    sql: |
      SELECT district, window.end AS at, count(*) AS readings, max(kwh) AS kwh
      FROM readings GROUP BY district, window(ts, '1 hour')
    to: {{files: out, format: csv}}
"""
ROWS = 40 * 48
A_DAY_IN_15_S = 86_400 // 15
PATIENCE_S = 400


def deployment(folder: Path, speedup: int) -> Path:
    folder.mkdir()
    path = folder / "tiny.yaml"
    path.write_text(FILE.format(speedup=speedup))
    return path


def written(folder: Path) -> Counter[tuple[str, ...]]:
    """The rows in a folder of results, however many times each."""
    rows: Counter[tuple[str, ...]] = Counter()
    for part in sorted(folder.glob("batch=*/*.csv")):
        with part.open() as file:
            rows.update(tuple(row.values()) for row in csv.DictReader(file))
    return rows


def wait_until(holds: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < until, f"no sign of {what} after {PATIENCE_S} s"
        time.sleep(0.1)


def test_to_the_end_then_nothing_to_do_then_afresh(tmp_path: Path) -> None:
    folder = deployment(tmp_path / "a", 600).parent
    command = ("run", "tiny.yaml", "--speed", "max")

    first = penstock(*command, "--json", folder=folder, timeout_s=PATIENCE_S)
    assert (first.returncode, first.stderr) == (0, "")
    record = json.loads(first.stdout)
    assert (record["deployment"], record["finished"]) == ("tiny", True)
    peaks, hourly = record["queries"]
    assert peaks["rows_in"] == hourly["rows_in"] == record["rows_in"] == ROWS
    assert hourly["rows_out"] == written(folder / "out").total()
    assert record["set_aside"] == {"readings": {"malformed": 0, "late": 0}}

    second = penstock(*command, folder=folder)
    assert (second.returncode, second.stdout) == (0, "")
    assert second.stderr == (
        "tiny has already finished: all its inputs have ended and all results are out; "
        "start over with --fresh\n"
    )

    afresh = penstock(*command, "--fresh", folder=folder, timeout_s=PATIENCE_S)
    assert afresh.returncode == 0, afresh.stderr
    lines = afresh.stdout.splitlines()
    assert len(lines) == peaks["rows_out"]
    assert all(line.startswith("peaks  home=h0") for line in lines)
    said = afresh.stderr.splitlines()
    assert said[0].startswith("penstock 0.1.0 · 2 queries, ")
    assert said[-1].startswith("finished after ")
    out = f"{peaks['rows_out'] + hourly['rows_out']:,}"
    assert said[-1].endswith(f": {ROWS:,} rows in, {out} out, 0 set aside")
    assert f" hourly to csv files in {folder / 'out'}" in said
    # Started over, it wrote all results again beside the former ones: none was taken for done.
    assert set(written(folder / "out").values()) == {2}


def test_interrupted_and_gone_on_is_as_if_undisturbed(tmp_path: Path) -> None:
    undisturbed = deployment(tmp_path / "undisturbed", A_DAY_IN_15_S).parent
    interrupted = deployment(tmp_path / "interrupted", A_DAY_IN_15_S).parent
    whole = penstock(
        "run", "tiny.yaml", "--speed", "max", "--json", folder=undisturbed, timeout_s=PATIENCE_S
    )
    assert whole.returncode == 0, whole.stderr

    # In a group of its own, which gets the signal as a whole, as from a terminal.
    running = subprocess.Popen(
        [*COMMAND, "run", "tiny.yaml"],
        cwd=interrupted,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    first_batches = interrupted / ".penstock" / "tiny" / "fragments"
    wait_until(
        lambda: running.poll() is not None or len(list(first_batches.glob("*/rows_out"))) == 2,
        "first batches",
    )
    os.killpg(running.pid, signal.SIGINT)
    _, said = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 0, said
    assert "\nstopped cleanly after " in said
    assert said.endswith("start again with the same command to go on where it stopped\n")
    assert "Traceback" not in said
    wait_until(lambda: not _group_lives(running.pid), "the end of all processes")

    again = penstock("run", "tiny.yaml", folder=interrupted, timeout_s=PATIENCE_S)
    assert again.returncode == 0, again.stderr
    assert "going on from the state in " in again.stderr
    assert again.stderr.splitlines()[-1].startswith("finished after ")
    assert written(interrupted / "out") == written(undisturbed / "out")


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
