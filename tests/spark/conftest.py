"""One Spark session for all tests that need one, and a fragment to disturb in it."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from one_fragment import DEPLOYMENT, Place, await_that, entries_of, with_small_batches
from py4j.java_gateway import JavaClass
from pyspark.sql import SparkSession

from penstock.channels.durable import write_number
from penstock.lang.deployment import parse_deployment
from penstock.model.network import Network
from penstock.spark.session import SessionOptions, start_session


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    log: Path = tmp_path_factory.mktemp("spark") / "spark.log"
    running = start_session("tests", SessionOptions(), log)
    yield running
    running.stop()


@pytest.fixture(scope="session")
def network() -> Network:
    return parse_deployment(DEPLOYMENT, "sums.yaml", Path()).network


@pytest.fixture(scope="session")
def undisturbed(
    session: SparkSession, network: Network, tmp_path_factory: pytest.TempPathFactory
) -> Counter[tuple[object, ...]]:
    place = Place(tmp_path_factory.mktemp("undisturbed"), network)
    with_small_batches(place, session)
    node = place.node(session)
    place.start(node, 1)
    await_that(place.is_finished, node)
    node.stop()
    return place.rows()


@pytest.fixture(scope="session")
def halfway(
    session: SparkSession, network: Network, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The state of a fragment that was stopped with half of its input read."""
    folder = tmp_path_factory.mktemp("halfway")
    place = Place(folder, network)
    with_small_batches(place, session)
    node = place.node(session)
    place.start(node, 1)
    await_that(lambda: len(entries_of(place, "commits")) >= 5, node)
    node.release("sums", patience_s=30)
    assert not place.is_finished()
    # As if it had been asked to free what nobody needs, and everybody needed everything.
    write_number(place.output.folder / "floor", 0)
    return folder


@pytest.fixture
def place(halfway: Path, network: Network, tmp_path: Path) -> Place:
    """A copy of it, to go on from."""
    shutil.copytree(halfway, tmp_path / "state")
    return Place(tmp_path / "state", network)


@pytest.fixture
def java(session: SparkSession) -> Callable[[str], Any]:
    """A class of the session's Java, by its whole name."""
    gateway: Any = session.sparkContext._gateway
    return lambda name: JavaClass(name, gateway._gateway_client)
