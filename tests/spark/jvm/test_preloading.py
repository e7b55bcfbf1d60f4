"""State that is read ahead of a turn is there when the turn comes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from one_fragment import Place, await_that
from py4j.java_gateway import JavaClass
from pyspark.sql import SparkSession

from penstock.spark.checkpoints import path_of
from penstock.spark.jvm import preloading

_STATE = "org.apache.spark.sql.execution.streaming.state"


class _Java:
    """What Spark's Java has in memory."""

    def __init__(self, session: SparkSession) -> None:
        self._gateway: Any = session.sparkContext._gateway

    def _class(self, name: str) -> Any:
        return JavaClass(name, self._gateway._gateway_client)

    def has_loaded(self, checkpoint: Path, run: str) -> bool:
        """Whether the run has the state of its first operator's first partition."""
        of = self._class(f"{_STATE}.StateStoreId")(
            f"file:{checkpoint.absolute()}/state", 0, 0, "default"
        )
        number = self._class("java.util.UUID").fromString(run)
        provider = self._class(f"{_STATE}.StateStoreProviderId")(of, number)
        store = getattr(self._class(f"{_STATE}.StateStore$"), "MODULE$")
        return bool(store.isLoaded(provider))

    def full_collections(self) -> int:
        """How often it has looked through all of its memory."""
        factory = self._class("java.lang.management.ManagementFactory")
        beans = {bean.getName(): bean for bean in factory.getGarbageCollectorMXBeans()}
        return int(beans["MarkSweepCompact"].getCollectionCount())


@pytest.mark.parametrize("much_bytes", [0, 1 << 40])
def test_it_is_in_memory_before_the_turn_comes(
    session: SparkSession,
    place: Place,
    undisturbed: Counter[tuple[object, ...]],
    monkeypatch: pytest.MonkeyPatch,
    much_bytes: int,
) -> None:
    monkeypatch.setattr(preloading, "_MUCH_BYTES", much_bytes)
    java, target = _Java(session), place.node(session)
    asked: list[int] = []
    collect_garbage = preloading._SparkQuery.collect_garbage

    def collect(spark: preloading._SparkQuery) -> None:
        before = java.full_collections()
        collect_garbage(spark)
        asked.append(java.full_collections() - before)

    monkeypatch.setattr(preloading._SparkQuery, "collect_garbage", collect)
    target.arm(place.network, place.fragment, 2)
    run = target._armed["sums"].run
    assert run is not None
    checkpoint = path_of(place.state.fragment("sums").path, 2)
    assert java.has_loaded(checkpoint, str(run.query.runId))
    # Java may collect by itself at any time; what counts is whether it was asked to.
    assert [more > 0 for more in asked] == ([True] if much_bytes == 0 else [])
    place.start(target, 2)
    await_that(place.is_finished, target)
    target.stop()
    assert place.rows() == undisturbed


def test_it_is_not_there_by_itself(
    session: SparkSession, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.spark.node.preload", lambda *_: None)
    target = place.node(session)
    target.arm(place.network, place.fragment, 2)
    run = target._armed["sums"].run
    assert run is not None
    checkpoint = path_of(place.state.fragment("sums").path, 2)
    assert not _Java(session).has_loaded(checkpoint, str(run.query.runId))
    target.stop()
