"""What the Kafka source and sink share: exact reading and error text.

At the end, Spark's own connector, for where its jar is configured.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from penstock.errors import (
    InputError,
    PenstockError,
    RunError,
    UnreachableError,
    listed,
    suggestion,
)
from penstock.model.types import DataType
from penstock.spark.kafka_cluster import Cluster
from penstock.spark.sources.spec import ReaderSpec

TIMEOUT_S = 10.0
"""How long a broker may stay silent before that is an error."""

_CONSUME_AT_ONCE = 10_000
_CONSUME_WAIT_S = 0.1
_WATERMARK_THREADS = 8

_PASSING = {KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT}
_OUT_OF_REACH = _PASSING | {KafkaError._RESOLVE, KafkaError._AUTHENTICATION, KafkaError._SSL}


@dataclass(frozen=True)
class Span:
    """Records of one partition from offset ``start`` up to, not including, ``stop``."""

    partition: int
    start: int
    stop: int

    @property
    def size(self) -> int:
        """How many offsets it has: no fewer than records."""
        return self.stop - self.start


@dataclass(frozen=True)
class Marks:
    """The first offset a partition still has, and the one after its last decided record."""

    low: int
    high: int


def cluster_of(spec: ReaderSpec) -> Cluster:
    """The cluster that a reader reads from."""
    client = spec.origin.get("client")
    return Cluster(str(spec.origin["brokers"]), None if client is None else Path(str(client)))


@contextmanager
def reading(cluster: Cluster) -> Iterator[Consumer]:
    """A consumer, closed at the end.

    One is opened for each use: it costs 4 ms, and keeping it would save 3 of them while its
    threads and connections stay in every idle worker.
    """
    consumer = cluster.consumer()
    try:
        yield consumer
    finally:
        consumer.close()


def partitions_of(consumer: Consumer, brokers: str, topic: str) -> list[int]:
    """The partitions of a topic; raises with the topics there are when there is no such one."""
    try:
        found = consumer.list_topics(topic, timeout=TIMEOUT_S).topics[topic]
        if found.error is None:
            return sorted(found.partitions)
        if found.error.code() not in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):
            raise KafkaException(found.error)
        topics = consumer.list_topics(timeout=TIMEOUT_S).topics
    except KafkaException as error:
        raise trouble(error, brokers, f"cannot tell the partitions of {topic}") from None
    names = sorted(name for name in topics if not name.startswith("__"))
    hint = f"The topics are {listed(names)}. {suggestion(topic, names)}".strip()
    raise InputError(f"no Kafka topic {topic} at {brokers}", hint=hint)


def marks_of(
    consumer: Consumer, brokers: str, topic: str, partitions: list[int]
) -> dict[int, Marks]:
    """What each of the partitions holds now."""

    def ask(partition: int) -> Marks:
        where = TopicPartition(topic, partition)
        low, high = consumer.get_watermark_offsets(where, timeout=TIMEOUT_S)
        return Marks(low, high)

    try:
        with ThreadPoolExecutor(_WATERMARK_THREADS) as pool:
            return dict(zip(partitions, pool.map(ask, partitions), strict=True))
    except KafkaException as error:
        raise trouble(error, brokers, f"cannot tell the offsets of {topic}") from None


def messages(consumer: Consumer, brokers: str, topic: str, span: Span) -> Iterator[Message]:
    """Exactly the records of ``span``, in order.

    Offsets may hold no record (transaction markers, aborted or compacted records), so the end is
    where the consumer has come past it, not a number of records.
    """
    consumer.assign([TopicPartition(topic, span.partition, span.start)])
    position, moved_s = span.start, time.monotonic()
    while position < span.stop:
        wanted = min(span.stop - position, _CONSUME_AT_ONCE)
        before = position
        for message in consumer.consume(wanted, _CONSUME_WAIT_S):
            error = message.error()
            if error is None:
                position = _offset(message) + 1
                if position <= span.stop:
                    yield message
            elif error.code() == KafkaError._PARTITION_EOF:
                position = max(position, _offset(message))
            elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                raise _out_of_range(
                    consumer, brokers, topic, Span(span.partition, position, span.stop)
                )
            elif error.code() not in _PASSING:
                raise trouble(KafkaException(error), brokers, f"cannot read {topic}")
        if position > before:
            moved_s = time.monotonic()
        elif time.monotonic() - moved_s > TIMEOUT_S:
            raise UnreachableError(
                f"nothing came from {topic}, partition {span.partition}, offset {position} at "
                f"{brokers} for {TIMEOUT_S:g} s",
                hint="Check that the brokers run; the query goes on where it was.",
            )
    consumer.unassign()


def _offset(message: Message) -> int:
    offset = message.offset()
    assert offset is not None
    return offset


def _out_of_range(consumer: Consumer, brokers: str, topic: str, span: Span) -> RunError:
    marks = marks_of(consumer, brokers, topic, [span.partition])[span.partition]
    return lost(topic, span.partition, Span(span.partition, span.start, span.stop), marks)


def lost(topic: str, partition: int, needed: Span, marks: Marks) -> RunError:
    """The error for records that are needed and no longer there."""
    if marks.low > needed.start:
        return RunError(
            f"Kafka has deleted records that were not read yet: topic {topic}, partition "
            f"{partition} starts at offset {marks.low}, needed from {needed.start}",
            hint="Lengthen the topic's retention; start afresh with --fresh to go on without them.",
        )
    return RunError(
        f"Kafka has lost records: topic {topic}, partition {partition} ends at offset "
        f"{marks.high}, but was known to reach {needed.stop}",
        hint="Was the topic made anew? Start afresh with --fresh.",
    )


def trouble(error: KafkaException, brokers: str, what: str) -> PenstockError:
    """What a client reported, as an error of ours."""
    reported: KafkaError = error.args[0]
    if reported.code() in _OUT_OF_REACH:
        return UnreachableError(
            f"no Kafka broker answers at {brokers} ({reported.str()})",
            hint="Check the address, that the brokers run, and if they want TLS or a login.",
        )
    return RunError(
        f"Kafka at {brokers} {what}: {reported.str()}",
        hint="Check the topic, and what this client is allowed to do.",
    )


def insisting(call: Callable[[], object], tries: int = 3) -> None:
    """Calls again what the client says may be called again."""
    for left in reversed(range(tries)):
        try:
            call()
            return
        except KafkaException as error:
            if not left or not error.args[0].retriable():
                raise


_CONNECTOR = "spark-sql-kafka"
_CLASS_PATHS = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath")
_TEXT_TO_TYPE = {
    DataType.TIMESTAMP: (
        "coalesce(timestamp_micros(cast(round(try_cast({0} AS double) * 1e6) AS bigint)), "
        "try_cast({0} AS timestamp))"
    ),
    DataType.BINARY: "cast({0} AS binary)",
}


def jvm_kafka_frame(session: SparkSession, spec: ReaderSpec) -> DataFrame | None:
    """The stream read by Spark's own Kafka connector; None where that is not on the class path.

    It reads faster, but has its own way with three things: rows that cannot be read are dropped
    without a dead letter, keys must be spelled as the columns are, and there are no heartbeats:
    the watermark is set here by Spark's own rule. It cannot end, so a finished topic gives None.
    """
    paths = {name: session.conf.get(name, "") or "" for name in _CLASS_PATHS}
    if spec.origin.get("finished") or not connector_configured(paths):
        return None
    try:
        records = session.readStream.format("kafka").options(**jvm_options(spec)).load()
    except AnalysisException:
        return None
    rows = parsed(records, spec)
    if spec.event_time is None or spec.lateness_us is None:
        return rows
    return rows.withWatermark(spec.event_time, f"{spec.lateness_us} microseconds")


def connector_configured(class_paths: Mapping[str, str]) -> bool:
    """Whether any of these settings names the connector's jar."""
    return any(_CONNECTOR in class_paths.get(name, "") for name in _CLASS_PATHS)


