"""What Java need not say."""

from __future__ import annotations

from pyspark.sql import SparkSession

from penstock.spark.jvm.gateway import Jvm
from penstock.spark.jvm.internals import STREAMING

# Batches that take longer than their interval: shown by penstock status.
_TOLD_BY_US = (f"{STREAMING}.runtime.ProcessingTimeExecutor",)


def hush(session: SparkSession) -> None:
    """Leaves out what would be said with every batch for as long as a node has much to do."""
    jvm = Jvm(session)
    level = jvm.java("org.apache.logging.log4j.Level").ERROR
    for name in _TOLD_BY_US:
        jvm.java("org.apache.logging.log4j.core.config.Configurator").setLevel(name, level)
