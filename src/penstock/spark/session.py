"""One Spark session, set up for many small streaming queries on one machine."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from penstock.errors import PenstockError
from penstock.spark.archive import archive_options, spark_home
from penstock.spark.cluster_nodes import await_executor, cluster_settings
from penstock.spark.heap import first_heap_bytes, heap_bytes
from penstock.spark.java import Java, cache_directory, find_java
from penstock.spark.jvm import internals
from penstock.spark.jvm.hadoop_defaults import drop_hadoop_defaults
from penstock.spark.jvm.local_files import use_local_files
from penstock.spark.jvm.quiet import hush

_MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class SessionOptions:
    """What one node may use; ``ui_port`` shows Spark's own pages when set.

    With ``master`` the tasks run on that cluster, otherwise in the session's own process.
    """

    cores: int = 2
    memory_bytes: int = 1 << 30
    ui_port: int | None = None
    master: str | None = None


STREAMING = {
    # A rename in place of forked processes: see docs/design.md, "Micro-batch overhead".
    "spark.sql.streaming.checkpointFileManagerClass": (
        f"{internals.STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    # Pushing filters below the watermark operator would drop the heartbeats before they count;
    # our own front end has already put every filter as low as it can go.
    "spark.sql.optimizer.excludedRules": f"{internals.CATALYST}.optimizer.PushDownPredicates",
    "spark.sql.streaming.stopTimeout": "30s",
    "spark.sql.streaming.minBatchesToRetain": "10",
    # State is written whole, and let go of where its query has left, at these intervals: who takes
    # a fragment over reads less, and who gave it away has its memory back.
    "spark.sql.streaming.stateStore.maintenanceInterval": "10s",
    # The version that is worked on is enough; who has to go back reads the one before again.
    "spark.sql.streaming.maxBatchesToRetainInMemory": "1",
    "spark.sql.streaming.numRecentProgressUpdates": "20",
}

QUIET = {
    "spark.ui.showConsoleProgress": "false",
    # Spark describes every batch for its pages, which nobody looks at: in few words, then.
    "spark.sql.ui.explainMode": "simple",
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
    "spark.sql.ui.retainedExecutions": "5",
    "spark.sql.streaming.ui.retainedQueries": "5",
}

ROWS = {
    "spark.sql.session.timeZone": "UTC",
    # Otherwise a ${…} inside a query's string would be replaced, even by system properties.
    "spark.sql.variable.substitute": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Channel files are written by Arrow, which knows one calendar only.
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.compression.codec": "lz4_raw",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Rows to and from Python pass through files only this user may open, and quicker than by TCP.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
    "spark.hadoop.parquet.summary.metadata.level": "NONE",
}

LOOPBACK = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


def start_session(name: str, options: SessionOptions, log: Path | None = None) -> SparkSession:
    """A running session; what Spark and its Java print goes to ``log`` instead of the terminal."""
    java = find_java(os.environ)
    _prepare_environment(java)
    if options.master is None:
        place = LOOPBACK
    else:
        place = cluster_settings(
            options.master, name, options.cores, heap_bytes(options.memory_bytes)
        )
    builder = SparkSession.builder.appName(name).master(options.master or f"local[{options.cores}]")
    for key, value in (settings(options, java) | place).items():
        builder = builder.config(key, value)
    with _stderr_to(log):
        session = builder.getOrCreate()
    _check_version(session)
    if options.master is not None:
        await_executor(session, name)
    session.sparkContext.setLogLevel("WARN" if log else "ERROR")
    hush(session)
    use_local_files(session)
    drop_hadoop_defaults(session)
    return session


def _check_version(session: SparkSession) -> None:
    """Leaves nothing running where this Spark is none that we know."""
    try:
        internals.check_version(session.version)
    except PenstockError:
        session.stop()
        raise


def settings(options: SessionOptions, java: Java) -> dict[str, str]:
    """Everything that differs from stock Spark wherever tasks run, as configuration."""
    return {
        **STREAMING,
        **QUIET,
        **ROWS,
        "spark.sql.shuffle.partitions": str(options.cores),
        "spark.default.parallelism": str(options.cores),
        "spark.driver.memory": f"{heap_bytes(options.memory_bytes) // _MEBIBYTE}m",
        "spark.driver.extraJavaOptions": shlex.join(_java_options(java, options)),
        "spark.ui.enabled": "false" if options.ui_port is None else "true",
        "spark.ui.port": str(options.ui_port or 4040),
        "spark.port.maxRetries": "0" if options.ui_port is not None else "16",
        # Who has waited longest is next. Fair pools would be served by their names when all wait.
        "spark.scheduler.mode": "FIFO",
    }


def _java_options(java: Java, options: SessionOptions) -> tuple[str, ...]:
    archive = archive_options(java, spark_home(), cache_directory(os.environ))
    # A node is one of several on its machine: one collector thread that gives memory back. Every
    # batch makes state anew, which should be gone before it counts as old: the young get half.
    return (
        *archive,
        "-XX:+UseSerialGC",
        f"-Xms{first_heap_bytes(options.memory_bytes) // _MEBIBYTE}m",
        "-XX:NewRatio=1",
        "-XX:MinHeapFreeRatio=30",
        "-XX:MaxHeapFreeRatio=60",
        "-XX:ReservedCodeCacheSize=128m",
        "-Duser.timezone=UTC",
    )


def _prepare_environment(java: Java) -> None:
    os.environ["JAVA_HOME"] = str(java.home)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Every thread with a memory pool of its own costs a node of many threads 100 MB and more.
    os.environ.setdefault("MALLOC_ARENA_MAX", "2")


@contextmanager
def _stderr_to(log: Path | None) -> Iterator[None]:
    """Gives processes started inside ``log`` as their standard error: they inherit it for good."""
    if log is None:
        yield
        return
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    kept = os.dup(2)
    with log.open("ab") as target:
        os.dup2(target.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
