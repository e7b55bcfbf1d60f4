"""Topics with readings in them, and who reads and writes them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from penstock.channels.ingest.kafka_blocks import read_blocks
from penstock.channels.kafka import marks_of, partitions_of
from penstock.channels.kafka_cluster import KafkaCluster
from penstock.feeds.partitions import Span
from penstock.feeds.pieces import RowForm
from penstock.model.schema import Schema
from penstock.model.sources import KafkaSource
from penstock.spark.sinks.batch import Batch
from penstock.spark.sinks.kafka_sink import RecordSink

from mock_cluster import MockCluster

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def value(k: int) -> str:
    moment = NOON + timedelta(seconds=k)
    return json.dumps({"ts": moment.isoformat(), "home": f"h{k % 7}", "kwh": k / 4})


def fill(cluster: MockCluster, topic: str, rows: int, partitions: int = 3) -> None:
    for partition in range(partitions):
        mine = (value(k) for k in range(partition, rows, partitions))
        cluster.produce(topic, mine, partition)


def expected(rows: int) -> list[float]:
    return [k / 4 for k in range(rows)]


def rows_in(cluster: MockCluster, topic: str, schema: str) -> list[dict[str, object]]:
    """The rows of a topic, as a stream of this schema would bring them in."""
    source = KafkaSource(cluster.address, topic)
    consumer = KafkaCluster(cluster.address).consumer()
    partitions = partitions_of(consumer, cluster.address, topic)
    marks = marks_of(consumer, cluster.address, topic, partitions)
    turns = [Span(partition, 0, held.high) for partition, held in marks.items() if held.high]
    blocks = read_blocks(consumer, source, turns, RowForm(Schema.parse(schema)))
    consumer.close()
    return [row for block in blocks for row in block.rows.to_pylist()]


class Rows:
    """As much of a DataFrame as a sink asks for."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def toArrow(self) -> pa.Table:
        return self._table


def table(*numbers: float) -> pa.Table:
    return pa.table({"kwh": pa.array(numbers, pa.float64())})


def write(sink: RecordSink, rows: pa.Table, batch_id: int) -> int:
    return sink.write(Rows(rows), Batch(batch_id))  # type: ignore[arg-type]


def written(cluster: MockCluster, topic: str) -> list[float]:
    return sorted(json.loads(record.value() or b"")["kwh"] for record in cluster.records(topic))
