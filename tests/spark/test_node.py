"""Fragments that change hands: a former owner's late work is refused, and without that it hurts."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from penstock.errors import RunError
from penstock.lang.deployment import parse_deployment
from penstock.model.network import Network
from penstock.place.fuse import fuse
from penstock.spark.channels.channel import Writer
from penstock.spark.channels.durable import create_once
from penstock.spark.channels.manifest import ChannelFile, Manifest
from penstock.spark.fragment_run import FragmentFolder
from penstock.spark.node import Node, NodeOptions
from penstock.spark.sinks.batch import Batch
from penstock.spark.sinks.channel_sink import ChannelSink
from penstock.spark.state import StateFolder
from penstock.spark.warming import rehearse
from waiting import until

DEPLOYMENT = """
streams:
  readings:
    source: {generate: meters, homes: 40, every: 30min, days: 2, disorder: 10min}
    lateness: 20min
queries:
  sums:
    sql: |
      SELECT home, window.start AS since, sum(kwh) AS kwh, count(*) AS n
      FROM readings GROUP BY home, window(ts, '2 hours', '1 hour')
"""
OPTIONS = NodeOptions(trigger_ms=20, max_rows_per_batch=400)


def await_that(
    condition: Callable[[], object], node: Node | None = None, limit_s: float = 60
) -> None:
    """Waits for a condition, or for a failure of the node."""

    def check() -> None:
        for name in node.names if node else ():
            failure = node.failure(name) if node else None
            if failure is not None:
                raise failure

    until(condition, limit_s, check=check)


class Place:
    """A network with its state, run by one node after another."""

    def __init__(self, folder: Path, network: Network) -> None:
        self.state = StateFolder(folder)
        self.state.prepare()
        self.network = network
        (fragment,) = fuse(network)
        self.fragment = replace(fragment, is_read=True)
        self.state.channel("readings").register("sums")
        self.output = self.state.channel("sums")
        self.output.register("test")

    def node(self, session: SparkSession) -> Node:
        return Node(session, self.state, OPTIONS)

    def start(self, node: Node, epoch: int) -> None:
        node.start_fragment(self.network, self.fragment, epoch)

    def batches(self) -> int:
        return len(self.output.sequences())

    def is_finished(self) -> bool:
        return self.state.fragment("sums").is_finished

    def rows(self) -> Counter[tuple[object, ...]]:
        found: Counter[tuple[object, ...]] = Counter()
        for manifest in self.output.newer(0):
            for file in manifest.files:
                table = pq.read_table(self.output.data / file.name)
                found.update(
                    (row["home"], row["since"], round(row["kwh"], 6), row["n"])
                    for row in table.to_pylist()
                )
        return found


@pytest.fixture(scope="module")
def network() -> Network:
    return parse_deployment(DEPLOYMENT, "sums.yaml", Path()).network


@pytest.fixture(scope="module")
def undisturbed(
    session: SparkSession, network: Network, tmp_path_factory: pytest.TempPathFactory
) -> Counter[tuple[object, ...]]:
    place = Place(tmp_path_factory.mktemp("undisturbed"), network)
    with_small_batches(place, session)
    node = place.node(session)
    place.start(node, 1)
    await_that(place.is_finished, node)
    node.stop()
    return place.rows()


def with_small_batches(place: Place, session: SparkSession) -> None:
    """Brings the whole input in, in batches small enough to be many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("penstock.spark.ingest.feed_ingest._ROWS_PER_COMMIT", 200)
        patch.setattr("penstock.spark.ingest.entrance._GATHERED_AT_MOST_S", 0.0)
        node = place.node(session)
        node.start_intake(place.network.stream("readings"), 1)
        await_that(lambda: node.is_finished("readings"), node)
        node.stop()


@pytest.fixture
def place(session: SparkSession, network: Network, tmp_path: Path) -> Place:
    place = Place(tmp_path, network)
    with_small_batches(place, session)
    return place


