"""Results as records of a Kafka topic, each batch in one transaction.

The transaction also commits the number of the batch, as an offset of the consumer group that is
named after the writer: rows and number are there together or not at all. Brokers forget such
offsets after some days without a commit (``offsets.retention.minutes``), so every record also
says in its headers which writer's which batch it belongs to, and where the offset is gone the
last records are looked at. Readers must read with ``isolation.level=read_committed``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from json.encoder import encode_basestring

import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from penstock.channels.kafka import (
    TIMEOUT_S,
    insisting,
    marks_of,
    partitions_of,
    records,
    trouble,
)
from penstock.channels.kafka_cluster import KafkaCluster
from penstock.errors import InputError, PenstockError, RunError
from penstock.feeds.partitions import Span
from penstock.model.sources import KafkaSink
from penstock.spark.sinks.batch import Batch, Rows, collect

WRITER_HEADER = "penstock-writer"
BATCH_HEADER = "penstock-batch"

_NONE = -1
_ROWS_AT_ONCE = 10_000
_ROWS_PER_POLL = 1_000
_QUEUE_WAIT_S = 0.05
_COMMIT_TIMEOUT_S = 60.0
_PRODUCER: dict[str, object] = {
    "transaction.timeout.ms": 120_000,
    "linger.ms": 50,
    "compression.type": "lz4",
}
_LOOK_BACK = 1_000_000
"""How many records of a partition are searched for this writer's last one."""

_FENCED = {
    KafkaError._FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.PRODUCER_FENCED,
}

_Headers = list[tuple[str, str | bytes | None]]


@dataclass(frozen=True)
class _Link:
    """The open connection of a sink: what writes, and what knows the writer's group."""

    producer: Producer
    group: Consumer


class RecordSink:
    """Appends each batch to the topic, exactly once for readers of committed records.

    Of two processes with the same ``writer`` the one that started last may write; the other's
    transactions are refused by the brokers, and it does not try again.
    """

    def __init__(self, sink: KafkaSink, writer: str) -> None:
        self._sink = sink
        self._writer = writer
        self._link: _Link | None = None
        self._last = _NONE
        self._fenced: PenstockError | None = None

    def write(self, rows: Rows, batch: Batch) -> int:
        table = collect(rows)
        if table.num_rows:
            self._write_once(table, batch.id)
        return int(table.num_rows)

    def _write_once(self, table: pa.Table, batch_id: int) -> None:
        if self._fenced is not None:
            raise self._fenced
        try:
            link = self._opened()
            if batch_id > self._last:
                self._transact(link, table, batch_id)
                self._last = batch_id
        except BaseException as error:
            self._give_up()
            if isinstance(error, KafkaException):
                raise self._explained(error) from error
            raise

    def _opened(self) -> _Link:
        if self._link is None:
            name = f"penstock-{self._writer}"
            cluster = KafkaCluster(self._sink.brokers, self._sink.client)
            link = _Link(cluster.producer(name, _PRODUCER), cluster.consumer(name))
            # Ends what a former process left open, so that the number read next is final.
            link.producer.init_transactions(TIMEOUT_S)
            self._last = last_batch(link.group, self._sink, self._writer)
            self._link = link
        return self._link

    def _transact(self, link: _Link, table: pa.Table, batch_id: int) -> None:
        headers: _Headers = [
            (WRITER_HEADER, self._writer.encode()),
            (BATCH_HEADER, str(batch_id).encode()),
        ]
        producer, group = link.producer, link.group.consumer_group_metadata()
        producer.begin_transaction()
        for at, value in enumerate(json_values(table)):
            _enqueue(producer, self._sink.topic, value, headers)
            if at % _ROWS_PER_POLL == 0:
                producer.poll(0)
        offsets = [TopicPartition(self._sink.topic, 0, batch_id + 1)]
        insisting(lambda: producer.send_offsets_to_transaction(offsets, group, TIMEOUT_S))
        insisting(lambda: producer.commit_transaction(_COMMIT_TIMEOUT_S))

    def _give_up(self) -> None:
        """Takes back what was sent; the next batch opens anew and asks what was committed."""
        link, self._link = self._link, None
        if link is not None:
            try:
                insisting(lambda: link.producer.abort_transaction(TIMEOUT_S))
            except KafkaException:
                # Nothing was begun, or the brokers are away: they end it after its timeout.
                return
            finally:
                link.group.close()

    def _explained(self, error: KafkaException) -> PenstockError:
        reported: KafkaError = error.args[0]
        if reported.code() in _FENCED:
            self._fenced = RunError(
                f"another process writes to Kafka topic {self._sink.topic} as {self._writer}",
                hint="Nothing of this batch was written here. Stop one of the two.",
            )
            return self._fenced
        told = trouble(error, self._sink.brokers, f"refused rows for {self._sink.topic}")
        # A commit without an answer may have happened: the next start finds out.
        told.hint = f"Run again: the batch is written whole or not at all, and once. {told.hint}"
        return told


