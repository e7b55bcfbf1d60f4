"""One side of a comparison as a process of its own: told on standard input what to run.

Each line in is a JSON object with ``pipeline`` (or, for our side, ``parts`` of a deployment file),
``path``, ``events`` and ``files``; each line out the seconds it took and what Spark reported. Two
such processes, one a side, are kept running and asked in turn, so that both see the same machine.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow.dataset as ds

from penstock.bench.peers import compiled, stock
from penstock.bench.peers.processor import processor_seconds, spent_s
from penstock.bench.peers.serving import Answer, Request, serve_requests
from penstock.bench.peers.workload import Workload
from penstock.spark.session import SessionOptions, start_session

_CORES, _MEMORY_BYTES = 2, 2 << 30
Run = Callable[[Request, Workload, Path], list[dict]]


def _side(name: str) -> Run:
    if name == "stock":
        session = stock.stock_session(_CORES, memory=f"{_MEMORY_BYTES >> 20}m")
        return lambda request, load, scratch: stock.run(session, request["pipeline"], load, scratch)
    log = Path(tempfile.mkdtemp()) / "spark.log"
    session = start_session("bench", SessionOptions(cores=_CORES, memory_bytes=_MEMORY_BYTES), log)
    return lambda request, load, scratch: compiled.run(
        session, _parts(request, scratch), load, scratch, _CORES
    )


def _parts(request: Request, scratch: Path) -> str:
    given = request.get("parts")
    if given is not None:
        return str(given)
    return compiled.pipeline_parts(request["pipeline"], scratch / "out")


def _answer(run: Run, request: Request) -> Answer:
    workload = Workload(Path(request["path"]), request["events"], request["files"])
    scratch = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    try:
        before = processor_seconds(with_own=False)
        started_s = time.perf_counter()
        reports = run(request, workload, scratch)
        seconds = time.perf_counter() - started_s
        after = processor_seconds(with_own=False)
        # A reader of ours adds a row that tells the time; a batch of such rows alone has no data.
        busy = [report for report in reports if report["numInputRows"] > len(report["sources"])]
        # The first half warms caches and compiled code up.
        steady = [report["durationMs"]["triggerExecution"] for report in busy[len(busy) // 2 :]]
        return {
            "seconds": seconds,
            "processor_seconds": spent_s(before, after),
            "batch_ms": statistics.median(steady) if steady else 0.0,
            "batches": len(busy),
            "rows_out": _rows(scratch / "out"),
        }
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _rows(folder: Path) -> int:
    if not folder.exists():
        return 0
    return int(ds.dataset(folder, format="parquet", exclude_invalid_files=True).count_rows())


if __name__ == "__main__":
    serve_requests(lambda name: partial(_answer, _side(name)))
