"""Whole queries from topic to topic, against librdkafka's mock cluster."""

from __future__ import annotations

import json
import sys
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).parent))

from kafka_topics import NOON, expected, fill, value, written
from one_fragment import await_that

from penstock.channels.ingest import kafka_ingest
from penstock.channels.kafka_cluster import KafkaCluster
from penstock.errors import RunError
from penstock.kernels.engine_choice import light_fragments
from penstock.lang.deployment import parse_deployment
from penstock.model.network import Network
from penstock.place.fuse import fuse
from penstock.spark.checkpoint_files import seal
from penstock.spark.checkpoints import newest
from penstock.spark.engine import Engine
from penstock.spark.node import Node, NodeOptions
from penstock.spark.sources.channel_reader import ChannelReader
from penstock.spark.state import StateFolder
from waiting import until

from answers.oracle import deployed, run
from mock_cluster import MockCluster

OPTIONS = NodeOptions(trigger_ms=20)

READINGS = """
streams:
  readings:
    source: {{kafka: "{address}", topic: {topic}, finished: {finished}}}
    schema: ts timestamp, home string, kwh double
    event_time: ts
    lateness: 10s
queries:
"""
COPIED = """
  high:
    sql: SELECT ts, home, kwh FROM readings WHERE kwh >= 1
    to: {{kafka: "{address}", topic: {topic}-out}}
"""
KEPT = """
  NAME:
    sql: SELECT window.start AS since, count(*) AS n FROM readings GROUP BY window(ts, '1 minute')
    to: memory
"""
COUNTED = """
  per_minute: |
    SELECT window.start AS since, count(*) AS n FROM readings GROUP BY window(ts, '1 minute')
  per_home: |
    SELECT home, window.start AS since, count(*) AS n, sum(kwh) AS kwh
    FROM readings GROUP BY home, window(ts, '1 minute')
  heavy: SELECT ts, home FROM readings WHERE kwh > 100
"""


def text_of(cluster: MockCluster, topic: str, queries: str, finished: bool = False) -> str:
    given = {"address": cluster.address, "topic": topic, "finished": str(finished).lower()}
    return (READINGS + queries).format(**given)


def network_of(cluster: MockCluster, topic: str, queries: str) -> Network:
    return parse_deployment(text_of(cluster, topic, queries), "t.yaml", Path()).network


