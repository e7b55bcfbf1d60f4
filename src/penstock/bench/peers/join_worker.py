"""One side of a comparison of joins, as a process of its own: told on standard input what to run.

``python -m penstock.bench.peers.join_worker SIDE`` with SIDE ``ours``, ``memory`` or ``rocksdb``:
the latter two are Spark's own join with either of its state stores. A request names a folder with
the Parquet files of both streams, ``l`` and ``r``, the window, and the rows of a batch: one file of
each stream.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from penstock.bench.peers.join_watch import JoinWatch, WatchedJoin
from penstock.bench.peers.processor import processor_seconds, spent_s
from penstock.bench.peers.serving import Answer, Request, serve_requests
from penstock.bench.peers.stock import stock_session
from penstock.lang.deployment import parse_deployment
from penstock.model.ids import PartId
from penstock.place.fuse import fuse
from penstock.spark.node import Node, NodeOptions
from penstock.spark.session import SessionOptions, start_session
from penstock.spark.state import StateFolder

CORES, MEMORY_BYTES = 2, 2 << 30
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_POLL_S = 0.02
Run = Callable[[Request, Path], Answer]

_DEPLOYMENT = """
streams:
  l: {{source: {{directory: {path}/l, format: parquet, finished: true}}, schema: "l_ts timestamp, l_key bigint, l_value bigint", event_time: l_ts, lateness: 0s}}
  r: {{source: {{directory: {path}/r, format: parquet, finished: true}}, schema: "r_ts timestamp, r_key bigint, r_value bigint", event_time: r_ts, lateness: 0s}}
queries:
  pairs:
    sql: |
      SELECT l_ts, l_key, l_value, r_ts, r_value FROM l JOIN r ON l_key = r_key
      AND r_ts BETWEEN l_ts - INTERVAL {window_s} SECONDS AND l_ts + INTERVAL {window_s} SECONDS
    to: {{files: {out}, format: parquet}}
"""  # noqa: E501


def run_ours(session: SparkSession, request: Request, scratch: Path) -> Answer:
    """The join as a light fragment, once both streams have been taken in; that time counts, too."""
    given = {"path": request["path"], "window_s": request["window_s"], "out": scratch / "out"}
    network = parse_deployment(_DEPLOYMENT.format(**given), "bench", scratch).network
    state = StateFolder(scratch / "state")
    state.prepare()
    options = NodeOptions(
        trigger_ms=0, max_rows_per_batch=request["batch_rows"], cores=CORES, engine="light"
    )
    node = Node(session, state, options)
    (fragment,) = fuse(network)
    for stream in network.streams:
        # Nobody is registered to read yet, so nothing is waited for to be gathered.
        node.start_intake(stream, 1)
    _await(node, lambda: all(node.is_finished(PartId(stream.name)) for stream in network.streams))
    with JoinWatch(lambda: _ours(node, state, fragment.id)) as watch:
        node.start_fragment(network, fragment, 1)
        _await(node, lambda: node.is_finished(fragment.id))
    batches = node.batches(fragment.id)
    node.stop()
    return {"batches": batches, **watch.summary()}


def _ours(node: Node, state: StateFolder, name: PartId) -> WatchedJoin:
    status = node.status(name)
    runs = state.fragment(name).runs
    sizes = []
    for path in runs.glob("*.run"):
        try:
            sizes.append(path.stat().st_size)
        except FileNotFoundError:
            continue
    return WatchedJoin(status.batches, status.busy_ms, status.state_rows, sum(sizes))


def _await(node: Node, condition: Callable[[], bool]) -> None:
    while not condition():
        for name in node.names:
            failure = node.failure(name)
            if failure is not None:
                raise failure
        time.sleep(_POLL_S)


def run_stock(session: SparkSession, request: Request, scratch: Path) -> Answer:
    """Spark's own join, as one writes it by hand."""
    sides = []
    for name in ("l", "r"):
        rows = session.readStream.schema(
            f"{name}_ts timestamp, {name}_key bigint, {name}_value bigint"
        )
        files = rows.option("maxFilesPerTrigger", 1).parquet(f"{request['path']}/{name}")
        sides.append(files.withWatermark(f"{name}_ts", "0 seconds"))
    within = f"INTERVAL {request['window_s']} SECONDS"
    condition = f"l_key = r_key AND r_ts BETWEEN l_ts - {within} AND l_ts + {within}"
    joined = sides[0].join(sides[1], F.expr(condition))
    query = (
        joined.select("l_ts", "l_key", "l_value", "r_ts", "r_value")
        .writeStream.format("parquet")
        .option("checkpointLocation", str(scratch / "checkpoint"))
        .option("path", str(scratch / "out"))
        .start()
    )
    with JoinWatch(lambda: None) as watch:
        query.processAllAvailable()
    reports = [dict(report) for report in query.recentProgress]
    query.stop()
    busy = [report for report in reports if report["numInputRows"]]
    held = [(state["numRowsTotal"], state["memoryUsedBytes"]) for report in busy
            for state in report["stateOperators"]]  # fmt: skip
    return {
        "batches": len(busy),
        "batch_ms": [report["durationMs"]["triggerExecution"] for report in busy],
        "held_rows": max((rows for rows, _ in held), default=0),
        "held_bytes": max((size for _, size in held), default=0),
        "peak_bytes": watch.peak_bytes,
    }


def _digest(folder: Path) -> tuple[int, int]:
    """How many rows came out, and a sum that tells them from others."""
    rows = ds.dataset(folder, format="parquet", exclude_invalid_files=True).to_table(
        columns=["l_value", "r_value"]
    )
    product = pc.multiply(pc.add(rows["l_value"], 1), pc.add(rows["r_value"], 7))
    return rows.num_rows, int(pc.sum(product).as_py() or 0)


def _side(name: str) -> Run:
    if name == "ours":
        log = Path(tempfile.mkdtemp()) / "spark.log"
        options = SessionOptions(cores=CORES, memory_bytes=MEMORY_BYTES)
        session = start_session("bench", options, log)
        return lambda request, scratch: run_ours(session, request, scratch)
    session = stock_session(CORES, memory=f"{MEMORY_BYTES >> 20}m")
    if name == "rocksdb":
        session.conf.set("spark.sql.streaming.stateStore.providerClass", _ROCKSDB)
    session.conf.set("spark.sql.streaming.numRecentProgressUpdates", "10000")
    return lambda request, scratch: run_stock(session, request, scratch)


def answer(run: Run, request: Request) -> Answer:
    """Runs what is asked for; how long it took, and what came out."""
    scratch = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    try:
        before, began_s = processor_seconds(with_own=True), time.perf_counter()
        found = run(request, scratch)
        seconds = time.perf_counter() - began_s
        spent = spent_s(before, processor_seconds(with_own=True))
        pairs, digest = _digest(scratch / "out")
        told = {"seconds": seconds, "processor_seconds": spent, "pairs": pairs, "digest": digest}
        return {**told, **found}
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    serve_requests(lambda name: partial(answer, _side(name)))
