"""Finding out about this machine; nothing is judged here."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from penstock.app.ports import LOOPBACK, is_free
from penstock.cli.checks import Facts
from penstock.errors import PenstockError
from penstock.spark.java import Java, cache_directory, find_java

PORTS = (7400, 4040)
OPTIONAL = ("psycopg", "confluent-kafka", "duckdb")


def machine_facts(folder: Path) -> Facts:
    """What this machine has, seen from ``folder``."""
    import psutil

    memory = psutil.virtual_memory()
    java, java_problem = _java()
    return Facts(
        python=sys.version_info[:3],
        java=str(java or ""),
        java_problem=java_problem,
        spark=_version("pyspark"),
        memory_bytes=memory.total,
        free_memory_bytes=memory.available,
        cores=os.cpu_count() or 1,
        folder=str(folder),
        folder_problem=_write_problem(folder),
        free_disk_bytes=shutil.disk_usage(folder).free,
        temporary=_temporary(),
        temporary_problem=_write_problem(Path(_temporary())),
        loopback_problem=_loopback_problem(),
        ports={port: is_free(port) for port in PORTS},
        archive=_archive(java),
        packages={name: _version(name) for name in OPTIONAL},
        missing_internals=_missing_internals(),
    )


def _java() -> tuple[Java | None, str]:
    try:
        return find_java(), ""
    except PenstockError as error:
        return None, error.what


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _write_problem(folder: Path) -> str:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return (error.strerror or str(error)).lower()


def _temporary() -> str:
    try:
        return tempfile.gettempdir()
    except OSError:
        return "/tmp"


def _loopback_problem() -> str:
    try:
        with socket.create_server((LOOPBACK, 0)) as server:
            socket.create_connection(server.getsockname(), timeout=2).close()
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return ""


def _missing_internals() -> tuple[str, ...]:
    from penstock.spark.archive import spark_home
    from penstock.spark.jvm.internals import missing_internals

    if not _version("pyspark"):
        return ()
    home = Path(os.environ.get("SPARK_HOME") or spark_home())
    return tuple(missing_internals(home / "jars"))


def _archive(java: Java | None) -> str:
    from penstock.spark.archive import TOP, archive_folder, spark_home

    if java is None:
        return ""
    try:
        folder = archive_folder(java, spark_home(), cache_directory())
    except (PenstockError, OSError):
        return ""
    return str(folder) if (folder / TOP).is_file() else ""
