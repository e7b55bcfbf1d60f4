"""Topics with readings in them, and who reads and writes them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from penstock.spark.sinks.batch import Batch
from penstock.spark.sinks.kafka_sink import RecordSink
from penstock.spark.sources.intake import Offset, Slice
from penstock.spark.sources.kafka_intake import KafkaIntake
from penstock.spark.sources.spec import ReaderSpec

from mock_cluster import MockCluster

SCHEMA = "ts timestamp, home string, kwh double"
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
NOON_US = int(NOON.timestamp()) * 1_000_000


def value(k: int) -> str:
    moment = NOON + timedelta(seconds=k)
    return json.dumps({"ts": moment.isoformat(), "home": f"h{k % 7}", "kwh": k / 4})


def fill(cluster: MockCluster, topic: str, rows: int, partitions: int = 3) -> None:
    for partition in range(partitions):
        mine = (value(k) for k in range(partition, rows, partitions))
        cluster.produce(topic, mine, partition)


def spec(cluster: MockCluster, topic: str, folder: Path = Path(), **given: object) -> ReaderSpec:
    finished = given.pop("finished", False)
    fields = {
        "stream": "readings",
        "schema": SCHEMA,
        "columns": ("ts", "home", "kwh"),
        "event_time": None,
        "origin": {
            "kind": "kafka",
            "brokers": cluster.address,
            "topic": topic,
            "finished": finished,
        },
        "reader": "test-reader",
        "dead_letters": str(folder),
    }
    return ReaderSpec(**(fields | given))  # type: ignore[arg-type]


def rows_of(intake: KafkaIntake, parts: list[Slice]) -> list[float]:
    return [k for part in parts for one in intake.read(part) for k in one["kwh"].to_pylist()]


def read_all(intake: KafkaIntake, max_rows: int | None = None) -> tuple[list[float], Offset]:
    rows: list[float] = []
    start = intake.first()
    while (end := intake.latest(start, max_rows)) != start:
        rows += rows_of(intake, intake.slices(start, end))
        start = json.loads(json.dumps(end))
    return rows, start


def expected(rows: int) -> list[float]:
    return [k / 4 for k in range(rows)]


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
    return sorted(json.loads(one.value() or b"")["kwh"] for one in cluster.records(topic))
