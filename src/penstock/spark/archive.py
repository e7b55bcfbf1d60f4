"""A class archive that lets a Spark session start in about half the time.

A fresh Java process spends most of its start-up reading and checking some 15,000 classes of
Spark's. Java can keep them ready to use in an archive (class data sharing): made once by
:func:`create_archive`, which runs a short Spark job and takes under a minute, and then named in
every session's :func:`archive_options`.

An ordinary run never makes an archive and never depends on one: without it there are no options,
and one that does not fit is ignored. An archive fits one Java and one set of jars, so its name
is made from both; a change of either means another name, not a wrong archive.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import PenstockError, RunError
from penstock.spark.java import Java, cache_directory, find_java
from penstock.spark.jvm.internals import STREAMING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BASE = "java.jsa"
"""Java's own classes; some runtimes come without this part."""
TOP = "spark.jsa"
"""Spark's classes, on top of those; it knows where the part below is."""
SIZES = "sizes"
"""The sizes of both, written last: Java 17 crashes on an archive that was cut short."""

UNUSED_AFTER_S = 30 * 24 * 3600


def archive_options(java: Java, spark_home: Path, cache: Path) -> tuple[str, ...]:
    """The options that let Java use the archive in ``cache``; none if there is no archive.

    They belong in front of other options in ``spark.driver.extraJavaOptions``, joined by
    :func:`shlex.join`.
    """
    folder = archive_folder(java, spark_home, cache)
    if not _is_whole(folder):
        return ()
    _mark_used(folder)
    return _use(java, folder / TOP)


def archive_folder(java: Java, spark_home: Path, cache: Path) -> Path:
    """Where the archive for this Java and these jars is, or would be."""
    release = java.home / "release"
    parts = [str(java.home.resolve()), release.read_text() if release.is_file() else ""]
    for jar in sorted(os.scandir(spark_home / "jars"), key=lambda entry: entry.path):
        parts.append(f"{jar.path} {jar.stat().st_size} {jar.stat().st_mtime_ns}")
    key = sha256("\n".join(parts).encode()).hexdigest()[:12]
    return cache / f"classes-{java.version}-{key}"


def create_archive(java: Java, spark_home: Path, cache: Path, *, timeout_s: float = 300) -> Path:
    """The archive's folder in ``cache``, made now unless it is there.

    It appears whole or not at all, also when several processes make it at once.
    Raises :class:`RunError` if Java does not make one.
    """
    folder = archive_folder(java, spark_home, cache)
    if _is_whole(folder):
        return folder
    _forget_unused(cache)
    folder.mkdir(parents=True, exist_ok=True)
    # On the same disk, so that a finished part takes its place in one step.
    with tempfile.TemporaryDirectory(dir=folder, prefix=".making-") as making:
        _make_base(java, folder, Path(making), timeout_s)
        _make_top(java, spark_home, folder, Path(making), timeout_s)
        _declare_whole(folder, Path(making))
    return folder


def spark_home() -> Path:
    """Where the installed PySpark keeps Spark."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise RunError("PySpark is not installed", hint="pip install penstock")
    return Path(spec.origin).parent


def _make_base(java: Java, folder: Path, making: Path, timeout_s: float) -> None:
    if (folder / BASE).is_file():
        return
    dump = [str(java.command), "-Xshare:dump", f"-XX:SharedArchiveFile={making / BASE}"]
    _run([*dump, *_quiet(java)], making / BASE, timeout_s, dict(os.environ))
    # The first one stays for ever: the part on top fits only the very file it was made on.
    with suppress(FileExistsError):
        os.link(making / BASE, folder / BASE)


def _make_top(java: Java, spark_home: Path, folder: Path, making: Path, timeout_s: float) -> None:
    options = (
        f"-XX:SharedArchiveFile={folder / BASE}",
        f"-XX:ArchiveClassesAtExit={making / TOP}",
        "-XX:TieredStopAtLevel=1",  # quicker for a run this short
        *_quiet(java),
    )
    code = "import sys; from penstock.spark.archive import train; train(*sys.argv[1:])"
    env = {**os.environ, "JAVA_HOME": str(java.home), "SPARK_HOME": str(spark_home)}
    command = [sys.executable, "-c", code, shlex.join(options), str(making)]
    _run(command, making / TOP, timeout_s, env)
    _run([str(java.command), *_use(java, making / TOP), "-version"], making / TOP, timeout_s, env)
    (making / TOP).rename(folder / TOP)


def _is_whole(folder: Path) -> bool:
    try:
        return (folder / SIZES).read_text() == _sizes(folder)
    except OSError:
        return False


def _declare_whole(folder: Path, making: Path) -> None:
    for name in (BASE, TOP):
        with (folder / name).open("rb") as file:
            os.fsync(file.fileno())
    (making / SIZES).write_text(_sizes(folder))
    (making / SIZES).rename(folder / SIZES)


def _sizes(folder: Path) -> str:
    return "".join(f"{name} {(folder / name).stat().st_size}\n" for name in (BASE, TOP))


def _use(java: Java, top: Path) -> tuple[str, ...]:
    return (f"-XX:SharedArchiveFile={top}", "-Xshare:auto", *_quiet(java))


def _quiet(java: Java) -> list[str]:
    """What Java has to say about archives goes to standard output and helps nobody."""
    tags = ("cds", "aot") if java.version >= 24 else ("cds",)
    return [f"-Xlog:{tag}*=off" for tag in tags]


def _run(command: list[str], result: Path, timeout_s: float, env: dict[str, str]) -> None:
    """Run a command that has to leave ``result`` behind."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=timeout_s, env=env
        )
    except subprocess.TimeoutExpired:
        raise RunError(f"Java made no class archive in {timeout_s:g} s") from None
    if done.returncode or not result.is_file():
        raise RunError(f"Java made no class archive: {_reason(done.stderr or done.stdout)}")


