"""Many independent calls of one function, spread over a Spark cluster.

:func:`cluster` opens a session on a master; what it gives calls a function for every point in a
task of its own: ``cluster(function, points, say)``. Points travel as JSON text and results come
back as JSON text in Arrow batches, exact to the last bit of every number; only the function itself
is shipped the way Spark ships functions. It must be importable where the executors run, in the same
version, so Penstock has to be installed there.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.errors import PenstockError, RunError, UnreachableError
from penstock.spark.archive import archive_options, spark_home
from penstock.spark.exact_json import decoded, encoded
from penstock.spark.java import cache_directory, find_java
from penstock.spark.masters import address_towards, checked, is_local
from penstock.spark.session import QUIET

Say = Callable[[str], None]

_P = TypeVar("_P")
_R = TypeVar("_R")

_ONE_THREAD = {
    # As in worker processes of this machine: the arithmetic must not depend on where it is done.
    f"spark.executorEnv.{name}": "1"
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
}
_EXECUTOR_S = 60.0
_LOOK_EVERY_S = 0.1
_OURS = re.compile(r"penstock\.errors\.RunError: (.+)")
_PYTHON = re.compile(r"^(\w*(?:Error|Exception)): (.+)$", re.MULTILINE)


@contextmanager
def cluster(master: str, log: Path) -> Iterator[Cluster]:
    """A session on ``master``, stopped at the end; ``log`` is where its messages are said to be."""
    checked(master)
    address = address_towards(master)
    try:
        session = _session(master, address)
    except PenstockError:
        raise
    except Exception as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise UnreachableError(
            f"no Spark session on {master}: {reason}", hint=f"Details are in {log}."
        ) from error
    application = session.sparkContext.applicationId
    try:
        yield Cluster(session, master, log)
    finally:
        session.stop()
        _clear(application)


def _session(master: str, address: str) -> SparkSession:
    java = find_java(os.environ)
    os.environ["JAVA_HOME"] = str(java.home)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if is_local(master) or "PYSPARK_PYTHON" not in os.environ:
        os.environ["PYSPARK_PYTHON"] = sys.executable
    archive = archive_options(java, spark_home(), cache_directory(os.environ))
    settings = {
        **QUIET,
        **_ONE_THREAD,
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.driver.bindAddress": address,
        "spark.driver.host": address,
        "spark.driver.extraJavaOptions": shlex.join(archive),
        "spark.ui.enabled": "false",
    }
    builder = SparkSession.builder.appName("penstock study").master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("WARN")
    return session


def _clear(application: str) -> None:
    """Removes what the executors of a local cluster leave behind beside Spark itself."""
    work = spark_home() / "work"
    shutil.rmtree(work / application, ignore_errors=True)
    with suppress(OSError):
        work.rmdir()


@dataclass(frozen=True)
class Cluster:
    """Calls functions on the executors of a session; results are in the order of the points."""

    session: SparkSession
    master: str
    log: Path
    patience_s: float = _EXECUTOR_S

    def __call__(self, function: Callable[[_P], _R], points: Sequence[_P], say: Say) -> list[_R]:
        """``[function(point) for point in points]``; a failure of one ends all."""
        if not points:
            return []
        numbers = self.session.range(0, len(points), 1, len(points))
        task = _task(function, [encoded(point) for point in points])
        frame = numbers.mapInArrow(task, "number bigint, result string")
        group = f"penstock-{id(frame)}"
        context = self.session.sparkContext

        def collected() -> pa.Table:
            context.setJobGroup(group, "penstock study", interruptOnCancel=True)
            return frame.toArrow()

        with ThreadPoolExecutor(1, "points") as pool:
            try:
                table = self._followed(pool.submit(collected), group, len(points), say)
            except BaseException:
                context.cancelJobGroup(group)
                raise
        results = dict(zip(*(table[name].to_pylist() for name in table.schema.names), strict=True))
        return [decoded(results[number]) for number in range(len(points))]

    def _followed(self, job: Future[pa.Table], group: str, count: int, say: Say) -> pa.Table:
        """What the job gives; tells meanwhile how many points are done."""
        told, began_s = 0, time.monotonic()
        say(f"waiting for executors of {self.master}")
        while not job.done():
            wait([job], _LOOK_EVERY_S)
            done, active = self._progress(group)
            if done > told:
                told = done
                say(f"point {done} of {count}")
            if done or active:
                began_s = time.monotonic()
            elif time.monotonic() - began_s > self.patience_s:
                raise self._no_executor()
        try:
            return job.result()
        except Exception as error:
            raise explained(error, self.master, self.log) from error
        finally:
            if told < count and job.exception() is None:
                say(f"point {count} of {count}")

    def _progress(self, group: str) -> tuple[int, int]:
        """How many tasks are done, and how many are being worked on."""
        tracker = self.session.sparkContext.statusTracker()
        done = active = 0
        for job in tracker.getJobIdsForGroup(group):
            information = tracker.getJobInfo(job)
            for number in information.stageIds if information else ():
                stage = tracker.getStageInfo(number)
                if stage is not None:
                    done += stage.numCompletedTasks
                    active += stage.numActiveTasks
        return done, active

    def _no_executor(self) -> UnreachableError:
        return UnreachableError(
            f"{self.master} gave no executor within {self.patience_s:g} s",
            hint="Are its workers running, and have they cores and memory left?",
        )


def _task(
    function: Callable[[Any], Any], points: Sequence[str]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What one task does: the points of its numbers, one after the other."""
    wanted = installed()

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        same_version(wanted)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                result = result_of(function, points[number], f"{number + 1} of {len(points)}")
                yield pa.RecordBatch.from_pydict({"number": [number], "result": [result]})

    return work


def installed() -> str:
    """The version of Penstock that is installed here."""
    try:
        return version("penstock")
    except PackageNotFoundError:
        return "of an unknown version"


def same_version(wanted: str) -> None:
    """Raises unless the Penstock here is the one that asks: another might compute otherwise."""
    if installed() != wanted:
        raise RunError(
            f"{socket.gethostname()} has penstock {installed()}, not {wanted} as this machine has"
        )


def result_of(function: Callable[[Any], Any], point: str, which: str) -> str:
    """The encoded result of an encoded point; what goes wrong, in one line that names the point."""
    value = decoded(point)
    try:
        return encoded(function(value))
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise RunError(f"point {which}, {value!r}, failed: {reason}") from error


def explained(error: BaseException, master: str, log: Path) -> PenstockError:
    """What Spark says about a failed job, in words a person can use."""
    text = str(error)
    hint = f"Details are in {log}."
    if ours := _OURS.search(text):
        return RunError(ours[1].strip(), hint=hint)
    if "No module named 'penstock" in text:
        return UnreachableError(
            f"the executors of {master} cannot import penstock",
            hint=f"Install penstock {installed()} there; PYSPARK_PYTHON names their interpreter.",
        )
    python = _PYTHON.findall(text)
    reason = ": ".join(python[-1]) if python else (text.splitlines() or [type(error).__name__])[0]
    return RunError(f"the study failed on {master}: {reason}", hint=hint)
