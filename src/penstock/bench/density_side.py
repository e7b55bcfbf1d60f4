"""One side of ``penstock bench density`` as a process.

Called with ``SIDE QUERIES WARM_UP_S MEASURED_S FOLDER``; QUERIES is a number, or ``chain``.
Prints one JSON object: cores in use, memory, and how old rows were when their results were out. Of
a chain only the results of its last link count.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from penstock.bench.density_load import ROUND_S, chain, feeder, network, query
from penstock.bench.flow import Paced
from penstock.bench.peers.flink_density import arrive_as_csv, flink_queries
from penstock.bench.peers.stock_density import arrive, stock_queries
from penstock.bench.processes import own_bytes, processor_s, total
from penstock.channels.channel import Channel
from penstock.channels.files import write_files
from penstock.channels.writer import Writer
from penstock.errors import RunError
from penstock.kernels.engine_choice import choose_engine
from penstock.model.engines import EngineName
from penstock.model.ids import channel_for
from penstock.model.network import Network
from penstock.place.fuse import fuse
from penstock.spark.node import Node, NodeOptions
from penstock.spark.session import SessionOptions, start_session
from penstock.spark.state import StateFolder

_CORES = 2
_OPTIONS = SessionOptions(cores=_CORES, memory_bytes=1 << 30)
_RETAINED_ROWS = 10_000
_ENGINES: dict[str, EngineName] = {"light": "light", "native": "native"}
Latencies = Callable[[], list[float]]


def main(arguments: list[str]) -> None:
    """Runs a side and prints what it took."""
    side, what, folder = arguments[0], arguments[1], Path(arguments[4])
    warm_up_s, measured_s = map(float, arguments[2:4])
    if what == "chain":
        used = run_chain(_ENGINES[side], warm_up_s, measured_s, folder)
    else:
        run = _SIDES[side]
        used = run(int(what), warm_up_s, measured_s, folder)
    print(json.dumps(used))


def measure(
    warm_up_s: float, measured_s: float, take_latencies: Latencies, pid: int | None = None
) -> dict[str, object]:
    """What a process and those below it use, after a while; this one where no other is given."""
    of = os.getpid() if pid is None else pid
    time.sleep(warm_up_s)
    take_latencies()
    before_s, started_s = total(of, processor_s), time.monotonic()
    time.sleep(measured_s)
    spent_s = total(of, processor_s) - before_s
    found = sorted(take_latencies())
    return {
        "cores": spent_s / (time.monotonic() - started_s),
        "memory_bytes": total(of, own_bytes),
        "p50_s": _share(found, 0.5),
        "p99_s": _share(found, 0.99),
        "results": len(found),
    }


def _share(ordered: list[float], share: float) -> float | None:
    return ordered[int(share * (len(ordered) - 1))] if ordered else None


@contextmanager
def _running(*paced: Paced) -> Iterator[None]:
    """All of them at work; raises what one has failed with."""
    for worker in paced:
        worker.start()
    try:
        yield
    finally:
        for worker in reversed(paced):
            worker.stop()


def _fed(channel: Channel) -> Paced:
    writer = Writer(channel, 1, _RETAINED_ROWS)

    def deliver(number: int, rows: pa.Table, until_us: int) -> None:
        files = write_files(rows, writer, number)
        writer.commit(number, files, until_us, arrived_s=time.time())

    return feeder(deliver)


def run_light(queries: int, warm_up_s: float, measured_s: float, folder: Path) -> dict[str, object]:
    """All queries as members of one bundle, in rounds."""
    return _run_on_node("light", network(queries), warm_up_s, measured_s, folder)


def run_native(
    queries: int, warm_up_s: float, measured_s: float, folder: Path
) -> dict[str, object]:
    """Every query a Structured Streaming query of its own."""
    return _run_on_node("native", network(queries), warm_up_s, measured_s, folder)


def run_chain(
    engine: EngineName, warm_up_s: float, measured_s: float, folder: Path
) -> dict[str, object]:
    """Three windows in a row; how old rows are when the last one gives its results."""
    return _run_on_node(engine, chain(), warm_up_s, measured_s, folder, last="top")


def _run_on_node(
    engine: EngineName,
    queried: Network,
    warm_up_s: float,
    measured_s: float,
    folder: Path,
    last: str | None = None,
) -> dict[str, object]:
    session = start_session("density", _OPTIONS, folder / "spark.log")
    state = StateFolder(folder / "state")
    options = NodeOptions(cores=_CORES, retained_rows=_RETAINED_ROWS, engine=engine)
    node = Node(session, state, options)
    for fragment in fuse(queried):
        chosen = choose_engine(queried, fragment, engine)
        if chosen.engine != engine:
            raise RunError(f"{fragment.name} does not run {engine}: {chosen.reason}")
        node.start_fragment(queried, replace(fragment, is_read=True), 1)
    try:
        with _running(_fed(state.channel(channel_for("readings")))):
            return measure(warm_up_s, measured_s, lambda: node.take_latencies_s(last))
    finally:
        node.stop()


def run_stock(queries: int, warm_up_s: float, measured_s: float, folder: Path) -> dict[str, object]:
    """Every query hand-written for Spark as it comes, over the same rows in files."""
    arrivals = folder / "in"
    arrivals.mkdir(parents=True)
    texts = [query(number) for number in range(queries)]
    fed = feeder(lambda number, rows, _: arrive(rows, arrivals / f"{number:08d}.parquet"))
    with stock_queries(texts, arrivals, folder, _CORES, ROUND_S), _running(fed):
        return measure(warm_up_s, measured_s, list)


def run_flink(queries: int, warm_up_s: float, measured_s: float, folder: Path) -> dict[str, object]:
    """All queries as one job of Flink's, over the same rows in CSV files."""
    arrivals = folder / "in"
    arrivals.mkdir(parents=True)
    fed = feeder(lambda number, rows, _: arrive_as_csv(rows, arrivals / f"{number:08d}.csv"))
    with flink_queries(queries, folder) as pid, _running(fed):
        return measure(warm_up_s, measured_s, list, pid)


_SIDES = {"light": run_light, "native": run_native, "stock": run_stock, "flink": run_flink}

if __name__ == "__main__":
    main(sys.argv[1:])
