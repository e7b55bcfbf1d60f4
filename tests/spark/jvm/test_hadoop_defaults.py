"""Hadoop's configuration holds what was set, and nothing brings the rest back."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def _of_a_batch(session: SparkSession) -> Any:
    return session._jsparkSession.sessionState().newHadoopConf()  # type: ignore[operator]


def test_a_batch_copies_only_what_was_set(session: SparkSession) -> None:
    settings = _of_a_batch(session)
    assert settings.size() < 100
    assert settings.get("fs.file.impl") == "org.apache.hadoop.fs.RawLocalFileSystem"
    assert settings.get("io.file.buffer.size") == "65536"


def test_classes_with_defaults_of_their_own_do_not_bring_any(
    session: SparkSession, java: Callable[[str], Any]
) -> None:
    java("org.apache.hadoop.mapred.JobConf")(False)
    java("org.apache.hadoop.hdfs.HdfsConfiguration").init()
    assert java("org.apache.hadoop.conf.Configuration")().size() > 1000
    assert _of_a_batch(session).size() < 100


_ASKING = """
from penstock.spark.session import SessionOptions, start_session
session = start_session("site", SessionOptions())
print("found", session._jsparkSession.sessionState().newHadoopConf().get("site.sets"))
session.stop()
"""


def test_what_a_site_sets_stays(tmp_path: Path) -> None:
    (tmp_path / "core-site.xml").write_text(
        "<configuration><property><name>site.sets</name><value>this</value></property>"
        "</configuration>"
    )
    done = subprocess.run(
        [sys.executable, "-c", _ASKING],
        env={**os.environ, "HADOOP_CONF_DIR": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "found this" in done.stdout
