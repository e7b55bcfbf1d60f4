"""A Kafka cluster for tests: librdkafka's mock brokers, inside this process.

Other processes reach it by its address like any other cluster. It makes topics of four
partitions when they are first written to and keeps about 5 MB of each partition. What it lacks:
it stores no offsets that are committed in transactions, shows aborted records to everyone, and
lets a second producer with the same transactional id in without shutting out the first.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition


class MockCluster:
    """Brokers that live until :meth:`close`, or for a ``with`` block."""

    def __init__(self, brokers: int = 1) -> None:
        quiet: dict[str, object] = {"log_level": 2, "linger.ms": 5}
        mock = {"bootstrap.servers": "mock", "test.mock.num.brokers": brokers}
        self._host: Producer | None = Producer(quiet | mock)
        nodes = self._host.list_topics(timeout=10).brokers.values()
        self.address = ",".join(f"{node.host}:{node.port}" for node in nodes)

    def produce(self, topic: str, values: Iterable[str | bytes | None], partition: int = 0) -> None:
        """Appends records to a partition and waits until they are there."""
        assert self._host is not None
        for value in values:
            while True:
                try:
                    self._host.produce(topic, value, partition=partition)
                    break
                except BufferError:
                    self._host.poll(0.1)
        assert self._host.flush(30) == 0

    def records(self, topic: str) -> list[Message]:
        """Every committed record of the topic, by partition and offset."""
        settings = {
            "bootstrap.servers": self.address,
            "group.id": "mock-reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "log_level": 2,
        }
        consumer = Consumer(settings)
        try:
            found = _to_the_end(consumer, topic)
        finally:
            consumer.close()
        return sorted(found, key=lambda one: (one.partition(), one.offset()))

    def close(self) -> None:
        """Ends the brokers; their topics are gone."""
        self._host = None

    def __enter__(self) -> MockCluster:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _to_the_end(consumer: Consumer, topic: str) -> list[Message]:
    partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    found: list[Message] = []
    ends = 0
    while ends < len(partitions):
        for message in consumer.consume(1_000, 0.1):
            error = message.error()
            if error is None:
                found.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                ends += 1
            else:
                raise KafkaException(error)
    return found