def _enqueue(
    producer: Producer,
    topic: str,
    value: bytes,
    headers: _Headers,
) -> None:
    while True:
        try:
            producer.produce(topic, value, headers=headers)
            return
        except BufferError:
            # Ends: records that cannot be sent time out, and then producing raises.
            producer.poll(_QUEUE_WAIT_S)


def last_batch(group: Consumer, sink: KafkaSink, writer: str) -> int:
    """The last batch that ``writer`` has committed to the topic; -1 when there is none."""
    try:
        partitions = partitions_of(group, sink.brokers, sink.topic)
    except InputError:
        return _NONE
    (committed,) = group.committed([TopicPartition(sink.topic, 0)], timeout=TIMEOUT_S)
    if committed.error is not None:
        raise KafkaException(committed.error)
    if committed.offset > 0:
        return int(committed.offset) - 1
    marks = marks_of(group, sink.brokers, sink.topic, partitions)
    spans = [
        Span(key, max(mark.low, mark.high - _LOOK_BACK), mark.high) for key, mark in marks.items()
    ]
    return max((_last_in(group, sink, writer, span) for span in spans), default=_NONE)


def _last_in(group: Consumer, sink: KafkaSink, writer: str, span: Span) -> int:
    """The batch of the writer's last record in ``span``, searched from its end in growing steps."""
    stop, step = span.stop, 1_000
    while stop > span.start:
        start = max(span.start, stop - step)
        window = Span(span.partition, start, stop)
        found = [
            _batch(record, writer) for record in records(group, sink.brokers, sink.topic, [window])
        ]
        if max(found, default=_NONE) > _NONE:
            return max(found)
        stop, step = start, step * 4
    return _NONE


def _batch(record: Message, writer: str) -> int:
    headers = dict(record.headers() or [])
    if headers.get(WRITER_HEADER) != writer.encode():
        return _NONE
    return int(headers.get(BATCH_HEADER) or _NONE)


def json_values(table: pa.Table) -> Iterator[bytes]:
    """Each row as a JSON object that our own reader reads back as the same row.

    Times are ISO-8601 in UTC with microseconds; doubles that JSON has no number for are texts.

    >>> list(json_values(pa.table({"kwh": [1.5, None]})))
    [b'{"kwh":1.5}', b'{"kwh":null}']
    """
    names = [encode_basestring(name).replace("%", "%%") for name in table.column_names]
    template = "{" + ",".join(f"{name}:%s" for name in names) + "}"
    for at in range(0, table.num_rows, _ROWS_AT_ONCE):
        piece = table.slice(at, _ROWS_AT_ONCE)
        columns = map(_json_texts, piece.column_names, piece.columns)
        for row in zip(*columns, strict=True):
            yield (template % row).encode()


def _json_texts(name: str, column: pa.ChunkedArray) -> list[str]:
    """A column's values as JSON writes them."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        utc = column.cast(pa.timestamp("us", kind.tz)).cast(pa.timestamp("us"))
        column = pc.strftime(utc, "%Y-%m-%dT%H:%M:%SZ")
    elif pa.types.is_date(kind):
        column = column.cast(pa.string())
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        column = _texts(name, column)
    elif not pa.types.is_string(kind) and not pa.types.is_large_string(kind):
        return [_number(value) for value in column.to_pylist()]
    return ["null" if value is None else encode_basestring(value) for value in column.to_pylist()]


def _number(value: bool | int | float | None) -> str:
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f'"{value}"'
    return json.dumps(value)


def _texts(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        raise RunError(
            f"column {name} holds bytes that are no UTF-8 text, which JSON cannot carry",
            hint="Select base64(…) of it instead.",
        ) from None
