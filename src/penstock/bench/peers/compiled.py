"""The same pipelines as queries, compiled and run by Penstock."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from penstock.bench.peers.workload import KINDS, LATENESS_S, Workload
from penstock.lang.deployment import parse_deployment
from penstock.spark.engine import Engine
from penstock.spark.node import NodeOptions
from penstock.spark.state import StateFolder

QUERIES = {
    "filter and map": "SELECT auction, bidder, 0.908 * price AS euros, ts FROM bids "
    "WHERE auction % 3 = 0",
    "strings": "SELECT auction, split_part(url, '/', 4) AS first, "
    "split_part(url, '/', 5) AS second FROM bids "
    "WHERE lower(channel) IN ('apple', 'google', 'facebook', 'baidu')",
    "tumbling aggregate": "SELECT bidder, count(*) AS bids, max(price) AS highest, "
    "window.end AS at FROM bids GROUP BY bidder, window(ts, '10 seconds')",
    "sliding aggregate": "SELECT auction, count(*) AS bids, window.end AS at FROM bids "
    "GROUP BY auction, window(ts, '10 seconds', '2 seconds')",
    "stream join": "SELECT p.id, p.name, a.id AS auction, a.ts FROM persons p JOIN auctions a "
    "ON p.id = a.seller AND a.ts BETWEEN p.ts AND p.ts + INTERVAL 10 SECONDS",
}

_SCHEMAS = {
    "persons": "id bigint, name string, email string, credit_card string, city string, "
    "state string, ts timestamp",
    "auctions": "id bigint, item_name string, description string, initial_bid bigint, "
    "reserve bigint, ts timestamp, expires timestamp, seller bigint, category bigint",
    "bids": "auction bigint, bidder bigint, price bigint, channel string, url string, ts timestamp",
}


def deployment_text(parts: str, workload: Workload) -> str:
    """A deployment over the workload's streams; ``parts`` are its other sections."""
    streams = "".join(
        f"  {kind}:\n"
        f"    source: {{directory: {workload.folder(kind)}, format: parquet, finished: true}}\n"
        f"    schema: {_SCHEMAS[kind]}\n"
        f"    event_time: ts\n"
        f"    lateness: {LATENESS_S}s\n"
        for kind in KINDS
    )
    return f"streams:\n{streams}{parts}"


def pipeline_parts(name: str, out: Path) -> str:
    """The query of one pipeline, with its results in files."""
    return (
        f'queries:\n  result:\n    sql: "{QUERIES[name]}"\n'
        f"    to: {{files: {out}, format: parquet}}\n"
    )


def run(
    session: SparkSession, parts: str, workload: Workload, scratch: Path, cores: int
) -> list[dict]:
    """Runs a deployment over all its input; Spark's reports of its batches.

    A batch takes one file of every input, as on the other side: the least a batch can have, however
    large the files of an input are. Fragments are queries of their own.
    """
    network = parse_deployment(deployment_text(parts, workload), "bench", scratch).network
    options = NodeOptions(trigger_ms=0, max_rows_per_batch=1, cores=cores, engine="native")
    engine = Engine(session, network, StateFolder(scratch / "state"), options)
    try:
        engine.start()
        engine.wait(poll_s=0.05)
        return [report for fragment in engine.fragments for report in engine.reports(fragment.id)]
    finally:
        engine.stop()