def _reason(said: str) -> str:
    """The one line that matters in what a failed process said.

    >>> _reason("WARN slow\\nValueError: no luck\\n  at line 3")
    'ValueError: no luck'
    """
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b.*: |Error", line)]
    return (errors or lines or ["it said nothing"])[-1]


def _mark_used(folder: Path) -> None:
    with suppress(OSError):  # a cache that cannot be written is somebody else's to look after
        os.utime(folder)


def _forget_unused(cache: Path) -> None:
    """Remove the archives, 170 MB each, that no session has used for a month."""
    for folder in cache.glob("classes-*"):
        if folder.stat().st_mtime < time.time() - UNUSED_AFTER_S:
            shutil.rmtree(folder, ignore_errors=True)


def train(options: str, scratch: str) -> None:
    """A short Spark job that uses the classes ordinary queries use, then a proper goodbye.

    Java writes the archive when it leaves, so this waits until it has left.
    """
    from pyspark.sql import SparkSession

    from penstock.spark.jvm.gateway import stop_and_leave

    os.environ.update(PYSPARK_PYTHON=sys.executable, PYSPARK_DRIVER_PYTHON=sys.executable)
    builder = SparkSession.builder.master("local[2]").appName("penstock class archive")
    for key, value in _training_settings(options).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    _run_training_queries(spark, Path(scratch))
    stop_and_leave(spark)


def _training_settings(options: str) -> dict[str, str]:
    return {
        "spark.driver.extraJavaOptions": options,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.streaming.checkpointFileManagerClass": (
            f"{STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager"
        ),
        "spark.ui.enabled": "false",
    }


def _run_training_queries(spark: SparkSession, scratch: Path) -> None:
    ticks = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).load()
    ticks = ticks.withWatermark("timestamp", "1 second")
    _run_to_end(ticks.where("value % 2 = 0").selectExpr("timestamp", "value + 1"), scratch / "row")
    counts = ticks.groupBy("timestamp", "value").count()
    for provider in ("HDFSBackedStateStoreProvider", "RocksDBStateStoreProvider"):
        name = f"{STREAMING}.state.{provider}"
        spark.conf.set("spark.sql.streaming.stateStore.providerClass", name)
        _run_to_end(counts, scratch / provider)
    spark.range(10).write.parquet(str(scratch / "table"))
    spark.read.parquet(str(scratch / "table")).createOrReplaceTempView("numbers")
    spark.createDataFrame(spark.sql("SELECT id FROM numbers").toPandas()).count()


def _run_to_end(query: DataFrame, checkpoint: Path) -> None:
    writer = query.writeStream.foreachBatch(lambda batch, _: batch.toPandas())
    writer = writer.option("checkpointLocation", str(checkpoint)).outputMode("update")
    writer.trigger(availableNow=True).start().awaitTermination()


def main() -> int:
    """Make the archive for this machine, for the Makefile."""
    started = time.monotonic()
    try:
        folder = create_archive(find_java(), spark_home(), cache_directory())
    except (PenstockError, OSError) as error:
        print(f"No class archive, so Spark starts a little slower: {error}", file=sys.stderr)
        return 1
    print(f"Class archive ready in {folder} ({time.monotonic() - started:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
