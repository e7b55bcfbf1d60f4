"""Getting ready for a fragment: its plan run a few times, aside, over rows like those to come.

The first batches of a query cost Spark seconds: classes are loaded, code is generated, and Java
finds out what to compile. All of that is kept by the application, not by the query; after a
rehearsal a node is nearly as quick as if it had run the fragment all along.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from penstock.channels.channel import Channel
from penstock.channels.files import described
from penstock.channels.ingest.linking import link
from penstock.channels.manifest import file_name
from penstock.channels.writer import Writer
from penstock.model.beginnings import FIRST
from penstock.model.fragments import Fragment
from penstock.model.ids import PartId, ReaderId, channel_for
from penstock.model.network import Network
from penstock.spark.node import Node, NodeOptions
from penstock.spark.state import StateFolder

BATCHES = 10
_SAMPLED_BATCHES = 3
_PATIENCE_S = 15.0
_LOOK_EVERY_S = 0.02


def rehearse(
    session: SparkSession,
    state: StateFolder,
    network: Network,
    fragment: Fragment,
    options: NodeOptions,
    place: Path,
    batches: int = BATCHES,
) -> bool:
    """Runs the fragment on a few of its latest rows, away from its real state; whether it did all.

    ``place`` is a folder that tasks can reach, wherever they run.
    """
    # Only its channel: what goes to the outside world must not happen twice. All rows count here.
    alone = replace(fragment, writes=(), queries=(), is_read=True, beginning=FIRST)
    quick = replace(options, trigger_ms=1, max_rows_per_batch=1, retained_rows=1)
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place) as folder:
        stage = StateFolder(Path(folder))
        stage.prepare()
        for name in fragment.inputs:
            channel = channel_for(name)
            _sample(state.channel(channel), stage.channel(channel), fragment.reader, batches)
        node = Node(session, stage, quick)
        node.start_fragment(network, alone, 0)
        try:
            return _await_batches(node, fragment.id, batches)
        finally:
            node.stop()


def _sample(source: Channel, target: Channel, reader: ReaderId, batches: int) -> None:
    """Fills a channel with batches that hold the latest rows of another, again and again."""
    target.register(reader)
    writer = Writer(target, 0)
    latest = source.sequences()[-_SAMPLED_BATCHES - 1 :]
    files = [
        file for manifest in filter(None, map(source.manifest, latest)) for file in manifest.files
    ]
    for number in range(batches):
        made = []
        if files:
            file = files[number % len(files)]
            name = file_name(number, 0, 0)
            try:
                link(source.path_of(file), target.data / name)
            except FileNotFoundError:
                files = []
            else:
                made = [described(target.data / name, file.rows)]
        # Time moves on a little, so that what it moves on for is rehearsed as well.
        writer.commit(number, made, watermark_us=number * 1_000)


def _await_batches(node: Node, name: PartId, batches: int) -> bool:
    until_s = time.monotonic() + _PATIENCE_S
    while node.batches(name) < batches and time.monotonic() < until_s:
        failure = node.failure(name)
        if failure is not None:
            raise failure
        time.sleep(_LOOK_EVERY_S)
    return node.batches(name) >= batches
