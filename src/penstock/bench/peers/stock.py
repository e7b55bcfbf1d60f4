"""The pipelines as one writes them by hand, on Spark as it comes.

Stock means: default settings except for those everybody sets on a small machine, one shuffle
partition a core and no web pages.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.bench.peers.workload import LATENESS_S, Workload
from penstock.feeds.generators import schema_of
from penstock.spark.java import find_java

Pipeline = Callable[[SparkSession, Workload], DataFrame]


def stock_session(cores: int, memory: str = "1g") -> SparkSession:
    """A session a careful user would start."""
    os.environ["JAVA_HOME"] = str(find_java(os.environ).home)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    settings = {
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": memory,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }
    builder = SparkSession.builder.master(f"local[{cores}]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _read(session: SparkSession, workload: Workload, kind: str) -> DataFrame:
    ddl = ", ".join(
        f"{field.name} {_TYPES[str(field.type)]}" for field in schema_of(f"nexmark.{kind}")
    )
    return (
        session.readStream.schema(ddl)
        .option("maxFilesPerTrigger", 1)
        .parquet(str(workload.folder(kind)))
    )


_TYPES = {"int64": "bigint", "string": "string", "timestamp[us, tz=UTC]": "timestamp"}


def _timed(session: SparkSession, workload: Workload, kind: str) -> DataFrame:
    return _read(session, workload, kind).withWatermark("ts", f"{LATENESS_S} seconds")


def filter_map(session: SparkSession, workload: Workload) -> DataFrame:
    bids = _read(session, workload, "bids")
    return bids.where("auction % 3 = 0").selectExpr(
        "auction", "bidder", "0.908D * price AS euros", "ts"
    )


def strings(session: SparkSession, workload: Workload) -> DataFrame:
    bids = _read(session, workload, "bids")
    return bids.where("lower(channel) IN ('apple', 'google', 'facebook', 'baidu')").selectExpr(
        "auction", "split_part(url, '/', 4) AS first", "split_part(url, '/', 5) AS second"
    )


def tumbling(session: SparkSession, workload: Workload) -> DataFrame:
    grouped = _timed(session, workload, "bids").groupBy("bidder", F.window("ts", "10 seconds"))
    counts = grouped.agg(F.count(F.lit(1)).alias("bids"), F.max("price").alias("highest"))
    return counts.selectExpr("bidder", "bids", "highest", "window.end AS at")


def sliding(session: SparkSession, workload: Workload) -> DataFrame:
    window = F.window("ts", "10 seconds", "2 seconds")
    counts = _timed(session, workload, "bids").groupBy("auction", window)
    return counts.agg(F.count(F.lit(1)).alias("bids")).selectExpr(
        "auction", "bids", "window.end AS at"
    )


def stream_join(session: SparkSession, workload: Workload) -> DataFrame:
    persons = _timed(session, workload, "persons").selectExpr("id", "name", "ts AS joined")
    auctions = _timed(session, workload, "auctions").selectExpr("id AS auction", "seller", "ts")
    within = "id = seller AND ts BETWEEN joined AND joined + INTERVAL 10 SECONDS"
    return persons.join(auctions, F.expr(within)).select("id", "name", "auction", "ts")


PIPELINES: dict[str, Pipeline] = {
    "filter and map": filter_map,
    "strings": strings,
    "tumbling aggregate": tumbling,
    "sliding aggregate": sliding,
    "stream join": stream_join,
}


def run(session: SparkSession, name: str, workload: Workload, scratch: Path) -> list[dict]:
    """Runs a pipeline over all its input; Spark's reports of its batches."""
    query = (
        PIPELINES[name](session, workload)
        .writeStream.format("parquet")
        .option("checkpointLocation", str(scratch / "checkpoint"))
        .option("path", str(scratch / "out"))
        .start()
    )
    try:
        query.processAllAvailable()
        return [dict(report) for report in query.recentProgress]
    finally:
        query.stop()
