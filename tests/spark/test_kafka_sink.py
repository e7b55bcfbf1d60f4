"""Results into Kafka, against librdkafka's mock cluster."""

from __future__ import annotations

import sys
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

sys.path.insert(0, str(Path(__file__).parent))

from kafka_topics import NOON, rows_in, table, write, written

from penstock.channels import kafka_cluster
from penstock.errors import RunError, UnreachableError
from penstock.model.sources import KafkaSink
from penstock.spark.sinks import kafka_sink
from penstock.spark.sinks.kafka_sink import RecordSink, json_values

from mock_cluster import MockCluster


class TestWriting:
    def test_rows_come_back_as_they_went(self, cluster: MockCluster, topic: str) -> None:
        schema = "a boolean, b int, c bigint, d double, e string, f timestamp, g date, h binary"
        moment = datetime(2026, 5, 1, 12, 30, 0, 123_456, tzinfo=UTC)
        rows = [
            (True, 1, 2**62, 0.1, 'é\n"', moment, date(2026, 5, 1), b"bytes"),
            (False, -1, -1, float("inf"), "", NOON, date(1969, 1, 1), b""),
            (None,) * 8,
        ]
        arrow = [pa.bool_(), pa.int32(), pa.int64(), pa.float64(), pa.string()]
        arrow += [pa.timestamp("us", "UTC"), pa.date32(), pa.binary()]
        columns = [
            pa.array(one, to) for one, to in zip(zip(*rows, strict=True), arrow, strict=True)
        ]
        whole = pa.table(columns, names=list("abcdefgh"))
        sink = RecordSink(KafkaSink(cluster.address, topic), topic)
        assert write(sink, whole, 0) == 3
        back = rows_in(cluster, topic, schema)
        assert sorted(back, key=str) == sorted(whole.to_pylist(), key=str)

    def test_a_batch_offered_again_is_there_once(self, cluster: MockCluster, topic: str) -> None:
        where = KafkaSink(cluster.address, topic)
        sink = RecordSink(where, topic)
        assert [write(sink, table(1, 2, 3), 0) for _ in range(2)] == [3, 3]
        write(sink, table(4), 1)
        restarted = RecordSink(where, topic)
        assert write(restarted, table(4), 1) == 1
        write(restarted, table(5), 2)
        assert written(cluster, topic) == [1, 2, 3, 4, 5]

    def test_writers_of_one_topic_do_not_mix(self, cluster: MockCluster, topic: str) -> None:
        where = KafkaSink(cluster.address, topic)
        write(RecordSink(where, f"{topic}-a"), table(*range(3_000)), 7)
        write(RecordSink(where, f"{topic}-b"), table(-1), 0)
        write(RecordSink(where, f"{topic}-a"), table(-2), 7)
        assert written(cluster, topic)[:2] == [-1, 0]

    def test_the_committed_offset_of_the_group_counts(
        self, cluster: MockCluster, topic: str
    ) -> None:
        cluster.produce(topic, ['{"kwh": 0}'])
        group = Consumer({"bootstrap.servers": cluster.address, "group.id": f"penstock-{topic}"})
        group.commit(offsets=[TopicPartition(topic, 0, 5)], asynchronous=False)
        group.close()
        sink = RecordSink(KafkaSink(cluster.address, topic), topic)
        write(sink, table(1), 4)
        write(sink, table(2), 5)
        assert written(cluster, topic) == [0, 2]

    def test_a_failure_leaves_nothing(
        self, cluster: MockCluster, topic: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # The mock cluster shows records of aborted transactions too (real brokers hide them from
        # readers of committed records): they must still be queued here when the third is refused.
        patient = kafka_sink._PRODUCER | {"linger.ms": 60_000}
        monkeypatch.setattr(kafka_sink, "_PRODUCER", patient)
        sink = RecordSink(KafkaSink(cluster.address, topic), topic)
        write(sink, pa.table({"kwh": ["0"]}), 0)
        too_large = pa.table({"kwh": ["1", "2", "x" * 2_000_000]})
        with pytest.raises(
            RunError, match=r"refused rows .* written whole or not at all, and once"
        ):
            write(sink, too_large, 1)
        assert len(cluster.records(topic)) == 1
        write(sink, pa.table({"kwh": ["1", "2"]}), 1)
        assert len(cluster.records(topic)) == 3

    def test_batches_larger_than_the_queue(
        self, cluster: MockCluster, topic: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        small = kafka_sink._PRODUCER | {"queue.buffering.max.messages": 100, "linger.ms": 1}
        monkeypatch.setattr(kafka_sink, "_PRODUCER", small)
        sink = RecordSink(KafkaSink(cluster.address, topic), topic)
        write(sink, table(*range(5_000)), 0)
        assert written(cluster, topic) == list(range(5_000))

    def test_a_batch_without_rows_does_not_even_connect(self) -> None:
        assert write(RecordSink(KafkaSink("127.0.0.1:1", "t"), "w"), table(), 0) == 0

    def test_brokers_that_do_not_answer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(kafka_sink, "TIMEOUT_S", 0.5)
        with pytest.raises(UnreachableError, match="no Kafka broker answers"):
            write(RecordSink(KafkaSink("127.0.0.1:1", "t"), "w"), table(1), 0)

    def test_bytes_that_are_no_text(self) -> None:
        with pytest.raises(RunError, match="column raw holds bytes"):
            list(json_values(pa.table({"raw": [b"\xff"]})))


class FencedProducer(Producer):
    """A producer whose commits are refused because another one took its place."""

    aborted = 0

    def commit_transaction(self, *_: object) -> None:
        raise KafkaException(KafkaError(KafkaError._FENCED, "fenced", fatal=True))

    def abort_transaction(self, *given: float) -> None:
        FencedProducer.aborted += 1
        super().abort_transaction(*given)


def test_a_writer_shut_out_by_another_stays_out(
    cluster: MockCluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_cluster, "Producer", FencedProducer)
    sink = RecordSink(KafkaSink(cluster.address, topic), topic)
    for _ in range(2):
        with pytest.raises(RunError, match=f"another process writes to Kafka topic {topic}"):
            write(sink, table(1), 0)
    assert FencedProducer.aborted == 1
