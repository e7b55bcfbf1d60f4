"""Local files are made without help from other processes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from waiting import until

pytestmark = pytest.mark.spark


def _commands(java: Callable[[str], Any], folder: Path, work: Callable[[], None]) -> list[str]:
    """Of the processes that Java's own recorder saw it start."""
    file = java("java.io.File")(str(folder / "recording.jfr")).toPath()
    recording = java("jdk.jfr.Recording")()
    recording.enable("jdk.ProcessStart")
    recording.start()
    work()
    recording.dump(file)
    recording.close()
    events = java("jdk.jfr.consumer.RecordingFile").readAllEvents(file)
    return [event.getString("command") for event in events]


def test_a_query_starts_no_process_for_its_files(
    session: SparkSession, java: Callable[[str], Any], tmp_path: Path
) -> None:
    ticks = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).load()
    counts = ticks.groupBy("value").count()
    checkpoint = tmp_path / "checkpoint"

    def three_batches() -> None:
        writer = counts.writeStream.option("checkpointLocation", str(checkpoint))
        query = writer.format("noop").outputMode("update").start()
        try:
            until(lambda: len(list((checkpoint / "commits").glob("[0-9]*"))) >= 3)
        finally:
            query.stop()

    commands = _commands(java, tmp_path, three_batches)
    assert not [command for command in commands if str(checkpoint) in command]
    assert list(checkpoint.glob("state/0/0/*.delta"))


def test_permissions_are_as_asked(
    session: SparkSession, java: Callable[[str], Any], tmp_path: Path
) -> None:
    settings = session.sparkContext._jsc.hadoopConfiguration()
    path = java("org.apache.hadoop.fs.Path")
    system = path(f"file:{tmp_path}").getFileSystem(settings)
    system.create(path(str(tmp_path / "made")), True).close()
    assert (tmp_path / "made").stat().st_mode & 0o7777 == 0o644
    asked = java("org.apache.hadoop.fs.permission.FsPermission")("1750")
    system.setPermission(path(str(tmp_path)), asked)
    assert tmp_path.stat().st_mode & 0o7777 == 0o1750
