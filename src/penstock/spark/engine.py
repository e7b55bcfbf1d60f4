"""A whole deployment on one Spark node: sources brought in, fragments run, results delivered."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from penstock.errors import RunError
from penstock.model.fragments import Fragment
from penstock.model.measurements import FragmentStatus
from penstock.model.network import Network
from penstock.model.sources import (
    ConsoleSink,
    FileSink,
    GeneratorSource,
    KafkaSink,
    KafkaSource,
    Sink,
    Stream,
)
from penstock.place.fuse import fuse
from penstock.place.pruning import needed_columns
from penstock.spark.channels.channel import Writer
from penstock.spark.compile import compile_fragment, watermarked
from penstock.spark.failures import explained, is_passing
from penstock.spark.fragment_run import FragmentRun
from penstock.spark.housekeeping import release_planners
from penstock.spark.ingest.feed_ingest import FeedIngest
from penstock.spark.ingest.file_ingest import FileIngest
from penstock.spark.ingest.thread import IngestThread
from penstock.spark.progress import ProgressLog
from penstock.spark.sinks.batch import BatchSink
from penstock.spark.sinks.channel_sink import ChannelSink
from penstock.spark.sinks.database_sink import TableSink
from penstock.spark.sinks.file_sink import DirectorySink
from penstock.spark.sinks.memory_sink import CollectedSink, ShownSink
from penstock.spark.sources.channel_reader import ChannelReader
from penstock.spark.sources.channel_table import channel_frame
from penstock.spark.sources.spec import ReaderSpec
from penstock.spark.state import StateFolder, StateLock

Show = Callable[[str, pa.Table], None]

_RESTARTS = 5


def _show_nothing(query: str, rows: pa.Table) -> None:
    return None


@dataclass(frozen=True)
class EngineOptions:
    """How a node runs its fragments."""

    trigger_ms: int = 200
    max_rows_per_batch: int = 250_000
    cores: int = 2


DEFAULTS = EngineOptions()


class Engine:
    """Runs the fragments of one network in one Spark session.

    ``show`` is called with the rows of queries that go to the terminal. Everything that must
    survive is in ``state``: an engine started on the same folder goes on where the last stopped.
    """

    def __init__(
        self,
        session: SparkSession,
        network: Network,
        state: StateFolder,
        options: EngineOptions = DEFAULTS,
        show: Show = _show_nothing,
    ) -> None:
        state.prepare()
        self.network = network
        self.fragments = fuse(network)
        self.collected: dict[str, CollectedSink] = {}
        self._session = session
        self._state = state
        self._options = options
        self._show = show
        self._lock = StateLock(state)
        self._epoch = state.next_epoch()
        self._life = state.life()
        self._ingests: list[IngestThread] = []
        self._runs: dict[str, FragmentRun] = {}
        self._readers: dict[str, list[ChannelReader]] = {}
        self._settled = False
        self._restarts: Counter[str] = Counter()
        self._progress = {one.name: ProgressLog(one.name, one.stateful) for one in self.fragments}

    def start(self) -> None:
        """Starts everything that has not finished already."""
        try:
            for fragment in self.fragments:
                self._state.check_plan(self.network, fragment)
                self._register_reader(fragment)
            for stream in self.network.streams:
                self._start_ingest(stream)
            for fragment in self.fragments:
                self._start_fragment(fragment)
                self._wait_for_readers()
        except BaseException:
            self.stop()
            raise

    def _wait_for_readers(self) -> None:
        """Waits until few enough queries are still starting the processes that read for them.

        Spark gives such a process ten seconds; many at once on few cores starve each other.
        """
        while sum(run.is_starting for run in self._runs.values()) >= self._options.cores:
            time.sleep(0.01)

    def _register_reader(self, fragment: Fragment) -> None:
        for name in fragment.inputs:
            if self._is_channel(name):
                self._state.channel(name).register(fragment.name)

    def _is_channel(self, stream: str) -> bool:
        if stream in self.network.producers:
            return True
        return not isinstance(self.network.stream(stream).source, KafkaSource)

    def _start_ingest(self, stream: Stream) -> None:
        if not self._is_channel(stream.name):
            return
        if not any(stream.name in fragment.inputs for fragment in self.fragments):
            return
        writer = Writer(self._state.channel(stream.name), self._epoch)
        letters = self._state.dead_letters(stream.name)
        kind = FeedIngest if isinstance(stream.source, GeneratorSource) else FileIngest
        ingest = kind(stream, writer, self._state.stream(stream.name), letters)
        thread = IngestThread(ingest, stream.name)
        self._ingests.append(thread)
        thread.start()

    def _start_fragment(self, fragment: Fragment) -> None:
        folder = self._state.fragment(fragment.name)
        sinks = self._sinks(fragment)
        if folder.is_finished:
            return
        needed = needed_columns(self.network, fragment)
        self._readers.pop(fragment.name, None)
        inputs = {name: self._input(fragment, name, needed[name]) for name in fragment.inputs}
        rows = compile_fragment(self._session, fragment, inputs, needed)
        self._session.sparkContext.setLocalProperty("spark.scheduler.pool", fragment.name)
        self._runs[fragment.name] = FragmentRun(
            fragment, rows, folder, sinks, self._options.trigger_ms
        )

    def _input(self, fragment: Fragment, stream: str, columns: tuple[str, ...]) -> DataFrame:
        event_time = self._told_time(fragment, stream)
        shape = self.network.shapes[stream]
        if event_time is not None and event_time not in columns:
            columns = tuple(name for name in shape.schema.names if name in {*columns, event_time})
        if self._is_channel(stream):
            reader = self._reader(fragment, stream, event_time)
            self._readers.setdefault(fragment.name, []).append(reader)
            rows = channel_frame(self._session, reader, shape.schema.select(columns))
            return rows if event_time is None else watermarked(rows, event_time)
        return self._kafka_rows(fragment, stream, columns, event_time)

    def _told_time(self, fragment: Fragment, stream: str) -> str | None:
        """The column by which this input tells Spark the watermark; None where nobody needs it."""
        shape = self.network.shapes[stream]
        needed = fragment.stateful or (fragment.is_read and not self._is_channel(stream))
        return shape.event_time if needed and shape.watermarked else None

    def _reader(self, fragment: Fragment, stream: str, event_time: str | None) -> ChannelReader:
        return ChannelReader(
            channel=self._state.channel(stream),
            name=fragment.name,
            event_time=event_time,
            beats=self._state.fragment(fragment.name).beats(stream),
            max_rows=self._options.max_rows_per_batch,
            parallelism=self._options.cores,
        )

    def _kafka_rows(
        self, fragment: Fragment, stream: str, columns: tuple[str, ...], event_time: str | None
    ) -> DataFrame:
        # Loaded only where it is used: the Kafka client is large.
        from penstock.spark.kafka import jvm_kafka_frame
        from penstock.spark.sources.source import kafka_frame

        outside = self.network.stream(stream)
        assert isinstance(outside.source, KafkaSource)
        spec = ReaderSpec(
            stream=stream,
            schema=str(outside.shape.schema),
            columns=columns,
            event_time=event_time,
            origin=asdict(outside.source),
            lateness_us=outside.lateness_us,
            idle_timeout_us=outside.idle_timeout_us,
            max_rows=self._options.max_rows_per_batch,
            parallelism=self._options.cores,
            reader=fragment.name,
            dead_letters=str(self._state.dead_letters(stream).folder),
        )
        by_connector = jvm_kafka_frame(self._session, spec)
        if by_connector is not None:
            return by_connector
        rows = kafka_frame(self._session, spec)
        return rows if event_time is None else watermarked(rows, event_time)

    def _sinks(self, fragment: Fragment) -> list[BatchSink]:
        sinks: list[BatchSink] = []
        if fragment.is_read:
            channel = self._state.channel(fragment.output)
            sinks.append(ChannelSink(Writer(channel, self._epoch)))
        for name in fragment.queries:
            sink = self.network.query(name).sink
            if sink is not None:
                sinks.append(self._sink(name, sink))
        sinks += [TableSink(one, f"{one.name}-{self._life}") for one in fragment.writes]
        return sinks

    def _sink(self, query: str, sink: Sink) -> BatchSink:
        match sink:
            case ConsoleSink():
                return ShownSink(lambda rows: self._show(query, rows))
            case FileSink():
                return DirectorySink(sink, self._life)
            case KafkaSink():
                # Loaded only where it is used: the Kafka client is large.
                from penstock.spark.sinks.kafka_sink import RecordSink

                return RecordSink(sink, f"{query}-{self._life}")
            case _:
                # A fragment that is started again goes on collecting where it was.
                return self.collected.setdefault(query, CollectedSink())

    @property
    def is_finished(self) -> bool:
        """Whether all inputs have ended and everything is out."""
        return all(self._state.fragment(one.name).is_finished for one in self.fragments)

    def check(self) -> None:
        """Raises what went wrong, in words a person can use, if anything did."""
        for thread in self._ingests:
            if thread.failure is not None:
                raise explained(thread.failure, thread.name, self._state.log)
        for run in tuple(self._runs.values()):
            self._check_run(run)

    def _check_run(self, run: FragmentRun) -> None:
        name = run.fragment.name
        read = [reader.failure for reader in self._readers.get(name, ())]
        error = next(filter(None, [run.failure, *read, run.query.exception()]), None)
        if error is not None and is_passing(error) and self._restarts[name] < _RESTARTS:
            self._restarts[name] += 1
            self._start_fragment(run.fragment)
        elif error is not None:
            raise explained(error, name, self._state.log)
        elif not run.query.isActive and not run.folder.is_finished:
            raise RunError(f"{name} has stopped by itself", hint=f"See {self._state.log}.")

    def status(self) -> tuple[FragmentStatus, ...]:
        """How every fragment is doing."""
        self._settle()
        found = []
        for fragment in self.fragments:
            log, run = self._progress[fragment.name], self._runs.get(fragment.name)
            if run is not None:
                log.take(run.query.recentProgress)
            folder = self._state.fragment(fragment.name)
            found.append(log.status(folder.rows_out()["rows"], folder.is_finished))
        return tuple(found)

    def _settle(self) -> None:
        """Gives back what only starting needed, once every query has got going."""
        going = [run.query.lastProgress is not None for run in self._runs.values()]
        if not self._settled and going and all(going):
            self._settled = True
            release_planners()

    def reports(self, fragment: str) -> list[dict[str, object]]:
        """Spark's own reports of a fragment's latest batches."""
        run = self._runs.get(fragment)
        return [dict(report) for report in run.query.recentProgress] if run else []

    def wait(self, timeout_s: float | None = None, poll_s: float = 0.1) -> bool:
        """Waits until everything is finished; whether it is. Raises what went wrong."""
        until = None if timeout_s is None else time.monotonic() + timeout_s
        while not self.is_finished:
            self.check()
            if until is not None and time.monotonic() > until:
                return False
            time.sleep(poll_s)
        return True

    def set_aside(self) -> Mapping[str, Mapping[str, int]]:
        """How many rows of each outside stream were malformed or too late."""
        names = [stream.name for stream in self.network.streams]
        return {name: self._state.dead_letters(name).counts() for name in names}

    def stop(self) -> None:
        """Stops everything; nothing accepted is lost, a later start goes on from here."""
        for thread in self._ingests:
            thread.stop()
        for run in self._runs.values():
            run.stop()
        self._lock.release()


def run_to_end(
    session: SparkSession,
    network: Network,
    folder: Path,
    options: EngineOptions = DEFAULTS,
    timeout_s: float | None = None,
) -> dict[str, pa.Table]:
    """Runs a network over finished inputs; the rows of its in-memory queries by name."""
    engine = Engine(session, network, StateFolder(folder), options)
    try:
        engine.start()
        if not engine.wait(timeout_s):
            raise RunError(f"not finished after {timeout_s} seconds", hint="Give it more time.")
        engine.check()
    finally:
        engine.stop()
    tables = {name: sink.table() for name, sink in engine.collected.items()}
    return {name: table for name, table in tables.items() if table is not None}
