"""Nodes whose tasks run on a cluster: a session's settings there, and what its tasks have used.

The application of a node is pinned to its place: on a standalone cluster by a custom resource that
only the node's worker has, on Kubernetes by a node selector. Channels, checkpoints and state are
files, so the system's folder has to be at the same path everywhere.
"""

from __future__ import annotations

import sys
import time

from pyspark.sql import SparkSession

from penstock.errors import RunError
from penstock.spark.jvm.executors import executors
from penstock.spark.masters import address_towards, is_standalone, resource_of

_EXECUTOR_S = 60.0
_LOOK_EVERY_S = 0.1


def cluster_settings(master: str, node: str, cores: int, heap_bytes: int) -> dict[str, str]:
    """What a node's session needs to have one executor, in its place."""
    settings = {
        "spark.executor.cores": str(cores),
        "spark.executor.instances": "1",
        "spark.executor.memory": f"{heap_bytes >> 20}m",
        "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -Duser.timezone=UTC",
        "spark.executorEnv.MALLOC_ARENA_MAX": "2",
        "spark.pyspark.python": sys.executable,
    }
    if is_standalone(master):
        address = address_towards(master)
        return settings | {
            "spark.cores.max": str(cores),
            f"spark.executor.resource.{resource_of(node)}.amount": "1",
            "spark.driver.bindAddress": address,
            "spark.driver.host": address,
        }
    return settings | {
        "spark.kubernetes.executor.node.selector.penstock": node,
        "spark.kubernetes.executor.request.cores": str(cores),
    }


def await_executor(session: SparkSession, node: str, patience_s: float = _EXECUTOR_S) -> None:
    """Waits until a node's executor is there; raises if it never comes."""
    until_s = time.monotonic() + patience_s
    while not has_executor(session):
        if time.monotonic() > until_s:
            session.stop()
            raise RunError(
                f"no worker took node {node} within {patience_s:g} s",
                hint=f"Its worker needs the resource {resource_of(node)}, and cores and memory "
                "that are free; on Kubernetes its machine needs the label penstock.",
            )
        time.sleep(_LOOK_EVERY_S)


def task_seconds(session: SparkSession) -> float:
    """How long tasks have run in other processes, which Spark counts; 0 where there are none."""
    if str(session.sparkContext.master).startswith("local"):
        return 0.0
    return (
        sum(executor.totalDuration() for executor in executors(session, only_alive=False)) / 1_000
    )


def has_executor(session: SparkSession) -> bool:
    """Whether a node has somewhere to run tasks."""
    return bool(executors(session, only_alive=True))
