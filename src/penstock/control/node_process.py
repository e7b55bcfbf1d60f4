"""One node as a process of its own: ``python -m penstock.control.node_process HOME NODE [MASTER]``.

With a master its tasks run on that cluster.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

from penstock.control.agent import Agent
from penstock.control.carriers import LoopbackCarrier
from penstock.control.catalog import Catalog
from penstock.control.home import Home
from penstock.control.records import NodeRecord
from penstock.control.talking import Talk
from penstock.control.tree_talk import TreeTalk
from penstock.control.versions import check_system
from penstock.errors import InputError, PenstockError, RunError

RETAINED_ROWS = 100_000
_LOOK_EVERY_S = 3.0
_MISSED_AT_MOST = 10


def main(arguments: list[str]) -> int:
    """Runs a node until it is told to stop."""
    home, name = Home(Path(arguments[0])), arguments[1]
    master = arguments[2] if len(arguments) > 2 else None
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stdout
    )
    # What goes wrong behind Spark's calls is kept and told once, by the agent.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    try:
        _run(home, name, master)
    except PenstockError as error:
        logging.error("%s", error)
        return error.exit_code
    except Exception as error:
        logging.info("where it went wrong:", exc_info=error)
        # Last, and in a line: that is what penstock up shows.
        reason = " ".join(str(error).split())
        logging.error("node %s ends: %s: %s", name, type(error).__name__, reason)
        return RunError.exit_code
    return 0


def _run(home: Home, name: str, master: str | None) -> None:
    from penstock.control.worker import SparkWorker
    from penstock.spark.cluster_nodes import has_executor
    from penstock.spark.node import NodeOptions
    from penstock.spark.session import SessionOptions, start_session
    from penstock.spark.state import StateFolder

    catalog = Catalog(home.catalog_url)
    check_system(catalog, name)
    node = _declared(catalog, name)
    wanted = SessionOptions(node.cores, node.memory_bytes, master=master)
    session = start_session(name, wanted, home.log(name))
    options = NodeOptions(cores=node.cores, retained_rows=RETAINED_ROWS)
    worker = SparkWorker(name, session, StateFolder(home.state), options)
    carrier = LoopbackCarrier(home.token(), catalog)
    talk = Talk(name, catalog, carrier, tree=TreeTalk(node, catalog, carrier))
    agent = Agent(node, catalog, worker, talk=talk)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: agent.stop())
    if master is not None:
        lost = partial(_end_without_executor, lambda: has_executor(session), agent.stop)
        threading.Thread(target=lost, daemon=True, name="executor").start()
    try:
        _run_apart(agent.run)
    finally:
        session.stop()


def _end_without_executor(
    has_one: Callable[[], bool],
    stop: Callable[[], None],
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Stops a node whose executor is gone for good: its host starts it again where there is one.

    A cluster gives a node another executor if it can; whoever has none that long, has lost it.
    """
    missed = 0
    while missed < _MISSED_AT_MOST:
        sleep(_LOOK_EVERY_S)
        missed = 0 if has_one() else missed + 1
    logging.error("no executor for %g s; the node ends", _MISSED_AT_MOST * _LOOK_EVERY_S)
    stop()


def _run_apart(work: Callable[[], None]) -> None:
    """Works in a thread of its own; raises here what it raises there.

    Signals reach the main thread only between steps of Python, so it is kept free for them.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="agent") as pool:
        pool.submit(work).result()


def _declared(catalog: Catalog, name: str) -> NodeRecord:
    for node in catalog.nodes():
        if node.name == name:
            return replace(node, pid=os.getpid())
    raise InputError(f"there is no node {name} in the catalog", hint="Start it with penstock up.")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
