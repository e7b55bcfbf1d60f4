"""Several nodes in one application: for tests, and for a quick look at a system.

All of them share one Spark session in the controller's process. Everything is as with nodes that
are processes, except that they share processors and memory and die together.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence
from dataclasses import replace

from penstock.control.agent import Agent
from penstock.control.carriers import InlineCarrier
from penstock.control.catalog import Catalog
from penstock.control.home import Home
from penstock.control.node_process import RETAINED_ROWS
from penstock.control.records import NodeRecord
from penstock.control.talking import Talk
from penstock.control.tree_talk import TreeTalk
from penstock.control.worker import SparkWorker
from penstock.spark.node import NodeOptions
from penstock.spark.session import SessionOptions, SparkSession, start_session
from penstock.spark.state import StateFolder

log = logging.getLogger(__name__)


class InlineHost:
    """Runs every node as a thread of this process."""

    def __init__(self, home: Home, catalog: Catalog) -> None:
        self._home = home
        self._catalog = catalog
        self._carrier = InlineCarrier()
        self._session: SparkSession | None = None
        self._running: dict[str, tuple[Agent, threading.Thread]] = {}

    def keep_up(self, nodes: Sequence[NodeRecord]) -> None:
        """Starts the nodes that have no thread."""
        for node in nodes:
            known = self._running.get(node.name)
            if known is None or not known[1].is_alive():
                self._start(node, nodes)

    def _start(self, node: NodeRecord, nodes: Sequence[NodeRecord]) -> None:
        log.info("starting node %s here", node.name)
        if self._session is None:
            cores = sum(node.cores for node in nodes)
            memory_bytes = max(node.memory_bytes for node in nodes)
            self._session = start_session(
                "penstock", SessionOptions(cores, memory_bytes), self._home.log("nodes")
            )
        options = NodeOptions(cores=node.cores, retained_rows=RETAINED_ROWS)
        worker = SparkWorker(node.name, self._session, StateFolder(self._home.state), options)
        record = replace(node, pid=os.getpid())
        tree = TreeTalk(record, self._catalog, self._carrier)
        talk = Talk(node.name, self._catalog, self._carrier, tree=tree)
        agent = Agent(record, self._catalog, worker, talk=talk)
        thread = threading.Thread(target=agent.run, name=f"node-{node.name}", daemon=True)
        self._running[node.name] = (agent, thread)
        thread.start()

    def stop(self, nodes: Sequence[NodeRecord]) -> None:
        """Lets all nodes stop, and then Spark."""
        for agent, _ in self._running.values():
            agent.stop()
        for _, thread in self._running.values():
            thread.join()
        if self._session is not None:
            self._session.stop()
