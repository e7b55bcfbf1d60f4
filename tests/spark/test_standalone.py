"""The processes of a standalone cluster: which are ours, and what they have to know."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from penstock.spark.standalone import MASTER, StandaloneCluster

pytestmark = pytest.mark.core


@pytest.fixture
def cluster(tmp_path: Path) -> StandaloneCluster:
    made = StandaloneCluster(tmp_path / "cluster", tmp_path / "spark")
    made.folder.mkdir()
    return made


@pytest.fixture
def process() -> Iterator[psutil.Process]:
    """Some process that waits."""
    command = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as started:
        yield psutil.Process(started.pid)
        started.kill()


def remembered(cluster: StandaloneCluster, **known: tuple[int, float]) -> None:
    (cluster.folder / "processes.json").write_text(json.dumps(known))


def test_a_process_at_work_is_found_again(
    cluster: StandaloneCluster, process: psutil.Process
) -> None:
    remembered(cluster, a=(process.pid, process.create_time()))
    assert cluster.running() == {"a": process}


def test_another_process_with_its_number_is_not_it(
    cluster: StandaloneCluster, process: psutil.Process
) -> None:
    remembered(cluster, a=(process.pid, process.create_time() - 100))
    assert cluster.running() == {}
    cluster.stop()
    assert process.is_running()


def test_stopping_ends_ours(cluster: StandaloneCluster, process: psutil.Process) -> None:
    remembered(cluster, a=(process.pid, process.create_time()))
    cluster.stop()
    assert not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    assert cluster.running() == {}


def test_nothing_was_started_yet(cluster: StandaloneCluster) -> None:
    assert cluster.running() == {}
    cluster.stop()


@pytest.mark.parametrize("written", ["", "spark.executor.extraClassPath /opt/jars/*"])
def test_a_secret_is_added_to_what_people_have_written(
    cluster: StandaloneCluster, written: str
) -> None:
    settings = cluster.settings / "spark-defaults.conf"
    if written:
        cluster.settings.mkdir()
        settings.write_text(written)
    cluster._prepare()
    found = settings.read_text()
    assert found.startswith(written)
    secret = dict(line.split(" ") for line in found.splitlines() if line)
    assert secret["spark.authenticate"] == "true"
    assert len(secret["spark.authenticate.secret"]) >= 32
    assert settings.stat().st_mode & 0o077 == 0
    cluster._prepare()
    assert settings.read_text() == found, "the secret stays"


def test_no_node_can_be_called_like_the_master() -> None:
    from penstock.model.schema import NAME_PATTERN

    assert not NAME_PATTERN.fullmatch(MASTER)
