"""What Spark counts about the processes that run tasks."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from penstock.spark.jvm.gateway import Jvm

_DRIVER = "driver"


def executors(session: SparkSession, only_alive: bool) -> list[Any]:
    """The executors of a session, without its own process."""
    store = Jvm(session).context.sc().statusStore()
    known = store.executorList(only_alive)
    found = [known.apply(at) for at in range(known.size())]
    return [executor for executor in found if executor.id() != _DRIVER]
