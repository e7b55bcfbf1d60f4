"""Getting ready for a fragment: its plan compiled and run once over nothing.

The first batch of a query costs Spark seconds of loading classes, generating code and compiling
it. All of that is kept by the application, not by the query: a rehearsal on empty input leaves a
node as quick as if it had run the fragment all along.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from penstock.model.fragments import Fragment
from penstock.model.network import Network
from penstock.spark.channels.channel import Writer
from penstock.spark.node import Node, NodeOptions, is_channel
from penstock.spark.state import StateFolder

_PATIENCE_S = 20.0
_LOOK_EVERY_S = 0.02


def rehearse(
    session: SparkSession, network: Network, fragment: Fragment, options: NodeOptions
) -> bool:
    """Runs the fragment over empty input, away from its real state; whether it could be.

    A fragment that reads from Kafka is left alone: there is nothing empty to read.
    """
    if not all(is_channel(network, name) for name in fragment.inputs):
        return False
    # Only its channel: what goes to the outside world must not happen twice.
    alone = replace(fragment, writes=(), queries=(), is_read=True)
    with tempfile.TemporaryDirectory(prefix="penstock-rehearsal-") as folder:
        state = StateFolder(Path(folder))
        state.prepare()
        for name in fragment.inputs:
            channel = state.channel(name)
            channel.register(fragment.name)
            Writer(channel, 0).commit(0, [], watermark_us=0)
        node = Node(session, state, options)
        node.start_fragment(network, alone, 0)
        try:
            _await_batch(node, fragment.name)
        finally:
            node.stop()
    return True


def _await_batch(node: Node, name: str) -> None:
    until_s = time.monotonic() + _PATIENCE_S
    while not node.has_progressed(name) and time.monotonic() < until_s:
        failure = node.failure(name)
        if failure is not None:
            raise failure
        time.sleep(_LOOK_EVERY_S)
