"""Fragments that change hands: a former owner's late work is refused, and without that it hurts."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from one_fragment import OPTIONS, Place, await_that, with_small_batches
from pyspark.sql import DataFrame, SparkSession

from penstock.channels.durable import create_once
from penstock.channels.manifest import ChannelFile, Manifest
from penstock.channels.writer import Writer
from penstock.errors import RunError
from penstock.model.network import Network
from penstock.spark.fragment_run import FragmentFolder
from penstock.spark.node import Node
from penstock.spark.sinks.batch import Batch
from penstock.spark.sinks.channel_sink import ChannelSink
from penstock.spark.warming import rehearse
from waiting import until


@pytest.fixture
def place(session: SparkSession, network: Network, tmp_path: Path) -> Place:
    place = Place(tmp_path, network)
    with_small_batches(place, session)
    return place


def test_handed_from_node_to_node(
    session: SparkSession, place: Place, undisturbed: Counter[tuple[object, ...]]
) -> None:
    nodes = [place.node(session, 500), place.node(session, 500)]
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
    monkeypatch.setattr(Writer, "check_owner", lambda writer: None)
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
    latest: Mapping[str, int] | None = None,
) -> Manifest:
    """Puts a batch at the end of the log, whoever the writer is."""
    newest = writer.channel.last()
    sequence = 0 if newest is None else newest.sequence + 1
    manifest = Manifest(sequence, writer.epoch, batch_id, tuple(files), watermark_us, ended)
    assert create_once(writer.channel.entry(sequence), manifest.to_json())
    writer._last = manifest
    return manifest


def test_a_rehearsal_touches_nothing(
    session: SparkSession,
    place: Place,
    undisturbed: Counter[tuple[object, ...]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    def everything() -> set[tuple[Path, int]]:
        return {(path, path.stat().st_mtime_ns) for path in place.state.path.rglob("*")}

    before = everything()
    aside = tmp_path_factory.mktemp("rehearsals")
    assert rehearse(session, place.state, place.network, place.fragment, OPTIONS, aside)
    assert not any(aside.iterdir())
    assert everything() == before
    node = place.node(session)
    place.start(node, 1)
    await_that(place.is_finished, node)
    node.stop()
    assert place.rows() == undisturbed


PASSING = "Python worker failed to connect back."


class Troubled:
    """A sink's write that fails now and then for a reason that may pass."""

    def __init__(self, times: int) -> None:
        self._left = times
        self._write = ChannelSink.write

    def __call__(self, sink: ChannelSink, rows: DataFrame, batch: Batch) -> int:
        count = self._write(sink, rows, batch)
        if batch.id % 2 and self._left:
            self._left -= 1
            raise RuntimeError(PASSING)
        return count

    @property
    def is_over(self) -> bool:
        return not self._left


def started_in_trouble(
    session: SparkSession, place: Place, monkeypatch: pytest.MonkeyPatch, times: int
) -> tuple[Node, Troubled]:
    trouble = Troubled(times)
    monkeypatch.setattr(ChannelSink, "write", lambda *given: trouble(*given))
    node = place.node(session)
    place.start(node, 1)
    return node, trouble


def test_what_may_pass_is_tried_again(
    session: SparkSession,
    place: Place,
    undisturbed: Counter[tuple[object, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node, trouble = started_in_trouble(session, place, monkeypatch, times=2)
    await_that(place.is_finished, node)
    assert trouble.is_over
    assert place.rows() == undisturbed
    node.stop()


def test_what_cannot_be_started_again_does_not_count_as_running(
    session: SparkSession,
    place: Place,
    undisturbed: Counter[tuple[object, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node, trouble = started_in_trouble(session, place, monkeypatch, times=1)
    await_that(lambda: trouble.is_over)
    with monkeypatch.context() as patch:
        patch.setattr(FragmentFolder, "take_over", no_room)
        for _ in range(2):
            with pytest.raises(OSError, match="no room"):
                until(lambda: node.failure("sums"), 30)
    await_that(place.is_finished, node)
    assert place.rows() == undisturbed
    node.stop()


def no_room(folder: FragmentFolder, epoch: int) -> Path:
    raise OSError("no room")


@pytest.mark.parametrize("is_armed", [True, False])
def test_a_coming_owner_has_the_state_before_its_turn(
    session: SparkSession, place: Place, is_armed: bool
) -> None:
    former, node = place.node(session, 500), place.node(session, 500)
    place.start(former, 1)
    await_that(lambda: place.batches() > 2, former)
    former.release("sums", patience_s=10)
    assert not place.is_finished()
    if is_armed:
        node.arm(place.network, place.fragment, 2)
    place.start(node, 2)
    await_that(lambda: node.has_progressed("sums"), node)
    (state,) = node.reports("sums")[0]["stateOperators"]  # type: ignore[misc,attr-defined]
    found = dict(state["customMetrics"])
    # In every partition two operators ask for it; who does not have it has it read for the first.
    partitions = found["loadedMapCacheMissCount"]
    assert found["loadedMapCacheHitCount"] == (2 if is_armed else 1) * partitions > 0
    node.stop()
