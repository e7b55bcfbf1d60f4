"""The Spark data source, written in Python, behind streams that come from Kafka."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows
from pyspark.sql.types import StructType

from penstock.feeds.arrow import arrow_schema
from penstock.spark.ddl import spark_ddl
from penstock.spark.lean import leave_pandas_out
from penstock.spark.sources.beats import BEAT, beat_row, with_beat_column
from penstock.spark.sources.intake import Offset, Slice
from penstock.spark.sources.kafka_intake import KafkaIntake, going_on_from
from penstock.spark.sources.known_time import KnownTime
from penstock.spark.sources.spec import ReaderSpec

FORMAT = "penstock"

_AGAIN = "again"

# Every process that reads a stream loads this module first.
leave_pandas_out()


def kafka_frame(session: SparkSession, spec: ReaderSpec) -> DataFrame:
    """The rows ``spec`` describes as an unbounded DataFrame, heartbeats included."""
    session.dataSource.register(StreamSource)
    return session.readStream.format(FORMAT).option("spec", spec.to_json()).load()


class StreamSource(DataSource):
    """Spark's view of a stream; its one option ``spec`` is a :class:`ReaderSpec` as JSON."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    @property
    def _spec(self) -> ReaderSpec:
        return ReaderSpec.from_json(self.options["spec"])

    def schema(self) -> str:
        columns = spark_ddl(self._spec.read_schema)
        return f"{columns}, `{BEAT}` boolean" if self._spec.event_time else columns

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return StreamReader(self._spec)


class SlicePartition(InputPartition):
    """A slice on its way to a task."""

    def __init__(self, part: Slice) -> None:
        super().__init__(None)
        self.body = dict(part.body)
        self.watermark_us = part.watermark_us


class StreamReader(DataSourceStreamReader):
    """Plans batches on the driver and reads slices in tasks.

    The intake is opened on first use, so that each process opens only what it needs.
    """

    def __init__(self, spec: ReaderSpec) -> None:
        self._spec = spec
        self._intake: KafkaIntake | None = None
        self._quiet_since_s = time.monotonic()
        self._idle_from_us: int | None = None
        self._has_planned = False

    @property
    def intake(self) -> KafkaIntake:
        if self._intake is None:
            self._intake = KafkaIntake(self._spec)
        return self._intake

    def __getstate__(self) -> dict[str, object]:
        return {
            "_spec": self._spec,
            "_intake": None,
            "_quiet_since_s": 0.0,
            "_idle_from_us": None,
            "_has_planned": False,
        }

    def initialOffset(self) -> Offset:
        return self.intake.first()

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._spec.max_rows)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        unlimited = isinstance(limit, ReadAllAvailable)
        known = {name: value for name, value in start.items() if name != _AGAIN}
        end = self.intake.latest(known, None if unlimited else self._spec.max_rows)
        end = _not_before(end, known)
        is_first, self._has_planned = not self._has_planned, True
        if end != known:
            self._quiet_since_s, self._idle_from_us = time.monotonic(), None
            return end
        return self._told_again(start) if is_first else self._moved_on(start)

    def _told_again(self, start: Offset) -> Offset:
        """An offset without new rows that makes a batch, for the sake of its heartbeat.

        Spark, started again, does not remember the watermark of each of its inputs: one that has
        ended or is idle would hold back the others for ever.
        """
        if self._spec.event_time is None or "watermark_us" not in start:
            return start
        return going_on_from(start) | {_AGAIN: int(str(start.get(_AGAIN, 0))) + 1}

    def _moved_on(self, start: Offset) -> Offset:
        """The offset with a later watermark each time an idle stream's timeout has passed."""
        timeout_us = self._spec.idle_timeout_us
        if timeout_us is None or self._spec.event_time is None or start.get("ended"):
            return start
        quiet_us = int((time.monotonic() - self._quiet_since_s) * 1e6)
        waited_us = quiet_us // timeout_us * timeout_us
        watermark_us = self._reached_us(start) if waited_us else None
        if watermark_us is None:
            return start
        if self._idle_from_us is None:
            self._idle_from_us = watermark_us
        moved_us = self._idle_from_us + max(waited_us, self._spec.lateness_us or 0)
        return going_on_from(start) | {"watermark_us": max(watermark_us, moved_us)}

    def _reached_us(self, start: Offset) -> int | None:
        """How far the stream's time has come, by its rows or since it fell silent."""
        told = (start.get("watermark_us"), KnownTime(Path(self._spec.known_time)).read())
        return max((one for one in told if isinstance(one, int)), default=None)

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        if start == end:
            return []
        return [SlicePartition(part) for part in self.intake.slices(start, end)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, SlicePartition)
        part = Slice(partition.body, partition.watermark_us)
        event_time = self._spec.event_time
        if event_time is None:
            yield from self.intake.read(part)
            return
        for batch in self.intake.read(part):
            yield with_beat_column(batch)
        # Only the rows themselves tell the time: the intake knows it by now.
        watermark_us = self.intake.watermark_after(part)
        if watermark_us is not None:
            if self._spec.idle_timeout_us is not None:
                KnownTime(Path(self._spec.known_time)).note(watermark_us)
            schema = arrow_schema(self._spec.read_schema)
            yield beat_row(schema, event_time, watermark_us)

    def commit(self, end: Offset) -> None:
        self.intake.commit(end)


def _not_before(end: Offset, start: Offset) -> Offset:
    """``end`` with a watermark no earlier than that of ``start``: an idle stream's has moved on."""
    known = [one["watermark_us"] for one in (start, end) if "watermark_us" in one]
    return end | {"watermark_us": max(known)} if known else end  # type: ignore[type-var]
