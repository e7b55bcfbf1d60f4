"""A node that dies at every step of a hand-over, as its source and as its target.

Dying is an exception, raised where a kill would strike, and a session that forgets
the node's queries; what is on disk stays as it was at that moment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from threading import Event
from typing import Any

import pytest
from one_fragment import Place, await_that
from pyspark.sql import SparkSession

from penstock.channels.writer import Writer
from penstock.spark import checkpoints, fragment_run
from penstock.spark.fragment_folder import FragmentFolder
from penstock.spark.fragment_run import FragmentRun
from penstock.spark.node import Node
from penstock.spark.sinks.channel_sink import ChannelSink

Rows = Counter[tuple[object, ...]]
_LONG_MS = 1_500


class KilledError(Exception):
    """The process ends here."""


class Kill:
    """Ends whoever comes to a step, once: as its ``turn``-th call, before or after it is done."""

    def __init__(self, owner: object, name: str, *, after: bool, turn: int = 1) -> None:
        self.owner, self.name = owner, name
        self.struck = Event()
        self._after, self._turn = after, turn

    def lie_in_wait(self, patch: pytest.MonkeyPatch) -> None:
        real = getattr(self.owner, self.name)
        calls: list[None] = []

        def call(*given: Any, **also: Any) -> Any:
            calls.append(None)
            is_it = len(calls) == self._turn
            if is_it and not self._after:
                self._strike()
            done = real(*given, **also)
            if is_it:
                self._strike()
            return done

        patch.setattr(self.owner, self.name, call)

    def _strike(self) -> None:
        self.struck.set()
        raise KilledError


def step(owner: object, name: str, *, after: bool = True, turn: int = 1) -> Callable[[], Kill]:
    return lambda: Kill(owner, name, after=after, turn=turn)


# In the order in which a target comes to them.
TARGET_STEPS = {
    "before it claims": step(FragmentFolder, "claim", after=False),
    "claimed": step(FragmentFolder, "claim"),
    "channel claimed": step(Writer, "_claim"),
    "checkpoint linked, not marked": step(checkpoints, "_fill"),
    "taken over": step(FragmentFolder, "take_over"),
    "about to start": step(Node, "_start", after=False),
    "started": step(Node, "_start"),
    "first batch planned": step(fragment_run, "seal", after=False),
    "rows of the first batch written": step(ChannelSink, "_commit", after=False),
    "first batch about to be visible": step(Writer, "commit", after=False),
    "first batch visible": step(Writer, "commit"),
    "first batch counted": step(FragmentFolder, "add_rows_out"),
}
SOURCE_STEPS = {
    "rows written": step(ChannelSink, "_commit", after=False, turn=2),
    "batch visible": step(Writer, "commit", turn=2),
    "told to stop": step(Node, "release", after=False),
    "batch finished, not stopped": step(FragmentRun, "stop", after=False),
    "stopped, nobody told": step(FragmentRun, "stop"),
}


@pytest.fixture(autouse=True)
def nothing_left(session: SparkSession) -> Iterator[None]:
    """A test that fails leaves no query to those after it."""
    yield
    for query in session.streams.active:
        query.stop()


def gone(node: Node, session: SparkSession, epoch: int) -> None:
    """What is left of a node whose process has ended: nothing runs any more."""
    for running in (*node._running.values(), *node._armed.values()):
        running.closing.set()
        running.turn.set()
    for query in session.streams.active:
        if query.name == f"sums, owner {epoch}":
            query.stop()


def finished_by(place: Place, session: SparkSession, epoch: int) -> Rows:
    node = place.node(session)
    place.start(node, epoch)
    await_that(place.is_finished, node)
    node.stop()
    return place.rows()


def started(place: Place, node: Node, epoch: int) -> None:
    try:
        place.start(node, epoch)
    except KilledError:
        return


@pytest.mark.parametrize("name", TARGET_STEPS)
def test_the_target_dies(
    name: str,
    session: SparkSession,
    place: Place,
    undisturbed: Rows,
) -> None:
    kill, node = TARGET_STEPS[name](), place.node(session)
    with pytest.MonkeyPatch.context() as patch:
        kill.lie_in_wait(patch)
        started(place, node, 2)
        await_that(kill.struck.is_set)
        gone(node, session, 2)
    assert finished_by(place, session, 3) == undisturbed


@pytest.mark.parametrize("name", SOURCE_STEPS)
def test_the_source_dies(
    name: str,
    session: SparkSession,
    place: Place,
    undisturbed: Rows,
) -> None:
    kill = SOURCE_STEPS[name]()
    source, target = place.node(session, _LONG_MS), place.node(session)
    seen = place.batches()
    with pytest.MonkeyPatch.context() as patch:
        kill.lie_in_wait(patch)
        place.start(source, 2)
        await_that(lambda: place.batches() > seen or kill.struck.is_set())
        target.arm(place.network, place.fragment, 3)
        if kill.owner in (ChannelSink, Writer):
            await_that(kill.struck.is_set)
        else:
            with pytest.raises(KilledError):
                source.release("sums", patience_s=10)
                await_that(kill.struck.is_set)
                raise KilledError
        gone(source, session, 2)
    assert kill.struck.is_set()
    place.start(target, 3)
    await_that(place.is_finished, target)
    target.stop()
    assert place.rows() == undisturbed


def test_a_target_that_dies_armed_leaves_its_place_to_another(
    session: SparkSession, place: Place, undisturbed: Rows
) -> None:
    source = place.node(session, _LONG_MS)
    target, another = place.node(session), place.node(session)
    seen = place.batches()
    place.start(source, 2)
    await_that(lambda: place.batches() > seen, source)
    target.arm(place.network, place.fragment, 3)
    assert set(target._armed) == {"sums"}
    gone(target, session, 3)
    seen = place.batches()
    await_that(lambda: place.batches() > seen, source)
    another.arm(place.network, place.fragment, 3)
    source.release("sums", patience_s=10)
    assert not place.is_finished()
    place.start(another, 3)
    await_that(place.is_finished, another)
    another.stop()
    assert place.rows() == undisturbed


def test_what_is_armed_for_one_move_outlives_another(
    session: SparkSession, place: Place, undisturbed: Rows
) -> None:
    """A restart of the owner cleans up after itself, and leaves alone what is ahead of it."""
    late = place.node(session)
    late.arm(place.network, place.fragment, 4)
    owner = place.node(session, _LONG_MS)
    seen = place.batches()
    place.start(owner, 3)
    await_that(lambda: place.batches() > seen, owner)
    owner.release("sums", patience_s=10)
    assert not place.is_finished()
    place.start(late, 4)
    await_that(place.is_finished, late)
    late.stop()
    assert place.rows() == undisturbed
