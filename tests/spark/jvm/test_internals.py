"""What is used of Spark's inside: listed in one table, reached through one room, looked for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

import penstock
from penstock.errors import UnreachableError
from penstock.spark.archive import spark_home
from penstock.spark.jvm import channel_table
from penstock.spark.jvm.internals import (
    INTERNALS,
    check_version,
    is_known,
    missing_internals,
)
from penstock.spark.session import _check_version

pytestmark = pytest.mark.core

SOURCES = Path(penstock.__file__).parent
INSIDE = re.compile(
    r"\b_jvm\b|_jsparkSession|\._gateway|\._jsc\b|^(from|import) py4j", re.MULTILINE
)
WRITTEN = re.compile(r"org\.apache\.(?:spark|hadoop|logging)\.[\w.]+[A-Z]\w+")
PEERS = SOURCES / "bench" / "peers"


class ToySession:
    def __init__(self, version: str) -> None:
        self.version = version
        self.is_stopped = False

    def stop(self) -> None:
        self.is_stopped = True


def test_all_of_it_is_in_the_spark_that_is_installed() -> None:
    assert missing_internals(spark_home() / "jars") == []


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    names = sorted(name for names in INTERNALS.values() for name in names)
    with ZipFile(tmp_path / "spark.jar", "w") as archive:
        for name in names[2:]:
            archive.writestr(f"{name.replace('.', '/')}.class", b"")
    (tmp_path / "broken.jar").write_bytes(b"no archive")
    assert missing_internals(tmp_path) == names[:2]
    assert missing_internals(tmp_path / "nowhere") == names


def test_nothing_else_reaches_inside() -> None:
    outside = [
        path
        for path in SOURCES.rglob("*.py")
        if path.parent.name != "jvm" and not path.is_relative_to(PEERS)
    ]
    assert [path for path in outside if INSIDE.search(path.read_text())] == []


def test_what_is_written_as_a_name_of_a_class_is_listed() -> None:
    found = {
        name
        for path in SOURCES.rglob("*.py")
        if not path.is_relative_to(PEERS)
        for name in WRITTEN.findall(path.read_text())
    }
    unknown = {name for name in found if not is_known(name)}
    assert {name for name in unknown if not name.startswith("org.apache.hadoop.fs.")} == set()


def test_interfaces_that_python_stands_behind_are_listed() -> None:
    kinds: list[Any] = [channel_table._Table, channel_table._ScanBuilder]
    kinds += [channel_table._Scan, channel_table._Stream]
    names = [name for kind in kinds for name in kind.Java.implements]
    assert len(names) == 5
    assert all(map(is_known, names))


def test_a_spark_that_is_not_known_is_refused() -> None:
    check_version("4.3.7")
    session: Any = ToySession("4.4.0")
    with pytest.raises(UnreachableError) as refused:
        _check_version(session)
    assert session.is_stopped
    assert str(refused.value) == (
        "Spark 4.4.0 runs here; Penstock uses internals of Spark as they are in 4.3. "
        'Install that: pip install "pyspark==4.3.*". With SPARK_HOME set, its version counts.'
    )