def jvm_options(spec: ReaderSpec) -> dict[str, str]:
    """The connector's options for reading as :class:`KafkaIntake` does."""
    cluster = cluster_of(spec)
    return {
        **{f"kafka.{name}": value for name, value in cluster.settings().items()},
        "kafka.bootstrap.servers": cluster.brokers,
        "kafka.isolation.level": "read_committed",
        "subscribe": str(spec.origin["topic"]),
        "startingOffsets": "earliest",
        "failOnDataLoss": "true",
        "maxOffsetsPerTrigger": str(spec.max_rows),
        "minPartitions": str(spec.parallelism),
    }


def parsed(records: DataFrame, spec: ReaderSpec) -> DataFrame:
    """The rows in the ``value`` of Kafka records, without those that cannot be read."""
    schema = spec.read_schema
    texts = ", ".join(f"`{name}` string" for name in schema.names)
    options = "map('columnNameOfCorruptRecord', '__corrupt')"
    row = f"from_json(cast(value AS string), '{texts}, `__corrupt` string', {options}) AS __row"
    typed = {
        field.name: _TEXT_TO_TYPE.get(field.type, f"try_cast({{0}} AS {field.type})").format(
            f"__row.`{field.name}`"
        )
        for field in schema
    }
    readable = [f"(__row.`{name}` IS NULL OR {value} IS NOT NULL)" for name, value in typed.items()]
    whole = " AND ".join(["__row IS NOT NULL", "__row.__corrupt IS NULL", *readable])
    columns = [f"{value} AS `{name}`" for name, value in typed.items()]
    return records.selectExpr(row).where(whole).selectExpr(*columns)
