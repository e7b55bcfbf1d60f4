"""Light fragments in nodes: moved, taken away, failing alone, failing to deliver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event, current_thread

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from one_fragment import DEPLOYMENT, OPTIONS, Place, await_that, with_small_batches
from pyspark.sql import SparkSession

from penstock.control import worker as control_worker
from penstock.control.system import Unit
from penstock.control.worker import SparkWorker
from penstock.errors import RunError
from penstock.kernels.state_shape import StateShape
from penstock.lang.deployment import parse_deployment
from penstock.place.fuse import fuse
from penstock.spark.bundles.job import RoundJob
from penstock.spark.node import Node, NodeOptions
from penstock.spark.sinks.channel_sink import ChannelSink
from penstock.spark.state import StateFolder

Rows = Counter[tuple[object, ...]]
# Longer than the half hour between two readings, so that one that is left out divides sessions.
SESSIONS = DEPLOYMENT.replace("window.start", "session_window.start").replace(
    "GROUP BY home, window(ts, '2 hours', '1 hour')",
    "WHERE kwh > 0.3 GROUP BY home, session_window(ts, '45 minutes')",
)
LIGHT = replace(OPTIONS, engine="light")


class LightPlace(Place):
    """A fragment run light by one node after another."""

    def node(self, session: SparkSession, round_ms: int = OPTIONS.trigger_ms) -> Node:
        return Node(session, self.state, replace(LIGHT, trigger_ms=round_ms))


@pytest.fixture(scope="module")
def deployment(request: pytest.FixtureRequest) -> str:
    """What is run: windows, unless a test asks for sessions as well."""
    return getattr(request, "param", DEPLOYMENT)


with_sessions_too = pytest.mark.parametrize(
    "deployment", [DEPLOYMENT, SESSIONS], ids=["windows", "sessions"], indirect=True
)


@pytest.fixture(scope="module")
def undisturbed(
    session: SparkSession, tmp_path_factory: pytest.TempPathFactory, deployment: str
) -> Rows:
    """What the native engine gives."""
    folder = tmp_path_factory.mktemp("native")
    place = Place(folder, parse_deployment(deployment, "d.yaml", folder).network)
    with_small_batches(place, session)
    node = place.node(session)
    place.start(node, 1)
    await_that(place.is_finished, node)
    node.stop()
    return place.rows()


@pytest.fixture
def place(session: SparkSession, tmp_path: Path, deployment: str) -> LightPlace:
    made = LightPlace(tmp_path, parse_deployment(deployment, "d.yaml", tmp_path).network)
    with_small_batches(made, session)
    return made


def go_on_a_little(place: Place, node: Node) -> None:
    before = place.batches()
    await_that(lambda: place.batches() > before or place.is_finished(), node)


@with_sessions_too
def test_moves_back_and_forth_change_nothing(
    session: SparkSession, place: LightPlace, undisturbed: Rows
) -> None:
    nodes = [place.node(session), place.node(session)]
    moves = 0
    place.start(nodes[0], 1)
    while not place.is_finished():
        source, target = nodes[moves % 2], nodes[1 - moves % 2]
        go_on_a_little(place, source)
        if place.is_finished():
            break
        target.arm(place.network, place.fragment, moves + 2)
        source.release("sums", patience_s=10)
        place.start(target, moves + 2)
        moves += 1
    await_that(place.is_finished)
    status = nodes[moves % 2].status("sums")
    for node in nodes:
        node.stop()
    assert moves >= 3
    assert place.rows() == undisturbed
    assert (status.rows_in, status.rows_out) == (40 * 48 * 2, sum(undisturbed.values()))
    assert status.rows_in_before > 0


@with_sessions_too
def test_a_former_owner_that_wakes_up_is_told_that_it_was_replaced(
    session: SparkSession, place: LightPlace, undisturbed: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    former, owner = place.node(session), place.node(session)
    run, asleep, woken = RoundJob.run, Event(), Event()

    def sleep_on_it(self: RoundJob, files: Sequence[Path], count: int) -> object:
        computed = run(self, files, count)
        if place.batches() and current_thread() is former._light._thread:
            asleep.set()
            woken.wait()
        return computed

    monkeypatch.setattr(RoundJob, "run", sleep_on_it)
    place.start(former, 1)
    await_that(asleep.is_set, former)
    place.start(owner, 2)
    await_that(lambda: owner.batches("sums"), owner)
    seen = place.batches()
    woken.set()
    await_that(lambda: former.failure("sums") is not None)
    assert "newer owner (epoch 2, this one has 1)" in str(former.failure("sums"))
    await_that(place.is_finished, owner)
    for node in (former, owner):
        node.stop()
    assert place.batches() > seen
    assert place.rows() == undisturbed


@with_sessions_too
def test_another_process_goes_on_by_the_same_epoch(
    session: SparkSession, place: LightPlace, undisturbed: Rows
) -> None:
    for _ in range(3):
        node = place.node(session)
        place.start(node, 1)
        go_on_a_little(place, node)
        node.stop()
    node = place.node(session)
    place.start(node, 1)
    await_that(place.is_finished, node)
    node.stop()
    assert place.rows() == undisturbed


def test_what_could_not_be_delivered_is_by_the_next_owner(
    session: SparkSession, place: LightPlace, undisturbed: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = place.node(session)
    with monkeypatch.context() as patch:
        struck: list[int] = []

        def refuse(self: ChannelSink, rows: object, batch: object) -> int:
            struck.append(1)
            raise RunError("the disk is gone", hint="Mend it.")

        place.start(failing, 1)
        go_on_a_little(place, failing)
        patch.setattr(ChannelSink, "write", refuse)
        await_that(lambda: failing.failure("sums") is not None)
        assert struck and "the disk is gone" in str(failing.failure("sums"))
        failing.stop()
    node = place.node(session)
    place.start(node, 2)
    await_that(place.is_finished, node)
    node.stop()
    assert place.rows() == undisturbed


def test_logs_of_ended_processes_are_removed(session: SparkSession, place: LightPlace) -> None:
    for epoch in (1, 2, 3):
        node = place.node(session)
        place.start(node, epoch)
        go_on_a_little(place, node)
        node.stop()
    node = place.node(session)
    place.start(node, 4)
    await_that(lambda: len(list(place.state.bundles.iterdir())) <= 2, node)
    await_that(place.is_finished, node)
    node.stop()


FAILING = """
streams:
  s: {source: {directory: in, format: csv}, schema: "ts timestamp, v bigint", event_time: ts, lateness: 0s}
