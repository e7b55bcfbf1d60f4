"""Stopped or killed on the way and started again: every result is there, once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.model.network import Network
from penstock.spark.engine import Engine
from penstock.spark.node import NodeOptions
from penstock.spark.state import StateFolder
from waiting import until

from answers import restart
from answers.oracle import Oracle, check_same, run, small_pieces


def is_on_its_way(folder: Path) -> bool:
    """Whether every sink has got something."""
    return restart.may_be_delivered(folder) and all(map(len, restart.delivered(folder).values()))


def check_is_half_done(folder: Path, oracle: Oracle) -> None:
    given = restart.delivered(folder)
    for name, sql in restart.ANSWERS.items():
        assert 0 < len(given[name]) < len(oracle.rows(sql)), name


def check_is_done(folder: Path, oracle: Oracle) -> None:
    given = restart.delivered(folder)
    for name, sql in restart.ANSWERS.items():
        check_same(given[name], oracle.rows(sql), name)


def test_stopped_and_started_again(session: SparkSession, tmp_path: Path) -> None:
    network, oracle = restart.prepare(tmp_path)
    options = NodeOptions(trigger_ms=100, max_rows_per_batch=restart.ROWS_PER_BATCH)
    with small_pieces(restart.ROWS_PER_BATCH):
        engine = Engine(session, network, StateFolder(tmp_path / "state"), options)
        engine.start()
        until(lambda: is_on_its_way(tmp_path), 120, "rows come out", engine.check)
        engine.stop()
    check_is_half_done(tmp_path, oracle)
    go_on(session, network, tmp_path, oracle)
    check_is_done(tmp_path, oracle)


def go_on(session: SparkSession, network: Network, folder: Path, oracle: Oracle) -> None:
    # However the rest is cut into batches, the rows are the same.
    outcome = run(session, network, folder / "state", 4 * restart.ROWS_PER_BATCH)
    # The late rows are counted over both lives, none twice.
    assert outcome.late("readings") == oracle.late["readings"] > 0


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="no process groups on this system")
def test_killed_and_started_again(session: SparkSession, tmp_path: Path) -> None:
    network, oracle = restart.prepare(tmp_path)
    command = [sys.executable, restart.__file__, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(command, env=environment, start_new_session=True)
    try:
        check = partial(still_running, process, tmp_path)
        until(lambda: is_on_its_way(tmp_path), 200, "rows come out", check)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert process.returncode == -signal.SIGKILL
    check_is_half_done(tmp_path, oracle)
    go_on(session, network, tmp_path, oracle)
    check_is_done(tmp_path, oracle)


def still_running(process: subprocess.Popen[bytes], folder: Path) -> None:
    log = folder / "spark.log"
    tail = log.read_text(errors="replace")[-2_000:] if log.exists() else "no log"
    assert process.poll() is None, f"ended by itself: {tail}"
