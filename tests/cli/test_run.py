"""Whole runs as a shell starts them; few, because each starts Spark."""

import csv
import json
import os
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from cli.shell import COMMAND, environment, penstock
from waiting import until

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
A_DAY_IN_30_S = 86_400 // 30
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
    assert said[0].startswith("--fresh removes ") and said[0].endswith(f" in {folder / 'out'}")
    assert said[1].startswith("penstock 0.1.0 · 2 queries, ")
    assert said[-1].startswith("finished after ")
    out = f"{peaks['rows_out'] + hourly['rows_out']:,}"
    assert said[-1].endswith(f": {ROWS:,} rows in, {out} out, 0 set aside")
    assert f" hourly to csv files in {folder / 'out'}" in said
    # Started over, it wrote all results again, and those of the first run are gone.
    assert set(written(folder / "out").values()) == {1}


def test_interrupted_and_gone_on_is_as_if_undisturbed(tmp_path: Path) -> None:
    undisturbed = deployment(tmp_path / "undisturbed", A_DAY_IN_30_S).parent
    interrupted = deployment(tmp_path / "interrupted", A_DAY_IN_30_S).parent
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
    rounds = interrupted / ".penstock" / "tiny" / "bundles"
    until(
        lambda: running.poll() is not None or len(list(rounds.glob("*/log/*.round"))) > 2,
        PATIENCE_S,
        "first rounds",
    )
    os.killpg(running.pid, signal.SIGINT)
    _, said = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 0, said
    assert "\nstopped cleanly after " in said
    assert said.endswith("start again with the same command to go on where it stopped\n")
    assert "Traceback" not in said
    until(lambda: not _group_lives(running.pid), PATIENCE_S, "all processes have ended")

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


def test_an_input_of_which_nothing_can_be_read_is_not_finished(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("ts,n\n2026-01-01 00:00:00,x\n,y\n")
    (tmp_path / "tiny.yaml").write_text(
        """\
streams:
  numbers:
    source: {directory: in, format: csv, finished: true}
    schema: ts timestamp, n int
queries:
  all: SELECT ts, n FROM numbers
"""
    )
    for _ in range(2):
        done = penstock("run", str(tmp_path / "tiny.yaml"), folder=tmp_path, timeout_s=PATIENCE_S)
        assert done.returncode == 1, done.stderr
        assert (
            "nothing could be read of numbers: numbers: 2 malformed (such as n: 'x' is no int)"
            in (done.stderr)
        )


SEVERAL = """\
streams:
  readings:
    source: {generate: meters, homes: 20, days: 1, speedup: 600, disorder: 2min}
    lateness: 2min
nodes: {a: {cores: 1, memory: 512m}, b: {cores: 1, memory: 512m}}
queries:
  hourly:
    sql: |
      SELECT district, window.end AS at, max(kwh) AS kwh
      FROM readings GROUP BY district, window(ts, '1 hour')
    to: {files: hourly, format: csv}
"""
ADDED = """\
  six:
    sql: |
      SELECT district, window.end AS until, count(*) AS n, max(kwh) AS kwh
      FROM hourly GROUP BY district, window(at, '6 hours')
    to: {files: six, format: csv}
  all: SELECT home, ts, kwh FROM readings
"""


def test_queries_added_on_several_nodes_are_as_if_they_had_been_there(tmp_path: Path) -> None:
    command = ("run", "tiny.yaml", "--speed", "max")
    for name, text in (("grown", SEVERAL), ("whole", SEVERAL + ADDED)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tiny.yaml").write_text(text)
        first = penstock(*command, folder=tmp_path / name, timeout_s=PATIENCE_S)
        assert first.returncode == 0, first.stderr
    whole, folder = first, tmp_path / "grown"
    assert len(whole.stdout.splitlines()) == 20 * 48

    (folder / "tiny.yaml").write_text(SEVERAL + ADDED)
    grown = penstock(*command, folder=folder, timeout_s=PATIENCE_S)
    assert grown.returncode == 0, grown.stderr
    assert "added since: six, all; read again from the start: readings\n" in grown.stderr
    assert Counter(grown.stdout.splitlines()) == Counter(whole.stdout.splitlines())
    for name in ("hourly", "six"):
        assert written(folder / name) == written(tmp_path / "whole" / name) != Counter()

    # What had finished before is no part of this run.
    out = written(folder / "six").total() + 20 * 48
    assert grown.stderr.splitlines()[-1].endswith(f": 960 rows in, {out:,} out, 0 set aside")

    again = penstock(*command, folder=folder)
    assert (again.returncode, again.stdout) == (0, "")
    assert again.stderr.startswith("tiny has already finished")