def test_handed_from_node_to_node(
    session: SparkSession, place: Place, undisturbed: Counter[tuple[object, ...]]
) -> None:
    nodes = [place.node(session), place.node(session)]
    for epoch in range(1, 6):
        node, seen = nodes[epoch % 2], place.batches()
        place.start(node, epoch)
        await_that(lambda seen=seen: place.batches() > seen or place.is_finished(), node)  # type: ignore[misc]
        node.release("sums", patience_s=10 if epoch % 2 else 0)
    assert not place.is_finished(), "it was over before it had moved often enough"
    place.start(nodes[0], 6)
    await_that(place.is_finished, nodes[0])
    nodes[0].stop()
    assert place.rows() == undisturbed
    assert len({manifest.epoch for manifest in place.output.newer(0)}) > 3


class Sleeper:
    """Lets one owner fall asleep where it is about to commit, and wakes it up again."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, epoch: int) -> None:
        self.asleep, self.wake = threading.Event(), threading.Event()
        real = ChannelSink._commit

        def commit(sink: ChannelSink, written: list[tuple[Path, int]], batch: Batch) -> None:
            if sink._writer.epoch == epoch and batch.id >= 2 and not self.wake.is_set():
                self.asleep.set()
                self.wake.wait(60)
            real(sink, written, batch)

        monkeypatch.setattr(ChannelSink, "_commit", commit)


def slept_through(
    session: SparkSession, place: Place, monkeypatch: pytest.MonkeyPatch
) -> BaseException | None:
    """One owner sleeps while another finishes its work; what the first says when it wakes up."""
    sleeper = Sleeper(monkeypatch, epoch=1)
    former, owner = place.node(session), place.node(session)
    place.start(former, 1)
    await_that(sleeper.asleep.is_set)
    place.start(owner, 2)
    await_that(place.is_finished, owner)
    run = former._running["sums"].run
    assert run is not None
    sleeper.wake.set()
    await_that(lambda: not run.query.isActive or run.query.status["message"].startswith("Waiting"))
    failure = run.failure
    former.stop()
    owner.stop()
    return failure


def test_a_former_owner_that_wakes_up_is_refused(
    session: SparkSession,
    place: Place,
    undisturbed: Counter[tuple[object, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failure = slept_through(session, place, monkeypatch)
    assert isinstance(failure, RunError)
    assert "belongs to a newer writer (epoch 2, this one has 1)" in str(failure)
    assert place.rows() == undisturbed


def test_without_fencing_a_former_owner_does_harm(
    session: SparkSession,
    place: Place,
    undisturbed: Counter[tuple[object, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A build with the fences taken down: if this gave the right rows, the test above is idle."""
    monkeypatch.setattr(Writer, "commit", append_unchecked)
    monkeypatch.setattr(FragmentFolder, "check_owner", lambda folder, epoch: None)
    assert slept_through(session, place, monkeypatch) is None
    assert place.rows() != undisturbed


def append_unchecked(
    writer: Writer,
    batch_id: int,
    files: Iterable[ChannelFile],
    watermark_us: int | None = None,
    ended: bool = False,
    writer_state: dict[str, object] | None = None,
    arrived_s: float | None = None,
) -> Manifest:
    """Puts a batch at the end of the log, whoever the writer is."""
    newest = writer.channel.last()
    sequence = 0 if newest is None else newest.sequence + 1
    manifest = Manifest(sequence, writer.epoch, batch_id, tuple(files), watermark_us, ended)
    assert create_once(writer.channel.entry(sequence), manifest.to_json())
    writer._last = manifest
    return manifest


def test_a_rehearsal_touches_nothing(
    session: SparkSession, place: Place, undisturbed: Counter[tuple[object, ...]]
) -> None:
    def everything() -> set[tuple[Path, int]]:
        return {(path, path.stat().st_mtime_ns) for path in place.state.path.rglob("*")}

    before = everything()
    assert rehearse(session, place.state, place.network, place.fragment, OPTIONS)
    assert everything() == before
    node = place.node(session)
    place.start(node, 1)
    await_that(place.is_finished, node)
    node.stop()
    assert place.rows() == undisturbed
