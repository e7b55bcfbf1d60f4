"""A channel as Spark sees it: planned here, in this process, and read by Spark's Parquet reader.

Spark asks its sources for offsets and files through Java interfaces. Py4J lets Python objects
stand behind those interfaces, so a batch is planned by a call into this process, and its rows go
from the files into Spark without passing through Python at all. A data source written in Python
would cost a process of 100 MB and a second of starting for every input, and a copy of every row.

Spark has no public way to hand it such a source; what is used here is internal
(``internals.py``).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from penstock.model.schema import Schema
from penstock.spark.ddl import spark_ddl
from penstock.spark.jvm.gateway import Jvm
from penstock.spark.jvm.internals import CATALYST, CONNECTOR, FILES, SQL, STREAMING
from penstock.spark.sources.beats import BEAT
from penstock.spark.sources.channel_reader import ChannelReader, FilePart, HandedOver, Offset

_READ_SUPPORT = f"{FILES}.parquet.ParquetReadSupport"
# What Spark's own scan tells the reader in every task.
_READER_SETTINGS = (
    "spark.sql.session.timeZone",
    "spark.sql.parquet.binaryAsString",
    "spark.sql.parquet.int96AsTimestamp",
    "spark.sql.parquet.inferTimestampNTZ.enabled",
    "spark.sql.legacy.parquet.nanosAsLong",
    "spark.sql.optimizer.nestedSchemaPruning.enabled",
)

Given = TypeVar("Given")


def _is_news(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], HandedOver))


# That a fragment was handed over is no mistake of anybody's.
logging.getLogger("py4j.clientserver").addFilter(_is_news)


def channel_frame(session: SparkSession, reader: ChannelReader, schema: Schema) -> DataFrame:
    """The rows that ``reader`` reads, with ``schema``'s columns, as an unbounded DataFrame.

    Where the reader tells the watermark, rows carry the heartbeat column as well.
    """
    spark = _SparkInput(session, schema, reader.event_time is not None)
    table = _Table(spark, reader)
    streaming = f"{CATALYST}.streaming"
    nothing = spark.java("scala.Option").empty()
    relation = spark.java(f"{streaming}.StreamingRelationV2")(
        nothing,
        reader.channel.folder.name,
        table,
        spark.java(f"{SQL}.util.CaseInsensitiveStringMap").empty(),
        spark.java(f"{CATALYST}.types.DataTypeUtils").toAttributes(spark.whole),
        nothing,
        nothing,
        nothing,
        getattr(spark.java(f"{streaming}.Unassigned$"), "MODULE$"),
    )
    rows = spark.java(f"{SQL}.classic.Dataset").ofRows(spark.session, relation)
    return DataFrame(rows, session)


class _SparkInput:
    """The Java side of one input, built once and used for all its batches."""

    def __init__(self, session: SparkSession, schema: Schema, has_beats: bool) -> None:
        jvm = Jvm(session)
        jvm.serve_callbacks()
        self.java = jvm.java
        self.array = jvm.array
        self.session = jvm.session
        self._context = jvm.context
        self._data = self._struct(spark_ddl(schema))
        self._constant = self._struct(f"`{BEAT}` boolean" if has_beats else "")
        marked = f"{spark_ddl(schema)}, `{BEAT}` boolean" if has_beats else spark_ddl(schema)
        self.whole = self._struct(marked)
        self._has_beats = has_beats
        self._values = {mark: self._constants(mark) for mark in (False, True)}
        self._nowhere = self.array("java.lang.String")
        self.no_map = self.java("java.util.HashMap")()
        python_utils = self.java("org.apache.spark.api.python.PythonUtils")
        self._no_metadata = python_utils.toScalaMap(self.no_map)
        self._path = self.java("org.apache.spark.paths.SparkPath").fromPathString
        self._factory: Any = None
        self.capabilities = self.java("java.util.HashSet")()
        self.capabilities.add(self.java(f"{CONNECTOR}.catalog.TableCapability").MICRO_BATCH_READ)
        self.columnar = self.java(f"{CONNECTOR}.read.Scan$ColumnarSupportMode").SUPPORTED
        self.no_metrics = self.array(f"{CONNECTOR}.metric.CustomMetric")
        self.no_task_metrics = self.array(f"{CONNECTOR}.metric.CustomTaskMetric")

    def _struct(self, ddl: str) -> Any:
        written = StructType.fromDDL(ddl) if ddl else StructType([])
        return self.session.parseDataType(written.json())

    def _constants(self, mark: bool) -> Any:
        values = self.array("java.lang.Object", [mark] if self._has_beats else [])
        return self.java(f"{CATALYST}.expressions.GenericInternalRow")(values)

    def offset(self, offset: Offset) -> Any:
        """An offset as Spark keeps it in its log."""
        kind = f"{STREAMING}.runtime.SerializedOffset"
        return self.java(kind)(json.dumps(offset))

    def partitions(self, tasks: Sequence[Sequence[FilePart]]) -> Any:
        """What each task is to read."""
        made = [self._partition(at, parts) for at, parts in enumerate(tasks)]
        return self.array(f"{CONNECTOR}.read.InputPartition", made)

    def _partition(self, index: int, parts: Sequence[FilePart]) -> Any:
        made = self.array(f"{FILES}.PartitionedFile", [self._file(part) for part in parts])
        return self.java(f"{FILES}.FilePartition")(index, made)

    def _file(self, part: FilePart) -> Any:
        return self.java(f"{FILES}.PartitionedFile")(
            self._values[part.is_beat],
            self._path(str(part.path)),
            part.start,
            part.length,
            self._nowhere,
            0,
            part.size,
            self._no_metadata,
        )

    def factory(self) -> Any:
        """What tasks make their readers with."""
        if self._factory is None:
            self._factory = self._made_factory()
        return self._factory

    def _made_factory(self) -> Any:
        state = self.session.sessionState()
        conf = state.conf().clone()
        conf.setConfString("spark.sql.caseSensitive", "true")
        hadoop = state.newHadoopConf()
        for key in _READER_SETTINGS:
            hadoop.set(key, conf.getConfString(key))
        hadoop.set("spark.sql.caseSensitive", "true")
        hadoop.set("parquet.read.support.class", _READ_SUPPORT)
        hadoop.set("org.apache.spark.sql.parquet.row.requested_schema", self._data.json())
        shared = self.java("org.apache.spark.util.SerializableConfiguration")(hadoop)
        options = self.java(f"{FILES}.parquet.ParquetOptions")(self._no_metadata, conf)
        return self.java(f"{FILES}.v2.parquet.ParquetPartitionReaderFactory")(
            conf,
            self._context.broadcast(shared),
            self._data,
            self._data,
            self._constant,
            self.array(f"{SQL}.sources.Filter"),
            self.java("scala.Option").empty(),
            options,
        )


class _Behind:
    """A Python object behind a Java interface."""

    def hashCode(self) -> int:
        return id(self) & 0x7FFF_FFFF

    def equals(self, other: object) -> bool:
        return self is other

    def toString(self) -> str:
        return "penstock channel"


class _Table(_Behind):
    def __init__(self, spark: _SparkInput, reader: ChannelReader) -> None:
        self._spark, self._reader = spark, reader

    def name(self) -> str:
        return self._reader.channel.folder.name

    def schema(self) -> Any:
        return self._spark.whole

    def columns(self) -> Any:
        util = self._spark.java(f"{CONNECTOR}.catalog.CatalogV2Util$")
        return getattr(util, "MODULE$").structTypeToV2Columns(self._spark.whole)

    def capabilities(self) -> Any:
        return self._spark.capabilities

    def properties(self) -> Any:
        return self._spark.no_map

    def newScanBuilder(self, options: object) -> _ScanBuilder:
        return _ScanBuilder(self._spark, self._reader)

    class Java:
        implements = (f"{CONNECTOR}.catalog.SupportsRead",)


class _ScanBuilder(_Behind):
    def __init__(self, spark: _SparkInput, reader: ChannelReader) -> None:
        self._spark, self._reader = spark, reader

    def build(self) -> _Scan:
        return _Scan(self._spark, self._reader)

    class Java:
        implements = (f"{CONNECTOR}.read.ScanBuilder",)


class _Scan(_Behind):
    def __init__(self, spark: _SparkInput, reader: ChannelReader) -> None:
        self._spark, self._reader = spark, reader

    def readSchema(self) -> Any:
        return self._spark.whole

    def description(self) -> str:
        return f"channel {self._reader.channel.folder.name}"

    def toMicroBatchStream(self, checkpoint: str) -> _Stream:
        # Before it is our turn: this takes a while, and depends on nothing that is to come.
        self._spark.factory()
        # Spark opens its inputs before it looks at the checkpoint.
        self._reader.await_turn()
        return _Stream(self._spark, self._reader)

    def supportedCustomMetrics(self) -> Any:
        return self._spark.no_metrics

    def reportDriverMetrics(self) -> Any:
        return self._spark.no_task_metrics

    def columnarSupportMode(self) -> Any:
        return self._spark.columnar

    class Java:
        implements = (f"{CONNECTOR}.read.Scan",)


def _kept(method: Callable[..., Given]) -> Callable[..., Given]:
    """Keeps what a method raises: across the border to Java only its text would survive."""

    def call(self: _Stream, *given: Any) -> Given:
        try:
            return method(self, *given)
        except BaseException as error:
            self.reader.failure = error
            raise

    return call


class _Stream(_Behind):
    def __init__(self, spark: _SparkInput, reader: ChannelReader) -> None:
        self._spark, self.reader = spark, reader

    @_kept
    def initialOffset(self) -> Any:
        return self._spark.offset(self.reader.first())

    @_kept
    @_kept
    def deserializeOffset(self, text: str) -> Any:
        return self._spark.offset(self.reader.restored(json.loads(text)))

    def getDefaultReadLimit(self) -> Any:
        limit = self._spark.java(f"{CONNECTOR}.read.streaming.ReadLimit")
        return limit.maxRows(self.reader.max_rows)

    @_kept
    def latestOffset(self, start: Any, limit: Any) -> Any:
        known = json.loads(start.json())
        reached = self.reader.latest(known)
        return start if reached == known else self._spark.offset(reached)

    def reportLatestOffset(self) -> None:
        return None

    @_kept
    def planInputPartitions(self, start: Any, end: Any) -> Any:
        tasks = self.reader.parts(json.loads(start.json()), json.loads(end.json()))
        return self._spark.partitions(tasks)

    @_kept
    def createReaderFactory(self) -> Any:
        return self._spark.factory()

    @_kept
    def commit(self, end: Any) -> None:
        self.reader.commit(json.loads(end.json()))

    def stop(self) -> None:
        return None

    class Java:
        implements = (
            f"{CONNECTOR}.read.streaming.MicroBatchStream",
            f"{CONNECTOR}.read.streaming.SupportsAdmissionControl",
        )
