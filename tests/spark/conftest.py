"""One Spark session for all tests that need one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.spark.session import SessionOptions, start_session


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    log: Path = tmp_path_factory.mktemp("spark") / "spark.log"
    running = start_session("tests", SessionOptions(), log)
    yield running
    running.stop()
