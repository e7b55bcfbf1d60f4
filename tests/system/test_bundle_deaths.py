"""A bundle's process killed at every step of a round: the next one goes on, and no row is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.channels.channel import Channel
from penstock.channels.files import write_files
from penstock.channels.writer import Writer

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

TESTS = Path(__file__).parents[1]
DEATHS = [
    ("claimed", 2),
    ("computed", 1),
    ("composed", 1),
    ("committed", 1),
    ("taken", 1),
    ("composed", 3),
    ("committed", 4),
    ("delivered", 3),
    ("snapshotted", 2),
    ("taken", 2),
    ("computed", 5),
]


def _feed(folder: Path) -> None:
    channel, random = Channel.open(folder / "channels" / "s"), Random(3)
    writer, now_us = Writer(channel, 1), 1_700_000_000_000_000
    channel.register("everything")
    for number in range(40):
        times = sorted(now_us + random.randrange(2_000_000) for _ in range(50))
        now_us += 2_000_000
        rows = pa.table(
            {
                "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
                "k": [random.choice("abc") for _ in times],
                "x": [random.random() * 10 ** random.randrange(-9, 9) for _ in times],
            }
        )
        files = write_files(rows, writer, number)
        writer.commit(number, files, now_us, ended=number == 39)


def _run(folder: Path, epoch: int, *death: object) -> subprocess.CompletedProcess[str]:
    path = f"{TESTS}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    return subprocess.run(
        [sys.executable, "-m", "system.bundled", str(folder), str(epoch), *map(str, death)],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": path},
    )


def _results(folder: Path) -> dict[str, Counter[tuple[object, ...]]]:
    found: dict[str, Counter[tuple[object, ...]]] = {"sums": Counter(), "slides": Counter()}
    for name, rows in found.items():
        given = pq.read_table(folder / "out" / name)
        rows.update((*row.values(),) for row in given.drop_columns("batch").to_pylist())
    return found


def test_a_bundle_killed_at_every_step_gives_every_row_once(tmp_path: Path) -> None:
    undisturbed, disturbed = tmp_path / "undisturbed", tmp_path / "disturbed"
    for folder in (undisturbed, disturbed):
        _feed(folder)
    assert "done" in _run(undisturbed, 1).stdout
    for epoch, (step, nth) in enumerate(DEATHS, start=1):
        ended = _run(disturbed, epoch, step, nth)
        assert f"dies at: {step}" in ended.stdout, "the fault must have struck"
        assert ended.returncode == -signal.SIGKILL
    assert "done" in _run(disturbed, len(DEATHS) + 1).stdout
    wanted = _results(undisturbed)
    assert all(len(rows) > 15 for rows in wanted.values())
    assert _results(disturbed) == wanted