queries:
  sums: {sql: "SELECT window.end AS at, sum(v) AS v FROM s GROUP BY window(ts, '1 minute')", to: {files: sums}}
  counts: {sql: "SELECT window.end AS at, count(*) AS n FROM s GROUP BY window(ts, '1 minute')", to: {files: counts}}
"""  # noqa: E501


def test_one_that_cannot_be_computed_fails_alone(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RoundJob.run

    def fail(self: RoundJob, files: Sequence[Path], count: int) -> dict[StateShape, list[pa.Table]]:
        if "sums" in {plan.name for plan in self._plans.values()}:
            raise ValueError("overflow")
        return run(self, files, count)

    monkeypatch.setattr(RoundJob, "run", fail)
    (tmp_path / "in").mkdir()
    rows = "".join(f"2026-01-01T00:00:{second:02d}Z,{second}\n" for second in range(4))
    (tmp_path / "in" / "a.csv").write_text("ts,v\n" + rows + "2026-01-02T00:00:00Z,1\n")
    network = parse_deployment(FAILING, "d.yaml", tmp_path).network
    state = StateFolder(tmp_path / "state")
    state.prepare()
    node = Node(session, state, NodeOptions(trigger_ms=20))
    for fragment in fuse(network):
        state.channel("s").register(fragment.name)
        node.start_fragment(network, fragment, 1)
    node.start_intake(network.stream("s"), 1)
    await_that(lambda: node.failure("sums") is not None)
    assert "overflow" in str(node.failure("sums"))
    await_that(lambda: (tmp_path / "counts").exists() and node.status("counts").rows_out >= 1)
    assert node.failure("counts") is None
    node.stop()
    assert pq.read_table(tmp_path / "counts")["n"].to_pylist()[0] == 4


def test_the_first_on_a_node_is_rehearsed(
    session: SparkSession,
    place: LightPlace,
    undisturbed: Rows,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    jobs: list[Sequence[Path]] = []
    run = RoundJob.run

    def counted(
        job: RoundJob, files: Sequence[Path], count: int
    ) -> dict[StateShape, list[pa.Table]]:
        jobs.append(files)
        return run(job, files, count)

    monkeypatch.setattr(RoundJob, "run", counted)
    worker = SparkWorker("a", session, place.state, LIGHT)
    unit = Unit("sums", 1, place.network, place.fragment)
    before = set((place.state.path / "channels").rglob("*"))
    worker.warm(unit, 1)
    assert jobs, "Spark's Python workers are up before its turn"
    assert set((place.state.path / "channels").rglob("*")) == before
    worker.start(unit, 1)
    await_that(place.is_finished)
    assert place.rows() == undisturbed
    rehearsed_and_run = len(jobs)
    worker.warm(unit, 2)
    assert len(jobs) == rehearsed_and_run, "a node that runs light fragments is warm"
    worker.release("sums")
    worker.warm(unit, 2)
    assert len(jobs) == rehearsed_and_run, "and stays so for a while after they have left"
    monkeypatch.setattr(control_worker, "_WORKERS_STAY_S", 0.0)
    worker.warm(unit, 2)
    assert 0 < len(jobs) - rehearsed_and_run <= 2, "only the workers are to be started again"