class TestQueries:
    def test_one_client_reads_a_topic_for_all_of_them_and_they_are_light(
        self,
        session: SparkSession,
        cluster: MockCluster,
        topic: str,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        fill(cluster, topic, 600)
        cluster.produce(topic, [value(0), "oops"], 2)
        network = deployed(text_of(cluster, topic, COUNTED, finished=True), tmp_path)
        assert light_fragments(network, fuse(network)) == {"per_minute", "per_home"}
        clients, consumer = [], KafkaCluster.consumer

        def counted(self: KafkaCluster, *given: str) -> object:
            clients.append(self.brokers)
            return consumer(self, *given)

        monkeypatch.setattr(KafkaCluster, "consumer", counted)
        outcome = run(session, network, tmp_path / "light")
        assert clients == [cluster.address]
        assert outcome.set_aside["readings"] == {"malformed": 1, "late": 1}
        noon = NOON.replace(tzinfo=None)
        minutes = [(noon + timedelta(minutes=k), 60) for k in range(10)]
        assert sorted(outcome.rows("per_minute")) == minutes
        homes = Counter((f"h{k % 7}", noon + timedelta(minutes=k // 60)) for k in range(600))
        assert {row[:2]: row[2] for row in outcome.rows("per_home")} == homes
        assert len(outcome.rows("heavy")) == 199
        native = run(session, network, tmp_path / "native", chosen="native")
        for query in ("per_minute", "per_home", "heavy"):
            assert sorted(native.rows(query)) == sorted(outcome.rows(query))

    def test_stopped_and_started_again_from_topic_to_topic(
        self,
        session: SparkSession,
        cluster: MockCluster,
        topic: str,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(kafka_ingest, "_ROWS_PER_COMMIT", 900)
        network = network_of(cluster, topic, COPIED)
        fill(cluster, topic, 5_000)
        # The first two are stopped on their way.
        for wanted in (1, 2_000, 4_996):
            engine = Engine(session, network, StateFolder(tmp_path), OPTIONS)
            engine.start()
            await_written(cluster, f"{topic}-out", wanted, engine)
            engine.stop()
        assert written(cluster, f"{topic}-out") == expected(5_000)[4:]

    def test_an_intake_moves_to_another_node_while_queries_go_on(
        self,
        session: SparkSession,
        cluster: MockCluster,
        topic: str,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(kafka_ingest, "_ROWS_PER_COMMIT", 300)
        fill(cluster, topic, 3_000)
        network = network_of(cluster, topic, COPIED)
        stream, (fragment,) = network.stream("readings"), fuse(network)
        state = StateFolder(tmp_path)
        state.prepare()
        state.channel("readings").register("high")
        here, there = (Node(session, state, OPTIONS) for _ in range(2))
        try:
            here.start_intake(stream, 1)
            here.start_fragment(network, fragment, 1)
            await_that(lambda: state.channel("readings").last() is not None, here)
            # Without a word to the first one, as after a failure.
            there.start_intake(stream, 2)
            until(lambda: here.failure("readings") is not None, 60)
            assert "belongs to a newer writer" in str(here.failure("readings"))
            cluster.produce(topic, (value(k) for k in range(3_000, 3_500)), 3)
            await_written(cluster, f"{topic}-out", 3_496)
        finally:
            here.stop()
            there.stop()
        assert written(cluster, f"{topic}-out") == expected(3_500)[4:]

    def test_one_that_is_added_later_begins_where_the_stream_is(
        self, session: SparkSession, cluster: MockCluster, topic: str, tmp_path: Path
    ) -> None:
        """Topics are not read again: records may be gone by then."""
        fill(cluster, topic, 600)
        first = network_of(cluster, topic, KEPT.replace("NAME", "a"))
        engine = Engine(session, first, StateFolder(tmp_path), OPTIONS)
        engine.start()
        channel = StateFolder(tmp_path).channel("readings")
        until(lambda: any(one.latest for one in channel.kept()), 60, check=engine.check)
        engine.stop()
        queries = KEPT.replace("NAME", "a") + KEPT.replace("NAME", "b")
        both = network_of(cluster, topic, queries)
        fill_later = [value(k) for k in range(600, 780)]
        for partition in range(4):
            cluster.produce(topic, [*fill_later[partition::4], value(900)], partition)
        engine = Engine(session, both, StateFolder(tmp_path), OPTIONS)
        engine.start()
        late = next(fragment for fragment in engine.fragments if fragment.name == "b")
        assert late.beginning.start == "now"
        assert late.beginning.since_us == int((NOON.timestamp() + 599) * 1e6)

        def minutes(query: str) -> set[tuple[int, int]]:
            sink = engine.collected.get(query)
            table = None if sink is None else sink.table()
            rows = [] if table is None else table.to_pylist()
            return {(int((row["since"] - NOON).total_seconds()) // 60, row["n"]) for row in rows}

        try:
            until(lambda: (12, 60) in minutes("a") and (12, 60) in minutes("b"), 60)
        finally:
            engine.stop()
        assert minutes("b") == {(10, 60), (11, 60), (12, 60)}

    def test_a_state_of_the_time_when_queries_read_topics_themselves_is_refused(
        self, session: SparkSession, cluster: MockCluster, topic: str, tmp_path: Path
    ) -> None:
        fill(cluster, topic, 30)
        network = network_of(cluster, topic, COPIED)
        state = StateFolder(tmp_path)
        engine = Engine(session, network, state, OPTIONS)
        engine.start()
        await_written(cluster, f"{topic}-out", 1, engine)
        engine.stop()
        checkpoint = newest(state.fragment("high").path)
        assert checkpoint is not None
        for path in (checkpoint / "offsets").iterdir():
            if path.name.isdigit():
                head = path.read_text().splitlines()[:2]
                path.write_text("\n".join([*head, json.dumps({"at": {"0": 10}})]))
                seal(checkpoint, int(path.name))
        engine = Engine(session, network, state, OPTIONS)
        engine.start()
        told = "high was begun by a version of Penstock in which queries read Kafka themselves"
        with pytest.raises(RunError, match=f"{told}.*--fresh, or drop and submit it again"):
            engine.wait(60)
        engine.stop()


def test_an_offset_of_a_channel_is_taken_as_it_is(tmp_path: Path) -> None:
    reader = ChannelReader(StateFolder(tmp_path).channel("readings"), "high", None, tmp_path)
    assert reader.restored({"next": 3}) == {"next": 3}
    with pytest.raises(RunError, match="its place in readings is not known"):
        reader.restored({"at": {"0": 10}})


def await_written(
    cluster: MockCluster, topic: str, rows: int, engine: Engine | None = None
) -> None:
    """Waits until so many rows are in a topic, which may not be there yet."""
    consumer = KafkaCluster(cluster.address).consumer()

    def count() -> int:
        known = consumer.list_topics(timeout=10).topics
        return len(written(cluster, topic)) if topic in known else 0

    try:
        until(lambda: count() >= rows, 120, count, engine.check if engine else lambda: None)
    finally:
        consumer.close()


CLICKS = """
streams:
  clicks:
    source: {{kafka: "{address}", topic: {topic}, finished: true}}
    schema: ms bigint, who string, price double
    columns: {{"@ms": ms, user.name: who}}
    event_time: timestamp_millis(ms) AS at
    lateness: 1min
queries:
  per_user: |
    SELECT who, window.start AS since, count(*) AS n
    FROM clicks GROUP BY who, window(at, '1 minute')
"""


def test_names_paths_and_computed_times_of_a_topic(
    session: SparkSession, cluster: MockCluster, topic: str, tmp_path: Path
) -> None:
    rows = [(0, "ann"), (1_000, "bob"), (59_999, "ann"), (60_000, "ann")]
    lines = [json.dumps({"@ms": ms, "user": {"name": who}, "price": 1}) for ms, who in rows]
    cluster.produce(topic, [*lines, '{"user": {"name": "eve"}}'], 0)
    text = CLICKS.format(address=cluster.address, topic=topic)
    outcome = run(session, deployed(text, tmp_path), tmp_path / "state")
    since = datetime(1970, 1, 1)
    assert sorted(outcome.rows("per_user")) == [
        ("ann", since, 2),
        ("ann", since + timedelta(minutes=1), 1),
        ("bob", since, 1),
    ]
    assert outcome.set_aside["clicks"]["malformed"] == 1
    (letter,) = (tmp_path / "state").glob("dead_letters/clicks/*.jsonl")
    assert json.loads(letter.read_text())["reason"] == (
        "event time: timestamp_millis(`ms`) is null for None"
    )
