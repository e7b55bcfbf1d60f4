"""The way into the Java machine that a session runs in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from py4j.java_gateway import JavaClass
from pyspark import SparkContext
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from penstock.spark.jvm.internals import is_known


class Jvm:
    """What runs behind a session, by the names of Java's classes."""

    def __init__(self, session: SparkSession) -> None:
        whole: Any = session
        self._gateway: Any = whole.sparkContext._gateway
        self.session: Any = whole._jsparkSession
        """Spark's own session."""
        self.context: Any = whole.sparkContext._jsc
        """Spark's own context."""

    @property
    def hadoop(self) -> Any:
        """Hadoop's configuration of the session."""
        return self.context.hadoopConfiguration()

    def java(self, name: str) -> Any:
        """A Java class by its full name; of Spark's and others' only what the table has.

        ``jvm.org.apache…`` would ask Java about every package on the way, and Java would look
        through all its archives for a class of that name, several milliseconds each time.
        """
        assert is_known(name), f"{name} is not among the internals that are listed"
        return JavaClass(name, self._gateway._gateway_client)

    def scala_object(self, name: str) -> Any:
        """A Scala object by its full name."""
        return getattr(self.java(f"{name}$"), "MODULE$")

    def array(self, kind: str, members: Sequence[object] = ()) -> Any:
        """A Java array of a class."""
        made = self._gateway.new_array(self.java(kind), len(members))
        for at, member in enumerate(members):
            made[at] = member
        return made

    def serve_callbacks(self) -> None:
        """From now on Java can call Python objects that stand behind its interfaces."""
        ensure_callback_server_started(self._gateway)


def stop_and_leave(session: SparkSession) -> None:
    """Stops a session and lets its Java machine end properly, waiting until it has."""
    gateway: Any = SparkContext._gateway
    assert gateway is not None
    session.stop()
    gateway.proc.stdin.close()
    gateway.proc.wait()
