"""Kafka read, and whole queries from topic to topic, against librdkafka's mock cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.datasource import ReadMaxRows

sys.path.insert(0, str(Path(__file__).parent))

from kafka_topics import (
    NOON,
    NOON_US,
    SCHEMA,
    expected,
    fill,
    read_all,
    rows_of,
    spec,
    value,
    written,
)

from penstock.errors import InputError, RunError, UnreachableError
from penstock.model.sources import KafkaSink
from penstock.spark import kafka
from penstock.spark.compile import watermarked
from penstock.spark.dead_letters import DeadLetters
from penstock.spark.sinks.batch import Batch
from penstock.spark.sinks.kafka_sink import RecordSink
from penstock.spark.sources import kafka_intake, source
from penstock.spark.sources.beats import BEAT, END_OF_TIME_US
from penstock.spark.sources.intake import Offset, Slice
from penstock.spark.sources.kafka_intake import BLOCK, KafkaIntake, Span, allot, cut
from penstock.spark.sources.source import SlicePartition, StreamReader, kafka_frame
from penstock.spark.sources.spec import ReaderSpec

from mock_cluster import MockCluster


class TestPlanning:
    @pytest.mark.parametrize("max_rows", [1, 2, 10, 99, 100, 1_000, None])
    @pytest.mark.parametrize("backlog", [{0: 100}, {0: 1, 1: 99}, {0: 33, 1: 33, 2: 34}, {0: 0}])
    def test_allots_all_or_exactly_the_limit(
        self, backlog: dict[int, int], max_rows: int | None
    ) -> None:
        given = allot(backlog, max_rows)
        total = sum(backlog.values())
        assert sum(given.values()) == (total if max_rows is None else min(total, max_rows))
        assert all(0 <= given[key] <= rows for key, rows in backlog.items())

    @pytest.mark.parametrize("tasks", [1, 2, 3, 8])
    def test_cuts_at_blocks_and_loses_nothing(self, tasks: int) -> None:
        spans = [Span(0, 5, 50_000), Span(1, 100, 101), Span(4, 8_000, 30_000)]
        groups = cut(spans, tasks)
        assert len(groups) == tasks
        pieces = sorted((one for group in groups for one in group), key=lambda one: one.start)
        for span in spans:
            mine = [one for one in pieces if one.partition == span.partition]
            edges = [mine[0].start, *(one.stop for one in mine)]
            assert (edges[0], edges[-1]) == (span.start, span.stop)
            assert all(edge % BLOCK == 0 for edge in edges[1:-1])
        sizes = [sum(one.size for one in group) for group in groups]
        assert max(sizes) - min(sizes) <= 2 * BLOCK

    def test_nothing_to_read_is_one_empty_group(self) -> None:
        assert cut([], 4) == [[]]


class TestReading:
    def test_slices_hold_what_was_produced(self, cluster: MockCluster, topic: str) -> None:
        fill(cluster, topic, 30_000)
        intake = KafkaIntake(spec(cluster, topic, parallelism=3))
        start = intake.first()
        end = intake.latest(start, None)
        assert start["at"] == {"0": 0, "1": 0, "2": 0, "3": 0}
        assert end["at"] == {"0": 10_000, "1": 10_000, "2": 10_000, "3": 0}
        parts = intake.slices(start, end)
        assert len(parts) == 3
        assert sorted(rows_of(intake, parts)) == expected(30_000)
        assert intake.latest(end, None) == end

    def test_columns_come_in_the_order_asked_for(self, cluster: MockCluster, topic: str) -> None:
        fill(cluster, topic, 3)
        intake = KafkaIntake(spec(cluster, topic, columns=("kwh", "ts")))
        start = intake.first()
        (part,) = intake.slices(start, intake.latest(start, None))
        tables = [pa.Table.from_batches([one]) for one in intake.read(part)]
        assert tables[0].column_names == ["kwh", "ts"]
        assert sorted(pa.concat_tables(tables)["ts"].to_pylist())[0] == NOON

    def test_other_processes_read_the_same(self, cluster: MockCluster, topic: str) -> None:
        fill(cluster, topic, 20_000)
        mine = spec(cluster, topic)
        intake = KafkaIntake(mine)
        start = intake.first()
        parts = intake.slices(start, intake.latest(start, None))
        code = (
            "import json, sys\n"
            "from penstock.spark.sources.kafka_intake import KafkaIntake\n"
            "from penstock.spark.sources.spec import ReaderSpec\n"
            "from penstock.spark.sources.intake import Slice\n"
            "intake = KafkaIntake(ReaderSpec.from_json(sys.argv[1]))\n"
            "for body in json.loads(sys.argv[2]):\n"
            "    read = intake.read(Slice(body))\n"
            "    print(json.dumps([k for one in read for k in one['kwh'].to_pylist()]))\n"
        )
        bodies = json.dumps([dict(part.body) for part in parts])
        told = subprocess.run(
            [sys.executable, "-c", code, mine.to_json(), bodies],
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": str(Path(kafka.__file__).parents[2])},
            timeout=60,
        )
        outputs = told.stdout.splitlines()
        assert len(outputs) == 2
        rows = [row for output in outputs for row in json.loads(output)]
        assert sorted(rows) == expected(20_000)

    @pytest.mark.parametrize("max_rows", [1, 7, 100, None])
    def test_batches_of_any_size_give_the_same_rows(
        self, cluster: MockCluster, topic: str, max_rows: int | None
    ) -> None:
        fill(cluster, topic, 60)
        rows, _ = read_all(KafkaIntake(spec(cluster, topic)), max_rows)
        assert sorted(rows) == expected(60)

    def test_the_limit_is_spread_by_backlog(self, cluster: MockCluster, topic: str) -> None:
        cluster.produce(topic, map(value, range(600)), 0)
        cluster.produce(topic, map(value, range(300)), 1)
        intake = KafkaIntake(spec(cluster, topic))
        end = intake.latest(intake.first(), 90)
        assert end["at"] == {"0": 60, "1": 30, "2": 0, "3": 0}

    def test_a_new_partition_starts_at_its_beginning(
        self, cluster: MockCluster, topic: str
    ) -> None:
        fill(cluster, topic, 30)
        intake = KafkaIntake(spec(cluster, topic))
        start: Offset = {"at": {"0": 10, "1": 10}}
        end = intake.latest(start, None)
        assert end["from"] == {"2": 0, "3": 0}
        assert sorted(rows_of(intake, intake.slices(start, end))) == expected(30)[2::3]

    def test_a_planned_batch_keeps_its_beginning(self, cluster: MockCluster, topic: str) -> None:
        fill(cluster, topic, 30)
        intake = KafkaIntake(spec(cluster, topic))
        start = intake.first()
        end = intake.latest(start, None)
        later: Offset = {"at": {"0": 4, "1": 4, "2": 4, "3": 0}}
        assert intake.slices(later, end) == intake.slices(start, end)

    def test_offsets_without_records_are_passed(self, cluster: MockCluster, topic: str) -> None:
        producer = Producer(
            {"bootstrap.servers": cluster.address, "transactional.id": topic, "log_level": 2}
        )
        producer.init_transactions(10)
        for at in range(0, 30, 10):
            producer.begin_transaction()
            for k in range(at, at + 10):
                producer.produce(topic, value(k), partition=0)
            producer.commit_transaction(10)
        intake = KafkaIntake(spec(cluster, topic))
        rows, end = read_all(intake)
        assert rows == expected(30)
        assert end["at"]["0"] == 33  # type: ignore[index]
        only_a_marker = Slice({"spans": [[0, 10, 11]]})
        assert rows_of(intake, [only_a_marker]) == []

    def test_the_watermark_is_told_after_reading(self, cluster: MockCluster, topic: str) -> None:
        fill(cluster, topic, 100)
        mine = spec(cluster, topic, event_time="ts", lateness_us=5_000_000)
        reader = StreamReader(mine)
        start = reader.initialOffset()
        end = reader.intake.latest(start, None)
        (part,) = reader.partitions(start, end)
        assert isinstance(part, SlicePartition)
        batches = list(reader.read(part))
        assert batches[-1][BEAT].to_pylist() == [True]
        told = reader.intake.watermark_after(Slice(part.body))  # type: ignore[attr-defined]
        assert told == NOON_US + 94_000_000

    def test_time_moves_on_when_nothing_comes(
        self, cluster: MockCluster, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fill(cluster, topic, 100)
        mine = spec(
            cluster, topic, event_time="ts", lateness_us=5_000_000, idle_timeout_us=30_000_000,
            known_time=str(tmp_path / "times" / "readings"),
        )  # fmt: skip
        clock_s = [1_000.0]
        monkeypatch.setattr(source.time, "monotonic", lambda: clock_s[0])
        planner, task = StreamReader(mine), StreamReader(mine)
        start = planner.initialOffset()
        end = planner.latestOffset(start, ReadMaxRows(1_000))
        for part in planner.partitions(start, end):
            list(task.read(part))
        clock_s[0] += 29
        assert planner.latestOffset(end, ReadMaxRows(1_000)) == end
        clock_s[0] += 2
        idle = planner.latestOffset(end, ReadMaxRows(1_000))
        assert (idle["at"], idle["watermark_us"]) == (end["at"], NOON_US + 124_000_000)
        (part,) = planner.partitions(end, idle)
        (beat,) = task.read(part)
        assert beat[BEAT].to_pylist() == [True]

    def test_telling_the_time_again_reads_nothing_again(
        self, cluster: MockCluster, topic: str
    ) -> None:
        fill(cluster, topic, 100)
        mine = spec(cluster, topic, event_time="ts", lateness_us=0, finished=True)
        before = StreamReader(mine)
        end = before.latestOffset(before.initialOffset(), ReadMaxRows(1_000))
        assert end["ended"]
        restarted = StreamReader(mine)
        again = restarted.latestOffset(end, ReadMaxRows(1_000))
        assert again != end
        (part,) = restarted.partitions(end, again)
        (beat,) = restarted.read(part)
        assert beat[BEAT].to_pylist() == [True]


class TestFinished:
    def test_ends_where_the_topic_ended_at_first(self, cluster: MockCluster, topic: str) -> None:
        fill(cluster, topic, 60)
        intake = KafkaIntake(spec(cluster, topic, finished=True))
        start = intake.first()
        half = intake.latest(start, 30)
        assert "ended" not in half
        fill(cluster, topic, 9)
        # Another process goes on from the offset alone.
        again = KafkaIntake(spec(cluster, topic, finished=True))
        end = again.latest(json.loads(json.dumps(half)), None)
        assert end["ended"] is True
        assert end["watermark_us"] == END_OF_TIME_US
        parts = again.slices(start, half) + again.slices(half, end)
        assert sorted(rows_of(again, parts)) == expected(60)
        assert parts[-1].watermark_us == END_OF_TIME_US
        assert again.latest(end, None) == end

    def test_an_empty_topic_ends_at_once(self, cluster: MockCluster, topic: str) -> None:
        cluster.produce(topic, [])
        producer = Producer({"bootstrap.servers": cluster.address, "log_level": 2})
        producer.list_topics(topic, timeout=10)
        intake = KafkaIntake(spec(cluster, topic, finished=True))
        start = intake.first()
        end = intake.latest(start, None)
        (part,) = intake.slices(start, end)
        assert part.watermark_us == END_OF_TIME_US
        assert rows_of(intake, [part]) == []


class TestMalformed:
    BAD = ("oops", '{"kwh": "much"}', "[1]", None, " ")

    def test_is_counted_once_however_it_is_read(
        self, cluster: MockCluster, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(kafka_intake, "BLOCK", 512)
        fill(cluster, topic, 2_500, partitions=2)
        for partition in range(2):
            cluster.produce(topic, self.BAD, partition)
        for tasks in (1, 2, 3):
            intake = KafkaIntake(spec(cluster, topic, tmp_path, parallelism=tasks))
            start = intake.first()
            end = intake.latest(start, None)
            assert sorted(rows_of(intake, intake.slices(start, end))) == expected(2_500)
            assert DeadLetters(tmp_path).counts()["malformed"] == 10
        letters = [
            json.loads(line)
            for path in sorted(tmp_path.glob("*.jsonl"))
            for line in path.read_text().splitlines()
        ]
        assert {one["file"] for one in letters} == {f"{topic}[0]", f"{topic}[1]"}
        assert {one["line"] for one in letters} == set(range(1_250, 1_255))

    def test_only_columns_that_are_read_count(
        self, cluster: MockCluster, topic: str, tmp_path: Path
    ) -> None:
        cluster.produce(topic, ['{"ts": "never", "home": "h1", "kwh": 1}'])
        rows, _ = read_all(KafkaIntake(spec(cluster, topic, tmp_path, columns=("kwh",))))
        assert rows == [1.0]
        assert DeadLetters(tmp_path).counts()["malformed"] == 0


class TestReadingFails:
    def test_on_records_deleted_before_they_were_read(
        self, cluster: MockCluster, topic: str
    ) -> None:
        filler = "x" * 100_000
        cluster.produce(topic, (json.dumps({"home": filler, "kwh": k}) for k in range(80)))
        intake = KafkaIntake(spec(cluster, topic))
        low = intake.first()["at"]["0"]  # type: ignore[index]
        assert low > 0, "the mock keeps 5 MB of a partition"
        text = f"topic {topic}, partition 0 starts at offset {low}, needed from 0"
        with pytest.raises(RunError, match=text):
            intake.latest({"at": {"0": 0}}, None)
        with pytest.raises(RunError, match=text):
            rows_of(intake, [Slice({"spans": [[0, 0, 80]]})])

    def test_on_a_topic_that_is_shorter_than_before(self, cluster: MockCluster, topic: str) -> None:
        fill(cluster, topic, 30)
        with pytest.raises(RunError, match=r"ends at offset 10, but was known to reach 11\. Was"):
            KafkaIntake(spec(cluster, topic)).latest({"at": {"0": 11}}, None)
        with pytest.raises(RunError, match="no longer has a partition 9"):
            KafkaIntake(spec(cluster, topic)).latest({"at": {"9": 1}}, None)

    def test_on_a_topic_that_is_not_there(self, cluster: MockCluster, topic: str) -> None:
        cluster.produce("readings", [value(1)])
        with pytest.raises(InputError, match=r"no Kafka topic readngs .*Did you mean readings\?"):
            KafkaIntake(spec(cluster, "readngs")).first()

    def test_on_brokers_that_do_not_answer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(kafka, "TIMEOUT_S", 0.5)
        origin = {"kind": "kafka", "brokers": "127.0.0.1:1", "topic": "t", "finished": False}
        intake = KafkaIntake(ReaderSpec("s", SCHEMA, ("kwh",), None, origin))
        with pytest.raises(UnreachableError, match=r"no Kafka broker answers at 127\.0\.0\.1:1"):
            intake.first()


def stream(session: SparkSession, mine: ReaderSpec) -> DataFrame:
    return kafka_frame(session, mine)


class TestQuery:
    def test_reads_a_topic_and_writes_another(
        self, session: SparkSession, cluster: MockCluster, topic: str, tmp_path: Path
    ) -> None:
        fill(cluster, topic, 5_000)
        mine = spec(cluster, topic, tmp_path / "letters", max_rows=3_000)
        sink = RecordSink(KafkaSink(cluster.address, f"{topic}-out"), topic)
        query = (
            stream(session, mine)
            .where("kwh >= 1")
            .writeStream.foreachBatch(lambda rows, at: sink.write(rows, Batch(at)))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .start()
        )
        query.processAllAvailable()
        query.stop()
        assert written(cluster, f"{topic}-out") == expected(5_000)[4:]

    def test_windows_of_a_finished_topic_close(
        self, session: SparkSession, cluster: MockCluster, topic: str, tmp_path: Path
    ) -> None:
        fill(cluster, topic, 600)
        mine = spec(
            cluster, topic, tmp_path, event_time="ts", lateness_us=10_000_000, finished=True
        )
        counts = (
            watermarked(stream(session, mine), "ts")
            .groupBy(F.window("ts", "1 minute"))
            .agg(F.count("*").alias("rows"))
        )
        found: list[int] = []

        def collect(rows: DataFrame, _: int) -> None:
            found.extend(row["rows"] for row in rows.collect())

        query = (
            counts.writeStream.foreachBatch(collect)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .start()
        )
        query.processAllAvailable()
        query.stop()
        assert found == [60] * 10


def test_the_connector_is_found_by_its_jar() -> None:
    assert not kafka.connector_configured({"spark.jars": "/jars/other.jar"})
    packages = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0"
    assert kafka.connector_configured({"spark.jars.packages": packages})


def test_the_connector_reads_with_the_same_options(cluster: MockCluster) -> None:
    assert kafka.jvm_options(spec(cluster, "readings", max_rows=9)) == {
        "kafka.bootstrap.servers": cluster.address,
        "kafka.isolation.level": "read_committed",
        "subscribe": "readings",
        "startingOffsets": "earliest",
        "failOnDataLoss": "true",
        "maxOffsetsPerTrigger": "9",
        "minPartitions": "2",
    }


class TestConnector:
    def test_is_absent_here(self, session: SparkSession, cluster: MockCluster) -> None:
        assert kafka.jvm_kafka_frame(session, spec(cluster, "readings")) is None

    def test_parses_as_our_reader_does(
        self, session: SparkSession, cluster: MockCluster, topic: str, tmp_path: Path
    ) -> None:
        values = [
            value(1),
            '{"ts": 1777636800.25, "kwh": "2.5"}',
            '{"home": 7}',
            "{}",
            "oops",
            "[1]",
            '{"kwh": "much"}',
            '{"ts": "never"}',
            None,
        ]
        cluster.produce(topic, values)
        mine = spec(cluster, topic, tmp_path)
        intake = KafkaIntake(mine)
        start = intake.first()
        parts = intake.slices(start, intake.latest(start, None))
        ours = [row for part in parts for one in intake.read(part) for row in one.to_pylist()]
        records = session.createDataFrame(
            [(None if one is None else one.encode(),) for one in values], "value binary"
        )
        theirs = kafka.parsed(records, mine).toArrow().to_pylist()
        assert len(ours) == 4
        assert sorted(theirs, key=str) == sorted(ours, key=str)
