"""Hadoop's configuration without what its code has built in anyway."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from penstock.spark.jvm.gateway import Jvm

_OF_A_SITE = ("core-site.xml", "hdfs-site.xml")


def drop_hadoop_defaults(session: SparkSession) -> None:
    """Leaves what was set for the session; all of it where a site has files of its own.

    Spark copies the configuration several times for every batch, and sends it to tasks with every
    operator that has state: 1,100 defaults, each with the name of the file it came from.
    """
    known = Jvm(session).hadoop
    if any(known.getResource(name) is not None for name in _OF_A_SITE):
        return
    # Classes that bring defaults of their own have every configuration read all of them again,
    # whenever they are first used. Copies do as the original does.
    _field(known, "loadDefaults").setBoolean(known, False)
    known.reloadConfiguration()
    _field(known, "updatingResource").get(known).clear()


def _field(known: Any, name: str) -> Any:
    field = known.getClass().getDeclaredField(name)
    field.setAccessible(True)
    return field
